//===- ExecutorTest.cpp - programs made by hand, executed ------------------===//

#include "tests/runtime/step/StepTestSupport.h"

#include <mutex>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using test::ArtifactBuilder;
using test::TestRun;
using Floats = std::vector<float>;

TEST(Executor, FillCopyAndGemm) {
  ArtifactBuilder builder;
  uint32_t a = builder.buffer({2, 3}), b = builder.buffer({3, 2}), c = builder.buffer({2, 2}),
           t = builder.buffer({2, 2});
  builder.fill(a, 2);
  builder.fill(b, 3);
  builder.fill(c, 1);
  builder.gemm(a, b, c, /*beta=*/1);
  builder.fill(builder.view(c, {1}, {1}, 1), 7); // c[0, 1]
  builder.copy(builder.view(c, {2, 2}, {1, 2}), t);
  builder.result("t", t);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(test::floats(session.resultBuffer(0)), (Floats{19, 19, 7, 19}));
  });
}

TEST(Executor, KernelsCoverTheirExtentOnce) {
  for (int threads : {1, 2, 3})
    for (int64_t grain : {1, 4, 16, 1000}) {
      ArtifactBuilder builder;
      test::addKernels(builder, {"add_index", "increment"});
      uint32_t x = builder.buffer({103}), y = builder.buffer({103});
      builder.fill(x, 1);
      test::launch(builder, 1, {x}, 103, grain);
      test::launch(builder, 0, {x, y}, 103, grain);
      builder.result("y", y);
      TestRun run(builder, {}, threads);
      run.onRanks([](Session &session) {
        ASSERT_TRUE(session.step(1).isOk());
        Floats y = test::floats(session.resultBuffer(0));
        for (size_t index = 0; index < y.size(); ++index)
          ASSERT_EQ(y[index], 2.0f + static_cast<float>(index));
      });
    }
}

TEST(Executor, LoopsInLoopsMoveBuffersByTheStrideOfEach) {
  ArtifactBuilder builder;
  test::addKernels(builder, {"accumulate"});
  // [2, 3] of which the outer loop takes a row, the inner one an element; and what only the outer one moves.
  uint32_t batch = builder.buffer({2, 3}), totals = builder.buffer({2});
  uint32_t micro = builder.view(batch, {1}, {1}), total = builder.view(totals, {1}, {1});
  builder.package.buffers[micro]->iteration_strides = {3 * sizeof(float), sizeof(float)};
  builder.package.buffers[total]->iteration_strides = {sizeof(float)};
  builder.fill(totals, 0);
  builder.beginLoop(2);
  builder.beginLoop(3);
  test::launch(builder, 0, {micro, total}, 1);
  builder.endLoop();
  builder.endLoop();
  builder.result("batch", batch);
  builder.result("totals", totals);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    float *batch = session.resultBuffer(0).as<float>();
    for (int index = 0; index < 6; ++index)
      batch[index] = static_cast<float>(1 << (4 * index));
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(test::floats(session.resultBuffer(1)), (Floats{0x111, 0x111000}));
  });
}

TEST(Executor, ProgramsHaveInstructionsAndResultsOfTheirOwn) {
  ArtifactBuilder builder;
  uint32_t x = builder.buffer({}), y = builder.buffer({}), sum = builder.buffer({}), count = builder.buffer({});
  builder.fill(x, 1);
  uint32_t event = builder.program().num_events++;
  builder.record(event, 0);
  builder.wait(event, 0);
  builder.result("x", x, artifact::ResultRole::Metric);
  builder.addProgram(artifact::ProgramKind::Evaluate, "evaluate");
  builder.copy(x, y);
  builder.copy(y, sum);
  builder.fill(count, 4);
  builder.result("loss_sum", sum, artifact::ResultRole::LossSum);
  builder.result("loss_count", count, artifact::ResultRole::LossCount);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(session.resultValue(0), 1);
    ASSERT_TRUE(session.step(1, 1).isOk());
    EXPECT_EQ(session.resultValue(0, 1), 1);
    EXPECT_EQ(session.resultValue(1, 1), 4);
    EXPECT_EQ(session.resultValue(0), 1);
  });
}

