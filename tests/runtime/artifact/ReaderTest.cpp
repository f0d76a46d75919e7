//===- ReaderTest.cpp - artifact files, whole and damaged ------------------===//

#include "runtime/artifact/Reader.h"

#include "tests/runtime/ArtifactBuilder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

namespace tessera {
namespace {

using test::ArtifactBuilder;

/// A program with something of everything.
ArtifactBuilder sample() {
  ArtifactBuilder builder({{"shard", 2}});
  uint32_t group = builder.group({"shard"});
  uint32_t a = builder.buffer({4, 8}), b = builder.buffer({8, 6}), c = builder.buffer({4, 6}),
           whole = builder.buffer({48});
  uint32_t part = builder.buffer({24}), loss = builder.buffer({});
  builder.gemm(a, b, c);
  uint32_t event = builder.newEvent();
  builder.collective(artifact::CollectiveKind::AllGather, group, part, whole, 1);
  builder.record(event, 1);
  builder.wait(event, 0);
  builder.beginLoop(3);
  builder.fill(c, 2);
  builder.endLoop();
  builder.result("loss", loss, artifact::ResultRole::Loss);
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "unit";
  state->elements = 48;
  state->shard_group = 0;
  state->buffer = part;
  auto segment = std::make_unique<artifact::SegmentT>();
  segment->name = "w";
  segment->shape = {5, 9};
  state->segments.push_back(std::move(segment));
  builder.package.state.push_back(std::move(state));
  auto option = std::make_unique<artifact::KeyValueT>();
  option->key = "lr";
  option->value = "0.001";
  builder.package.model.push_back(std::move(option));
  return builder;
}

TEST(Reader, ReadsWhatWasWritten) {
  auto artifact = sample().build();
  ASSERT_TRUE(artifact.isOk()) << artifact.status();
  EXPECT_EQ((*artifact)->numRanks(), 2);
  EXPECT_EQ((*artifact)->groupMembers(0, 1), (std::vector<int>{0, 1}));
  EXPECT_EQ((*artifact)->groupSize(-1), 1);
  EXPECT_EQ((*artifact)->modelOption("lr"), "0.001");
  EXPECT_EQ((*artifact)->modelOption("none"), "");
}

TEST(Reader, OpensFiles) {
  std::string path = testing::TempDir() + "reader-test.tessera";
  std::vector<uint8_t> bytes = test::serialise(sample().package);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact.isOk()) << artifact.status();
  std::ofstream(path, std::ios::binary | std::ios::trunc);
  EXPECT_EQ((*artifact)->modelOption("lr"), "0.001") << "nothing of the file is needed later";
  Status empty = Artifact::open(path).status();
  EXPECT_EQ(empty.message(), "artifact '" + path + "': too short for a header: 0 bytes");
  std::remove(path.c_str());
  Status missing = Artifact::open(path).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_EQ(missing.message(), "artifact: cannot open '" + path + "': no such file or directory");
  Status folder = Artifact::open(testing::TempDir()).status();
  EXPECT_EQ(folder.code(), StatusCode::InvalidArgument);
}

std::string messageOf(std::vector<uint8_t> bytes) {
  return Artifact::fromBytes(std::move(bytes), "x").status().message();
}

TEST(Reader, NamesWhatIsWrongWithTheHeader) {
  const std::vector<uint8_t> good = test::serialise(sample().package);
  std::vector<uint8_t> bytes = good;
  bytes[0] = 'X';
  EXPECT_EQ(messageOf(bytes), "artifact 'x': not an artifact of tessera-compile (wrong magic bytes)");
  bytes = good;
  bytes[8] = 77;
  const std::string reads = std::to_string(artifact::formatVersion);
  EXPECT_EQ(messageOf(bytes),
            "artifact 'x': format version 77 is of a later version of Tessera, this one reads version " + reads +
                "; update tessera-run");
  bytes[8] = 1;
  EXPECT_EQ(messageOf(bytes),
            "artifact 'x': format version 1 is of an earlier version of Tessera, this one reads version " + reads +
                "; compile the model again");
  bytes = good;
  bytes.pop_back();
  EXPECT_NE(messageOf(bytes).find("(truncated?)"), std::string::npos);
  bytes = good;
  bytes.back() ^= 1;
  EXPECT_EQ(messageOf(bytes), "artifact 'x': checksum mismatch (the file is damaged)");
}

TEST(Reader, EveryTruncationIsAnError) {
  const std::vector<uint8_t> good = test::serialise(sample().package);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(Artifact::fromBytes({good.begin(), good.begin() + size}, "x").isOk());
}

/// Puts the right length and hash on a damaged payload, so that the checks behind them are reached.
void repair(std::vector<uint8_t> &bytes) {
  artifact::FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.payloadBytes = bytes.size() - sizeof(header);
  header.payloadHash = XXH64(bytes.data() + sizeof(header), header.payloadBytes, 0);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

TEST(Reader, DamageBehindAValidChecksumNeverCrashes) {
  const std::vector<uint8_t> good = test::serialise(sample().package);
  int accepted = 0, refused = 0;
  auto attempt = [&](std::vector<uint8_t> bytes) {
    repair(bytes);
    auto artifact = Artifact::fromBytes(std::move(bytes), "x");
    ++(artifact.isOk() ? accepted : refused);
    if (!artifact.isOk()) {
      EXPECT_EQ(artifact.status().message().rfind("artifact 'x': ", 0), 0u) << artifact.status();
    }
  };
  std::vector<uint8_t> bytes;
  for (size_t position = sizeof(artifact::FileHeader); position < good.size(); ++position)
    for (uint8_t flip : {0x01, 0x80, 0xff}) {
      bytes = good;
      bytes[position] ^= flip;
      attempt(bytes);
    }
  std::mt19937 generator(1);
  for (int round = 0; round < 3000; ++round) {
    bytes = good;
    for (int change = 0; change < 4; ++change)
      bytes[64 + generator() % (bytes.size() - 64)] = static_cast<uint8_t>(generator());
    if (round % 3 == 0)
      bytes.resize(64 + generator() % (bytes.size() - 64));
    attempt(bytes);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 0); // names and unused bytes may change
}

} // namespace
} // namespace tessera
