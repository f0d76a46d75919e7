//===- FingerprintTest.cpp - what tells data apart ------------------------------------===//

#include "runtime/base/EvenBlocks.h"
#include "runtime/data/Samples.h"
#include "runtime/state/Safetensors.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <set>

namespace tessera {
namespace {

using test::rawBytes;
using test::ScratchFolder;
using test::writeFile;

std::string fingerprintOf(const std::string &path, const DataOptions &options = {}) {
  auto source = openSamples(path, test::languageModel({2, 4}, 0, 512), options);
  EXPECT_TRUE(source.isOk()) << source.status();
  if (!source.isOk())
    return "";
  auto fingerprint = (*source)->fingerprint();
  EXPECT_TRUE(fingerprint.isOk()) << fingerprint.status();
  return *fingerprint;
}

TEST(Fingerprint, IsOfTheTokensAndNotOfPathsOrStorage) {
  ScratchFolder scratch;
  std::vector<uint16_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::vector<uint32_t> wide(tokens.begin(), tokens.end());
  writeFile(scratch.path("a.bin"), rawBytes(tokens));
  writeFile(scratch.path("elsewhere/b.bin"), rawBytes(tokens));
  writeFile(scratch.path("wide.bin"), rawBytes(wide));
  const std::string first = fingerprintOf(scratch.path("a.bin"));
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(fingerprintOf(scratch.path("a.bin")), first);
  EXPECT_EQ(fingerprintOf(scratch.path("elsewhere/b.bin")), first);
  EXPECT_EQ(fingerprintOf(scratch.path("elsewhere")), first);
  EXPECT_EQ(fingerprintOf(scratch.path("wide.bin"), {.tokenBytes = 4}), first);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto other = tokens;
    other[i] += 1;
    writeFile(scratch.path("a.bin"), rawBytes(other));
    EXPECT_NE(fingerprintOf(scratch.path("a.bin")), first) << i;
  }
}

TEST(Fingerprint, SeesDocumentsFieldsAndTheirOrder) {
  ScratchFolder scratch;
  auto of = [&](const std::string &content, const DataOptions &options = {}) {
    writeFile(scratch.path("a.jsonl"), content);
    return fingerprintOf(scratch.path("a.jsonl"), options);
  };
  std::set<std::string> seen = {of("{\"text\": \"abcd\", \"more\": \"efgh\"}\n\"ijkl\"\n"),
                                of("{\"text\": \"abcd\", \"more\": \"efgh\"}\n\"ijkl\"\n", {.textField = "more"}),
                                of("\"ijkl\"\n\"abcd\"\n"), of("\"abc\"\n\"dijkl\"\n"), of("\"abcdijkl\"")};
  EXPECT_EQ(seen.size(), 5u);
}

TEST(Fingerprint, OfMuchDataSomeBlocksAreRead) {
  ScratchFolder scratch;
  std::vector<uint16_t> tokens(3 << 20, 1);
  auto of = [&] {
    writeFile(scratch.path("a.bin"), rawBytes(tokens));
    return fingerprintOf(scratch.path("a.bin"));
  };
  const std::string first = of();
  for (size_t place : {size_t{0}, tokens.size() - 1}) {
    tokens[place] = 2;
    EXPECT_NE(of(), first) << place;
    tokens[place] = 1;
  }
  std::fill(tokens.begin() + (1 << 20), tokens.begin() + (1 << 20) + (1 << 16), 2); // more than lies between blocks
  EXPECT_NE(of(), first);
}

TEST(EvenBlocks, CoverAllOrAreSpread) {
  auto visited = [](uint64_t total, uint64_t block, uint64_t limit) {
    std::vector<std::pair<uint64_t, uint64_t>> blocks;
    EXPECT_TRUE(forEvenBlocks(total, block, limit, [&](uint64_t begin, uint64_t count) {
                  blocks.emplace_back(begin, count);
                  return Status::ok();
                }).isOk());
    return blocks;
  };
  using Blocks = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(visited(0, 4, 10), Blocks());
  EXPECT_EQ(visited(10, 4, 10), (Blocks{{0, 4}, {4, 4}, {8, 2}}));
  EXPECT_EQ(visited(100, 4, 12), (Blocks{{0, 4}, {48, 4}, {96, 4}}));
  EXPECT_EQ(visited(101, 4, 12), (Blocks{{0, 4}, {48, 4}, {97, 4}}));
  EXPECT_EQ(visited(100, 4, 3), (Blocks{{0, 3}}));
}

TEST(Fingerprint, OfArraysIsOfTypesShapesAndValues) {
  ScratchFolder scratch;
  const std::vector<BatchSpec> specs = {test::makeSpec("x", artifact::BatchRole::Input, DataType::F32, {2, 3})};
  auto of = [&](const std::string &file, const std::vector<float> &values, std::vector<int64_t> shape) {
    ByteSpan bytes(reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(float));
    std::string path = scratch.path(file);
    EXPECT_TRUE(writeSafetensors(path, {{"x", DataType::F32, std::move(shape), {bytes}}}).isOk());
    auto source = openSamples(path, specs);
    EXPECT_TRUE(source.isOk()) << source.status();
    return *(*source)->fingerprint();
  };
  std::vector<float> values(300000 * 3, 1); // 3.4 MiB: all of it
  const std::string first = of("a.safetensors", values, {300000, 3});
  EXPECT_EQ(of("b.safetensors", values, {300000, 3}), first);
  values[123456] = 2;
  EXPECT_NE(of("b.safetensors", values, {300000, 3}), first);
  values.resize(299999 * 3);
  EXPECT_NE(of("b.safetensors", values, {299999, 3}), first);
}

} // namespace
} // namespace tessera