TEST(Executor, LoopsMoveBuffersByTheirIterationStride) {
  ArtifactBuilder builder;
  test::addKernels(builder, {"accumulate"});
  uint32_t batch = builder.buffer({4}), total = builder.buffer({}), micro = builder.view(batch, {1}, {1});
  builder.package.buffers[micro]->iteration_strides = {sizeof(float)};
  builder.fill(total, 0);
  builder.beginLoop(4);
  test::launch(builder, 0, {micro, total}, 1);
  builder.endLoop();
  builder.result("batch", batch);
  builder.result("total", total, artifact::ResultRole::Metric);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    float *batch = session.resultBuffer(0).as<float>();
    for (int index = 0; index < 4; ++index)
      batch[index] = static_cast<float>(1 << (4 * index));
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(session.resultValue(1), 0x1111);
    ASSERT_TRUE(session.step(2).isOk());
    EXPECT_EQ(session.resultValue(1), 0x1111);
  });
}

/// Each rank fills its part of `whole` (by a rank stride) with its position + 1.
ArtifactBuilder gatherProgram(int64_t numRanks, uint32_t &whole) {
  ArtifactBuilder builder({{"shard", numRanks}});
  uint32_t group = builder.group({"shard"}), index = builder.buffer({}, artifact::DataType::I64);
  uint32_t part = builder.buffer({4});
  whole = builder.buffer({4 * numRanks});
  artifact::AxisIndexT axisIndex;
  axisIndex.group = group;
  axisIndex.target = index;
  builder.add(axisIndex);
  builder.fill(part, 1);
  uint32_t ready = builder.newEvent(), done = builder.newEvent();
  builder.record(ready, 0);
  builder.wait(ready, 1);
  builder.collective(CollectiveKind::AllGather, group, part, whole, 1);
  builder.record(done, 1);
  builder.wait(done, 0);
  builder.result("whole", whole);
  builder.result("index", index, artifact::ResultRole::Metric);
  return builder;
}

TEST(Executor, CollectivesOnTheirOwnStream) {
  for (int64_t numRanks : {1, 2, 3}) {
    uint32_t whole;
    ArtifactBuilder builder = gatherProgram(numRanks, whole);
    TestRun run(builder);
    run.onRanks([&](Session &session) {
      for (int64_t step = 1; step <= 20; ++step) {
        ASSERT_TRUE(session.step(step).isOk());
        EXPECT_EQ(test::floats(session.resultBuffer(0)), Floats(4 * numRanks, 1));
        EXPECT_EQ(session.resultValue(1), session.rank());
      }
    });
  }
}

TEST(Executor, MaximaOverRanks) {
  ArtifactBuilder builder({{"shard", 3}});
  uint32_t group = builder.group({"shard"}), whole = builder.buffer({3}), top = builder.buffer({3});
  uint32_t own = builder.view(whole, {1}, {1});
  builder.package.buffers[own]->rank_group = static_cast<int32_t>(group);
  builder.package.buffers[own]->rank_stride = sizeof(float);
  builder.fill(whole, -2);
  builder.fill(own, 5);
  builder.collective(CollectiveKind::AllReduce, group, whole, top, 0);
  builder.program().instructions.back()->operation.AsCollective()->reduction = artifact::ReductionKind::Max;
  builder.result("top", top);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(test::floats(session.resultBuffer(0)), Floats(3, 5));
  });
}

TEST(Executor, RankStridesSelectEachRanksSlice) {
  ArtifactBuilder builder({{"replicate", 2}, {"shard", 3}});
  uint32_t group = builder.group({"shard"}), whole = builder.buffer({6}), slice = builder.view(whole, {2}, {1});
  builder.package.buffers[slice]->rank_group = static_cast<int32_t>(group);
  builder.package.buffers[slice]->rank_stride = 2 * sizeof(float);
  builder.fill(whole, 0);
  builder.fill(slice, 5);
  builder.result("whole", whole);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    ASSERT_TRUE(session.step(1).isOk());
    Floats expected(6, 0);
    expected[session.rank() % 3 * 2] = expected[session.rank() % 3 * 2 + 1] = 5;
    EXPECT_EQ(test::floats(session.resultBuffer(0)), expected);
  });
}

