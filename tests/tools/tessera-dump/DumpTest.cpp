//===- DumpTest.cpp - what tessera-dump says about a known program --------------------------===//

#include "tools/tessera-dump/Dump.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"

namespace tessera::dump {
namespace {

class DumpTest : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = test::makeArtifact(package());
    ASSERT_STATUS_OK(made);
    artifact = *made;
  }
  static artifact::PackageT package() {
    artifact::PackageT package = test::makePackage();
    auto code = std::make_unique<artifact::CodeObjectT>();
    code->format = artifact::CodeFormat::SharedObject;
    code->target = "x86-64";
    code->data = {1, 2, 3};
    package.code_objects.push_back(std::move(code));
    auto kernel = std::make_unique<artifact::KernelT>();
    kernel->symbol = "fused_add";
    package.kernels.push_back(std::move(kernel));
    artifact::LaunchT launch;
    launch.kernel = 0;
    launch.buffers = {6, 6};
    launch.extent = 4;
    package.programs[0]->instructions[3]->operation.AsRepeat()->body.push_back(
        test::makeInstruction(std::move(launch), 0, 2));
    return package;
  }
  static void expectLine(const std::string &text, const std::string &line) {
    EXPECT_NE(text.find(line), std::string::npos) << "expected: " << line << "\nin:\n" << text;
  }
  std::shared_ptr<const Artifact> artifact;
};

TEST_F(DumpTest, FlattensRepeats) {
  auto list = flatten(artifact->training());
  ASSERT_EQ(list.size(), 8u);
  EXPECT_EQ(kindOf(*list[3].instruction), "repeat");
  EXPECT_EQ(kindOf(*list[4].instruction), "gemm");
  EXPECT_EQ(list[4].iterations, 3);
  EXPECT_EQ(list[5].depth, 1);
  EXPECT_EQ(list[6].number, 6u);
  EXPECT_EQ(list[6].iterations, 1);
}

TEST_F(DumpTest, Summary) {
  std::string text = summaryText(*artifact);
  expectLine(text, "mesh           shard=2 (data): 2 ranks");
  expectLine(text, "model          source=gpt.onnx, strategy=zero3");
  expectLine(text, "parameters     30 in 2 tensors, 1 units");
  expectLine(text, "input          tokens i64[2,4] below 256");
  expectLine(text, "memory per rank: 1.00 KiB reserved, 356 B at the peak");
  expectLine(text, "embedded IR    [\"shard\"]");
  Json json = summaryJson(*artifact);
  EXPECT_EQ(json["instructions"]["gemm"], 1);
  EXPECT_EQ(json["memory_per_rank"]["by_class_at_peak"]["communication"], 128);
}

TEST_F(DumpTest, MemoryHasClassesSlotsAndTimeline) {
  std::string text = memoryText(*artifact, trainingProgram, 8);
  expectLine(text, "communication           128 B          128 B");
  expectLine(text, "sum                     356 B          356 B");
  expectLine(text, "reserved 1.00 KiB (1024 bytes), peak at instruction 4; 34.8 % of the reserved bytes");
  expectLine(text, "0-4      #####... gathered h.0");
  expectLine(text, "4-6      ....###. product");
  EXPECT_EQ(memoryText(*artifact, trainingProgram, 0).find("gathered h.0"), std::string::npos);
  std::string largest = largestText(*artifact, trainingProgram, 1);
  EXPECT_EQ(largest.rfind("largest of 6 slots that are live at the peak (instruction 4)\n", 0), 0u) << largest;
  EXPECT_EQ(std::count(largest.begin(), largest.end(), '\n'), 2);
  expectLine(largest, "     128 B device communication      0-4      gathered h.0");
  Json json = memoryJson(*artifact);
  EXPECT_EQ(json["slots"].size(), 6u);
  EXPECT_EQ(json["slots"][5]["name"], "product");
  EXPECT_EQ(json["peak"], 356);
}

TEST_F(DumpTest, ScheduleHasStreamsOperandsAndSources) {
  std::string text = scheduleText(*artifact);
  expectLine(text, "     0 gather   all_gather over shard(2) b0 f32[16] -> b4 f32[32] \"forward h.0\"  ; h.0/gather\n");
  expectLine(text, "     2 compute  wait event 0  ; h.0/gather\n");
  expectLine(text, "     3 compute  repeat 3 times\n");
  expectLine(text, "     4 compute    gemm b5 f32[4,4], b5 f32[4,4] -> b6 f32[4,4]  ; h.0/MatMul\n");
  expectLine(text, "     5 compute    launch fused_add extent 4 grain 1 (b6 f32[4,4], b6 f32[4,4])  ; h.0/MatMul\n");
  expectLine(text, "     6 compute  fill b3 f32[] = 1.5  ; loss\n");
  EXPECT_EQ(scheduleJson(*artifact)[4]["iterations"], 3);
}

