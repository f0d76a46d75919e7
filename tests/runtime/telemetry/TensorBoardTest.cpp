//===- TensorBoardTest.cpp - event files, memory lines and snapshots -------===//

#include "runtime/telemetry/TensorBoard.h"

#include "runtime/telemetry/MemorySnapshot.h"
#include "runtime/telemetry/StageMemory.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace tessera {
namespace {

using test::ScratchFolder;

uint32_t unmask(uint32_t masked) {
  uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

TEST(TensorBoard, Crc32cOfKnownData) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(TensorBoard, RecordsHaveLengthsAndSums) {
  ScratchFolder scratch;
  auto writer = TensorBoardWriter::open(scratch.path("events"), 4);
  ASSERT_TRUE(writer.isOk()) << writer.status();
  StepMetrics metrics;
  metrics.step = 5;
  metrics.loss = 2.5;
  ASSERT_STATUS_OK((*writer)->write(metrics, {}));
  std::string data = test::readFile((*writer)->path());
  std::vector<std::string> events;
  for (size_t position = 0; position < data.size();) {
    uint64_t length;
    uint32_t lengthSum, sum;
    std::memcpy(&length, data.data() + position, 8);
    std::memcpy(&lengthSum, data.data() + position + 8, 4);
    EXPECT_EQ(unmask(lengthSum), crc32c(data.substr(position, 8)));
    events.push_back(data.substr(position + 12, length));
    std::memcpy(&sum, data.data() + position + 12 + length, 4);
    EXPECT_EQ(unmask(sum), crc32c(events.back()));
    position += 16 + length;
  }
  ASSERT_EQ(events.size(), 3u); // version, start of the session, step
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  EXPECT_EQ(events[1][9], 0x10); // step
  EXPECT_EQ(events[1][10], 5);
  EXPECT_NE(events[2].find("train/loss"), std::string::npos);
  EXPECT_EQ(events[2].find("train/grad_norm"), std::string::npos);
  EXPECT_NE((*writer)->path().find("events.out.tfevents."), std::string::npos);
}

TEST(TensorBoard, ABeginWhereARunHasBeenIsMarked) {
  ScratchFolder scratch;
  std::string folder = scratch.path("events");
  auto first = TensorBoardWriter::open(folder, std::nullopt);
  ASSERT_TRUE(first.isOk()) << first.status();
  std::filesystem::rename((*first)->path(), folder + "/events.out.tfevents.1.host.1.0"); // of an earlier second
  auto second = TensorBoardWriter::open(folder, std::nullopt);
  ASSERT_TRUE(second.isOk()) << second.status();
  EXPECT_GT(std::filesystem::file_size((*second)->path()),
            std::filesystem::file_size(folder + "/events.out.tfevents.1.host.1.0"));
}

TEST(StageMemory, OneEntryPerRank) {
  auto json =
      nlohmann::json::parse(stageToJson("after warm-up", 1, {{10, 30, 40, 7, {50, 60}}, {11, 31, 41, 8, {51, 61}}}));
  EXPECT_EQ(json["stage"], "after warm-up");
  EXPECT_EQ(json["step"], 1);
  ASSERT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][1]["rank"], 1);
  EXPECT_EQ(json["ranks"][1]["allocated"], 11);
  EXPECT_EQ(json["ranks"][1]["peak"], 31);
  EXPECT_EQ(json["ranks"][1]["reserved"], 41);
  EXPECT_EQ(json["ranks"][1]["host"], 8);
  EXPECT_EQ(json["ranks"][0]["rss_peak"], 60);
}

TEST(MemorySnapshot, FollowsThePlanOverTime) {
  artifact::PackageT package;
  package.programs.push_back(std::make_unique<artifact::ProgramT>());
  package.target = "cpu";
  for (auto kind : {artifact::ArenaKind::State, artifact::ArenaKind::Host}) {
    auto arena = std::make_unique<artifact::ArenaT>();
    arena->name = artifact::EnumNameArenaKind(kind);
    arena->kind = kind;
    arena->bytes = 500;
    package.arenas.push_back(std::move(arena));
  }
  auto addSlot = [&](artifact::MemoryClass memoryClass, uint64_t bytes, uint32_t first, uint32_t last) {
    auto slot = std::make_unique<artifact::SlotT>();
    slot->bytes = bytes;
    slot->memory_class = memoryClass;
    slot->first_instruction = first;
    slot->last_instruction = last;
    package.programs[0]->slots.push_back(std::move(slot));
  };
  addSlot(artifact::MemoryClass::Parameters, 100, 0, UINT32_MAX); // no instruction ends it
  addSlot(artifact::MemoryClass::Activations, 30, 1, 1);
  addSlot(artifact::MemoryClass::Optimizer, 400, 0, 2);
  package.programs[0]->slots.back()->arena = 1; // not the device's memory
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Package::Pack(builder, &package));

  MemorySnapshot snapshot(0);
  auto event = [](int rank, uint32_t instruction, int64_t begin) {
    TraceEvent made;
    made.rank = rank;
    made.step = 2;
    made.instruction = instruction;
    made.beginNanoseconds = begin;
    made.endNanoseconds = begin + 1000000;
    return made;
  };
  snapshot.record(event(1, 0, 7));
  for (uint32_t instruction : {0, 1, 2})
    snapshot.record(event(0, instruction, 5000000 + instruction * 1000000));
  ScratchFolder scratch;
  const auto *packed = flatbuffers::GetRoot<artifact::Package>(builder.GetBufferPointer());
  ASSERT_STATUS_OK(snapshot.write(scratch.path("memory.json"), *packed, 600));
  auto json = nlohmann::json::parse(test::readFile(scratch.path("memory.json")));
  EXPECT_EQ(json["step"], 2);
  EXPECT_EQ(json["reserved"], 600);
  EXPECT_EQ(json["planned"], 500);
  EXPECT_EQ(json["peak"], 130);
  std::vector<int64_t> allocated;
  std::vector<double> seconds;
  for (const auto &point : json["points"]) {
    allocated.push_back(point["allocated"]);
    seconds.push_back(point["seconds"]);
  }
  EXPECT_EQ(allocated, (std::vector<int64_t>{100, 130, 100, 100}));
  EXPECT_EQ(seconds, (std::vector<double>{0, 0.001, 0.002, 0.003}));
  EXPECT_EQ(json["points"][1]["by_class"]["activations"], 30);
  EXPECT_EQ(json["arenas"][1], (nlohmann::json{{"kind", "host"}, {"bytes", 500}}));
  ASSERT_EQ(json["slots"].size(), 3u);
  EXPECT_EQ(json["slots"][1]["bytes"], 30);
  EXPECT_EQ(json["slots"][1]["class"], "activations");
  EXPECT_EQ(json["slots"][1]["last_instruction"], 1);
}

} // namespace
} // namespace tessera