TEST(Executor, EventsOrderComputeAfterCommunicationInEveryIteration) {
  // In each of 50 iterations: x += 1 on compute, all_reduce(x) -> y on stream 2, x = y on compute. A missing order
  // would read y too early or overwrite x too soon.
  ArtifactBuilder builder({{"shard", 2}});
  test::addKernels(builder, {"increment"});
  uint32_t group = builder.group({"shard"}), x = builder.buffer({512}), y = builder.buffer({512});
  uint32_t ready = builder.newEvent(), done = builder.newEvent();
  builder.fill(x, 0);
  builder.beginLoop(20);
  test::launch(builder, 0, {x}, 512);
  builder.record(ready, 0);
  builder.wait(ready, 2);
  builder.collective(CollectiveKind::AllReduce, group, x, y, 2);
  builder.record(done, 2);
  builder.wait(done, 0);
  builder.copy(y, x);
  builder.endLoop();
  builder.result("x", x);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    for (int64_t step = 1; step <= 5; ++step) {
      ASSERT_TRUE(session.step(step).isOk());
      float expected = 0;
      for (int round = 0; round < 20; ++round)
        expected = 2 * (expected + 1);
      EXPECT_EQ(test::floats(session.resultBuffer(0)), Floats(512, expected));
    }
  });
}

class Recorder : public TraceSink {
public:
  void record(const TraceEvent &event) override {
    std::lock_guard<std::mutex> lock(mutex);
    events.push_back(event);
  }
  std::mutex mutex;
  std::vector<TraceEvent> events;
};

TEST(Executor, TracesEveryCommand) {
  uint32_t whole;
  ArtifactBuilder builder = gatherProgram(2, whole);
  builder.package.locations[0] = "/h.0/attn";
  TestRun run(builder);
  Recorder recorders[2];
  run.onRanks([&](Session &session) {
    StepOptions options;
    options.trace = &recorders[session.rank()];
    ASSERT_TRUE(session.step(3, options).isOk());
  });
  const TraceEvent *gather = nullptr;
  for (const TraceEvent &event : recorders[1].events) {
    EXPECT_EQ(event.rank, 1);
    EXPECT_EQ(event.step, 3);
    EXPECT_LE(event.beginNanoseconds, event.endNanoseconds);
    if (event.kind == "all_gather")
      gather = &event;
  }
  EXPECT_EQ(recorders[1].events.size(), 5u); // axis_index, fill, 2 waits, all_gather
  ASSERT_TRUE(gather);
  EXPECT_EQ(gather->stream, 1);
  EXPECT_EQ(gather->instruction, 4u);
  EXPECT_EQ(gather->detail, "unit");
  EXPECT_EQ(gather->location, "/h.0/attn");
  EXPECT_EQ(gather->bytes, 32);
}

TEST(Executor, GradientProbesSeeTheLastIteration) {
  ArtifactBuilder builder;
  test::addKernels(builder, {"increment"});
  uint32_t parameter = builder.buffer({3}), gradient = builder.buffer({3});
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "u";
  state->elements = 3;
  state->buffer = parameter;
  builder.package.state.push_back(std::move(state));
  builder.fill(gradient, 0);               // 0
  builder.beginLoop(4);                    // 1
  test::launch(builder, 0, {gradient}, 3); // 2
  builder.endLoop();
  builder.fill(gradient, -1); // 3: the buffer is reused
  auto probe = std::make_unique<artifact::GradientProbeT>();
  probe->buffer = gradient;
  probe->instruction = 2;
  builder.program().probes.push_back(std::move(probe));
  TestRun run(builder);
  run.onRanks([](Session &session) {
    int calls = 0;
    StepOptions options;
    options.onGradient = [&](size_t probe, const TensorView &view) {
      ++calls;
      EXPECT_EQ(probe, 0u);
      EXPECT_EQ(test::floats(view), Floats(3, 4));
      return Status::ok();
    };
    ASSERT_TRUE(session.step(1, options).isOk());
    EXPECT_EQ(calls, 1);
  });
}

} // namespace
} // namespace tessera