TEST_F(DumpTest, ScheduleSaysWhyAttentionIsSo) {
  EXPECT_EQ(sequenceText(*artifact), ""); // no sequence axis
  EXPECT_TRUE(sequenceJson(*artifact).is_null());
  artifact::PackageT split = package();
  split.mesh[0]->role = artifact::AxisRole::Sequence;
  split.sequence = std::make_unique<artifact::SequenceChoiceT>();
  artifact::SequenceChoiceT &choice = *split.sequence;
  choice.attention = "ring";
  choice.order = artifact::SplitOrder::Zigzag;
  choice.order_reason = artifact::OrderReason::Balances;
  auto asked = test::makeArtifact(split);
  ASSERT_STATUS_OK(asked);
  expectLine(scheduleText(**asked), "attention over shard(2): ring, it was asked for\n"
                                    "positions: zigzag, each rank has the same work of causal attention\n\nschedule (");
  EXPECT_EQ(sequenceJson(**asked)["reason"], "asked");

  choice.reason = artifact::AttentionReason::Fastest;
  choice.limit = uint64_t{1} << 30;
  choice.order_reason = artifact::OrderReason::Asked;
  auto add = [&](const char *name, double seconds, uint64_t bytes, bool fits, const char *error) {
    auto way = std::make_unique<artifact::AttentionWayT>();
    way->name = name;
    way->step_seconds = seconds;
    way->bytes = bytes;
    way->fits = fits;
    way->error = error;
    choice.ways.push_back(std::move(way));
  };
  add("allgather", 0.5, uint64_t{1} << 31, false, "");
  add("ring", 2, uint64_t{1} << 29, true, "");
  add("ulysses", 0, 0, false, "3 heads");
  auto chosen = test::makeArtifact(split);
  ASSERT_STATUS_OK(chosen);
  const std::string text = sequenceText(**chosen);
  expectLine(text, "ring, the shortest predicted step of those that fit (of 1.00 GiB for a rank)\n");
  expectLine(text, "  allgather  500.00 ms a step, 2.00 GiB a rank, too large\n");
  expectLine(text, "  ring       2.00 s a step, 512.0 MiB a rank, fits\n");
  expectLine(text, "  ulysses    cannot be: 3 heads\n");
  expectLine(text, "positions: zigzag, it was asked for\n");
  const Json json = sequenceJson(**chosen);
  EXPECT_EQ(json["ways"][0]["bytes_per_rank"], uint64_t{1} << 31);
  EXPECT_EQ(json["ways"][2]["error"], "3 heads");
  EXPECT_EQ(json["order_reason"], "asked");
}

TEST_F(DumpTest, CollectivesAreCounted) {
  Json json = collectivesJson(*artifact);
  ASSERT_EQ(json["list"].size(), 2u);
  EXPECT_EQ(json["list"][0]["sent_per_rank"], 64); // half of the 128 bytes
  EXPECT_EQ(json["list"][1]["sent_per_rank"], 4);  // 2 * 4 * 1/2
  EXPECT_EQ(json["gathered_bytes"], 128);
  std::string text = collectivesText(*artifact);
  expectLine(text, "2 collectives, 68 B sent by each rank in a step");
  expectLine(text, "gathered: 128 B = 1.00 x the sharded parameters (128 B)");
  expectLine(text, "hash of the sequence 0000000000005678");
}

TEST_F(DumpTest, StateAndKernels) {
  std::string text = stateText(*artifact);
  expectLine(text, "f32[32], 16 on each of 2 ranks");
  expectLine(text, "normal 0 0.02");
  expectLine(text, "h.0.b");
  expectLine(kernelsText(*artifact), "       3 fused_add\n");
  expectLine(kernelsText(*artifact), "SharedObject for x86-64, 3 B");
}

TEST_F(DumpTest, PhaseIrAndCode) {
  auto ir = phaseIr(*artifact, "shard");
  ASSERT_STATUS_OK(ir);
  EXPECT_EQ(*ir, "module {}\n");
  EXPECT_ERROR(phaseIr(*artifact, "lower"), "has no IR of phase 'lower'; it has shard");
  test::ScratchFolder scratch;
  ASSERT_STATUS_OK(writeCode(*artifact, scratch.path("code.so")));
  EXPECT_EQ(test::readFile(scratch.path("code.so")), "\1\2\3");
  auto without = test::makeArtifact();
  ASSERT_STATUS_OK(without);
  EXPECT_ERROR(writeCode(**without, scratch.path("x")), "has no code objects");
}

} // namespace
} // namespace tessera::dump
