//===- VerifyTest.cpp - checks of a package but for instructions and state -===//

#include "runtime/artifact/LearningRate.h"
#include "tests/runtime/artifact/VerifyTestSupport.h"

#include <functional>
#include <limits>

namespace tessera {
namespace {

using test::ArtifactBuilder;
using test::expectError;

TEST(Verify, ScalarsSayHowTheyAreComputed) {
  ArtifactBuilder builder;
  auto hyper = std::make_unique<artifact::HyperScalarT>();
  hyper->name = "lr";
  hyper->buffer = builder.buffer({});
  builder.program().hyper.push_back(std::move(hyper));
  expectError(builder, "scalar 'lr': there is no schedule of the learning rate");
  builder.package.learning_rate = std::make_unique<artifact::LearningRateT>();
  expectError(builder, "schedule of the learning rate: 0 parts");
  ASSERT_EQ(makeLearningRate({}, *builder.package.learning_rate), "");
  ASSERT_TRUE(builder.build().isOk());
  builder.program().hyper[0]->kind = artifact::HyperKind::BiasCorrection;
  builder.program().hyper[0]->beta = 1;
  expectError(builder, "scalar 'lr': its beta is 1.0");
  builder.program().hyper[0]->kind = artifact::HyperKind::Seed;
  expectError(builder, "its buffer is of type F32, expected I64");
  builder.program().hyper[0]->kind = static_cast<artifact::HyperKind>(50);
  expectError(builder, "scalar 'lr': unknown kind 50");
}

TEST(Verify, ChoiceOfAttentionIsOneOfItsWays) {
  ArtifactBuilder builder({{"seq", 2}});
  builder.package.sequence = std::make_unique<artifact::SequenceChoiceT>();
  artifact::SequenceChoiceT &choice = *builder.package.sequence;
  choice.attention = "ring";
  expectError(builder, "choice of attention: the mesh has no sequence axis");
  builder.package.mesh[0]->role = artifact::AxisRole::Sequence;
  ASSERT_TRUE(builder.build().isOk());
  choice.reason = artifact::AttentionReason::Fastest;
  expectError(builder, "there are no ways to choose from");
  for (const char *name : {"allgather", "ring"}) {
    choice.ways.push_back(std::make_unique<artifact::AttentionWayT>());
    choice.ways.back()->name = name;
    choice.ways.back()->step_seconds = 1;
    choice.ways.back()->fits = true;
  }
  ASSERT_TRUE(builder.build().isOk());
  choice.reason = artifact::AttentionReason::Smallest;
  expectError(builder, "'ring' is not what was found to be best");
  choice.reason = artifact::AttentionReason::Asked;
  expectError(builder, "it was asked for, and ways were compared");
  choice.reason = static_cast<artifact::AttentionReason>(9);
  expectError(builder, "unknown reason or order");
  choice.reason = artifact::AttentionReason::Fastest;
  choice.order_reason = static_cast<artifact::OrderReason>(-1);
  expectError(builder, "unknown reason or order");
  choice.order_reason = artifact::OrderReason::Asked;
  choice.attention = "ulysses";
  expectError(builder, "'ulysses' is not what was found to be best");
  choice.attention = "ring";
  choice.ways[0]->name = "ring";
  expectError(builder, "'ring' occurs twice");
  choice.ways[0]->name = "allgather";
  choice.ways[0]->error = "too many heads";
  expectError(builder, "attention 'allgather': cannot be, and has numbers of a step");
  choice.ways[0]->fits = false;
  choice.ways[0]->step_seconds = std::numeric_limits<double>::quiet_NaN();
  expectError(builder, "attention 'allgather': a step takes nan seconds");
  choice.ways[0]->step_seconds = 0;
  ASSERT_TRUE(builder.build().isOk());
}

TEST(Verify, BufferMustLieInItsArena) {
  ArtifactBuilder builder;
  uint32_t buffer = builder.buffer({4, 4});
  ASSERT_TRUE(builder.build().isOk());
  builder.package.buffers[buffer]->strides = {5, 1};
  expectError(builder, "buffer 0: reaches beyond its arena of 64 bytes");
  builder.package.buffers[buffer]->strides = {std::numeric_limits<int64_t>::max(), 1};
  expectError(builder, "buffer 0: dimension 0 has stride");
  builder.package.buffers[buffer]->strides = {4, -1};
  expectError(builder, "buffer 0: dimension 1 has stride -1");
  builder.package.buffers[buffer]->strides = {4};
  expectError(builder, "buffer 0: 2 dimensions and 1 strides");
  builder.package.buffers[buffer]->strides = {4, 1};
  builder.package.buffers[buffer]->shape = {int64_t{1} << 40, int64_t{1} << 40};
  expectError(builder, "buffer 0: dimension 1 has size");
  builder.package.buffers[buffer]->shape = {4, 4};
  builder.package.buffers[buffer]->offset = std::numeric_limits<uint64_t>::max() - 3;
  expectError(builder, "reaches beyond its arena");
  builder.package.buffers[buffer]->offset = 2;
  expectError(builder, "offset 2 is not a multiple");
  builder.package.buffers[buffer]->offset = 0;
  builder.package.buffers[buffer]->arena = 9;
  expectError(builder, "buffer 0: arena 9 of 1");
}

// The compiler leaves out both lists of a scalar; a file may hold one of them, empty.

TEST(Verify, ScalarsMayHaveAnEmptyShape) {
  for (bool hasShape : {false, true}) {
    flatbuffers::FlatBufferBuilder builder;
    auto empty = builder.CreateVector(std::vector<int64_t>{});
    auto scalar =
        artifact::CreateBuffer(builder, 0, 0, artifact::DataType::F32, hasShape ? empty : 0, hasShape ? 0 : empty);
    auto arena = artifact::CreateArena(builder, builder.CreateString("all"), artifact::ArenaKind::MIN, 4);
    auto fill =
        artifact::CreateInstruction(builder, artifact::Operation::Fill, artifact::CreateFill(builder, 0, 1).Union());
    auto target = builder.CreateString("cpu:test:");
    auto arenas = builder.CreateVector(&arena, 1);
    auto buffers = builder.CreateVector(&scalar, 1);
    auto instructions = builder.CreateVector(&fill, 1);
    auto locations = builder.CreateVectorOfStrings({"node"});
    auto name = builder.CreateString("step");
    artifact::ProgramBuilder program(builder);
    program.add_name(name);
    program.add_instructions(instructions);
    auto finished = program.Finish();
    auto programs = builder.CreateVector(&finished, 1);
    artifact::PackageBuilder package(builder);
    package.add_version(artifact::formatVersion);
    package.add_target(target);
    package.add_arenas(arenas);
    package.add_buffers(buffers);
    package.add_programs(programs);
    package.add_locations(locations);
    artifact::FinishPackageBuffer(builder, package.Finish());
    auto artifact = Artifact::fromBytes(test::serialise(builder), "scalar");
    EXPECT_TRUE(artifact.isOk()) << artifact.status();
  }
}

TEST(Verify, RankAndIterationStridesStayInside) {
  ArtifactBuilder builder({{"shard", 4}});
  builder.group({"shard"});
  uint32_t whole = builder.buffer({16}), part = builder.view(whole, {4}, {1});
  builder.package.buffers[part]->rank_group = 0;
  builder.package.buffers[part]->rank_stride = 16;
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.package.buffers[part]->rank_stride = 20;
  expectError(builder, "buffer 1: reaches beyond its arena");
  builder.package.buffers[part]->rank_group = 1;
  expectError(builder, "group 1 of 1");
  builder.package.buffers[part]->rank_group = -1;
  builder.package.buffers[part]->iteration_strides = {16};
  builder.beginLoop(4);
  builder.fill(part, 1);
  builder.endLoop();
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.program().instructions[0]->operation.AsRepeat()->count = 5;
  expectError(builder, "instruction 1 (node node), operand target: buffer 1 leaves its arena within 5 iterations");
}

TEST(Verify, ProgramsAreWhatTheySay) {
  ArtifactBuilder builder;
  uint32_t number = builder.buffer({});
  builder.addProgram(artifact::ProgramKind::Evaluate, "evaluate");
  expectError(builder, "program 'evaluate': results: 0 sums and 0 counts of a loss, expected 1 of each");
  builder.result("loss_sum", number, artifact::ResultRole::LossSum);
  builder.result("loss_count", number, artifact::ResultRole::LossCount);
  ASSERT_STATUS_OK(builder.build());
  builder.current().results[1]->at_least = std::numeric_limits<double>::quiet_NaN();
  expectError(builder, "program 'evaluate': results: the bound of 'loss_count' is not finite");
  builder.current().results[1]->at_least = 1;
  builder.current().results[1]->plus = std::numeric_limits<double>::infinity();
  expectError(builder, "program 'evaluate': results: the bound of 'loss_count' is not finite");
  builder.current().results[1]->plus = 0;
  builder.wait(0, 0); // of the first program, which has no events
  expectError(builder, "program 'evaluate': instruction 0 (node node): event 0 of 0");
  builder.current().instructions.clear();
  builder.fill(7, 0);
  expectError(builder, "program 'evaluate': instruction 0 (node node), operand target: buffer 7 of 1");
  builder.current().instructions.clear();
  builder.current().hyper.push_back(std::make_unique<artifact::HyperScalarT>());
  builder.current().hyper[0]->name = "seed";
  builder.current().hyper[0]->kind = artifact::HyperKind::UpdateAlways;
  builder.current().hyper[0]->buffer = number;
  expectError(builder, "program 'evaluate': scalars and probes: are of the training alone");
  builder.current().hyper.clear();
  builder.current().name = "step";
  expectError(builder, "program 'step': there is another one of its kind or name");
  builder.current().name = "evaluate";
  std::swap(builder.package.programs[0], builder.package.programs[1]);
  expectError(builder, "program 'evaluate': the first program trains, and no other");
  builder.package.programs.clear();
  expectError(builder, "programs: there are 0");
}

TEST(Verify, MetricsAreSumsAndCounts) {
  using artifact::ResultRole;
  struct Case {
    std::vector<std::pair<std::string, ResultRole>> results;
    std::string problem; ///< empty: none
  };
  const std::string apart = "the sum and the count of a metric are not side by side at ";
  const std::vector<Case> cases = {
      {{{"near", ResultRole::MetricSum}, {"near", ResultRole::MetricCount}}, ""},
      {{{"near", ResultRole::MetricSum}}, "metric 'near' has no count"},
      {{{"near", ResultRole::MetricCount}}, apart + "'near'"},
      {{{"near", ResultRole::MetricCount}, {"near", ResultRole::MetricSum}}, apart + "'near'"},
      {{{"near", ResultRole::MetricSum}, {"far", ResultRole::MetricCount}}, apart + "'far'"},
      {{{"near", ResultRole::MetricSum}, {"far", ResultRole::MetricSum}}, apart + "'far'"},
      {{{"", ResultRole::MetricSum}, {"", ResultRole::MetricCount}}, apart + "''"},
  };
  for (const Case &each : cases) {
    ArtifactBuilder builder;
    const uint32_t number = builder.buffer({});
    builder.addProgram(artifact::ProgramKind::Evaluate, "evaluate");
    builder.result("loss_sum", number, ResultRole::LossSum);
    builder.result("loss_count", number, ResultRole::LossCount);
    for (const auto &[name, role] : each.results)
      builder.result(name, number, role);
    if (each.problem.empty())
      ASSERT_STATUS_OK(builder.build());
    else
      expectError(builder, "program 'evaluate': results: " + each.problem);
  }
  ArtifactBuilder builder;
  builder.result("near", builder.buffer({}), ResultRole::MetricSum);
  expectError(builder, "results: metric 'near' is not of an evaluation");
}

TEST(Verify, StreamsAreKnown) {
  ArtifactBuilder builder;
  builder.package.streams[2]->kind = artifact::StreamKind::Compute;
  expectError(builder, "stream 2: is of kind Compute; the first stream computes, and no other");
  builder.package.streams[2]->kind = artifact::StreamKind::Gather;
  ASSERT_STATUS_OK(builder.build());
}

TEST(Verify, KernelsExist) {
  ArtifactBuilder builder;
  artifact::LaunchT launch;
  launch.extent = 4;
  auto &stored = builder.add(std::move(launch));
  expectError(builder, "kernel 0 of 0");
  auto object = std::make_unique<artifact::CodeObjectT>();
  object->target = "cpu";
  object->data = {1};
  builder.package.code_objects.push_back(std::move(object));
  auto kernel = std::make_unique<artifact::KernelT>();
  kernel->symbol = "k";
  builder.package.kernels.push_back(std::move(kernel));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.grain = 0;
  expectError(builder, "extent 4, grain 0");
  stored.grain = 1;
  stored.buffers = {5};
  expectError(builder, "operand 0: buffer 5 of 0");
  stored.buffers.clear();
  builder.package.kernels[0]->code_object = 3;
  expectError(builder, "kernel 'k': its code object does not exist");
  builder.package.kernels[0]->code_object = 0;
  builder.package.code_objects[0]->format = artifact::CodeFormat::Ptx;
  expectError(builder, "code object 0: is Ptx, the target is 'cpu:test:'");
}

TEST(Verify, KernelsForAGpuSayHowTheyAreLaunched) {
  ArtifactBuilder builder;
  builder.package.target = "sm_90";
  for (artifact::CodeFormat format : {artifact::CodeFormat::Cubin, artifact::CodeFormat::Ptx}) {
    auto object = std::make_unique<artifact::CodeObjectT>();
    object->target = "sm_90";
    object->format = format;
    object->data = {1, 0};
    builder.package.code_objects.push_back(std::move(object));
  }
  auto added = std::make_unique<artifact::KernelT>();
  artifact::KernelT &kernel = *added;
  kernel.symbol = "k";
  kernel.ptx = 1;
  kernel.blocks = 7;
  kernel.threads_x = 32;
  kernel.threads_y = 32;
  builder.package.kernels.push_back(std::move(added));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  kernel.threads_y = 33;
  expectError(builder, "kernel 'k': is launched as 7 blocks of 32 x 33 threads");
  kernel.threads_y = 0;
  expectError(builder, "kernel 'k': is launched as 7 blocks of 32 x 0 threads");
  kernel.threads_y = 1;
  kernel.blocks = 0;
  expectError(builder, "kernel 'k': is launched as 0 blocks of 32 x 1 threads");
  kernel.blocks = 7;
  kernel.ptx = 2;
  expectError(builder, "kernel 'k': its PTX does not exist");
  kernel.ptx = 0;
  expectError(builder, "kernel 'k': its PTX is none");
  kernel.ptx = -1;
  builder.package.code_objects[1]->data = {1};
  expectError(builder, "code object 1: is PTX without a zero at its end");
  builder.package.code_objects[1]->data = {1, 0};
  builder.package.code_objects[0]->format = artifact::CodeFormat::SharedObject;
  expectError(builder, "code object 0: is SharedObject, the target is 'sm_90'");
  builder.package.target = "cpu:test:";
  builder.package.code_objects.pop_back();
  expectError(builder, "kernel 'k': has a launch size or PTX, but the target is a CPU");
}

TEST(Verify, StateBatchAndScalars) {
  ArtifactBuilder builder({{"shard", 2}});
  builder.group({"shard"});
  uint32_t part = builder.buffer({10}), tokens = builder.buffer({3, 5}, artifact::DataType::I32);
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "u";
  state->elements = 20;
  state->shard_group = 0;
  state->buffer = part;
  auto segment = std::make_unique<artifact::SegmentT>();
  segment->name = "w";
  segment->shape = {4, 5};
  state->segments.push_back(std::move(segment));
  builder.package.state.push_back(std::move(state));
  auto batch = std::make_unique<artifact::BatchTensorT>();
  batch->name = "tokens";
  batch->dtype = artifact::DataType::I32;
  batch->global_shape = {6, 5};
  batch->dims = {artifact::DimRole::Sample, artifact::DimRole::Position};
  batch->splits.push_back(std::make_unique<artifact::DimSplitT>());
  batch->buffer = tokens;
  builder.program().batch.push_back(std::move(batch));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.package.state[0]->segments[0]->offset = 1;
  expectError(builder, "state 'u', parameter 'w': reaches beyond the unit");
  builder.package.state[0]->segments[0]->offset = 0;
  builder.package.state[0]->state = "m";
  expectError(builder, "state 'u': is an optimizer's without a name there, or has a name and is none");
  builder.package.state[0]->role = artifact::StateRole::Optimizer;
  ASSERT_TRUE(builder.build().isOk());
  for (const char *name : {"", "average", "M", "a/b"}) {
    builder.package.state[0]->state = name;
    expectError(builder, "is an optimizer's without a name there");
  }
  builder.package.state[0]->state = "";
  builder.package.state[0]->role = artifact::StateRole::Parameter;
  builder.package.state[0]->elements = 21;
  expectError(builder, "21 elements do not divide by 2");
  builder.package.state[0]->elements = 20;
  builder.program().batch[0]->global_shape = {7, 5};
  expectError(builder, "batch entry 'tokens': its dimension 0 does not divide by 2");
  builder.program().batch[0]->global_shape = {6, 6};
  expectError(builder, "does not hold this rank's part");
  builder.program().batch[0]->global_shape = {6, 5};
  builder.program().batch[0]->splits[0]->dim = 2;
  expectError(builder, "dimension 2 cannot be split, or is already");
  builder.program().batch[0]->splits[0]->dim = 0;
  builder.program().batch[0]->dims = {artifact::DimRole::Sample};
  expectError(builder, "1 roles for 2 dimensions");
  builder.program().batch[0]->dims = {artifact::DimRole::Sample, artifact::DimRole::Sample};
  expectError(builder, "2 dimensions count samples");
  builder.program().batch[0]->dims = {artifact::DimRole::Sample, artifact::DimRole::MicroBatch};
  expectError(builder, "dimension 1 has no role that it can have");
  builder.program().batch[0]->dims = {artifact::DimRole::MicroBatch, artifact::DimRole::Position};
  expectError(builder, "0 dimensions count samples and 1 micro-batches");
  builder.program().batch[0]->dims = {artifact::DimRole::Sample, artifact::DimRole::Position};
  const std::string noRuns = "only integers along positions can be promised to lie side by side";
  builder.program().batch[0]->has_runs = true;
  ASSERT_STATUS_OK(builder.build());
  builder.program().batch[0]->dims = {artifact::DimRole::Sample, artifact::DimRole::None};
  expectError(builder, noRuns);
  builder.program().batch[0]->dims = {artifact::DimRole::Sample, artifact::DimRole::Position};
  builder.program().batch[0]->dtype = artifact::DataType::F32;
  expectError(builder, noRuns);
  builder.program().batch[0]->dtype = artifact::DataType::I32;
  builder.program().batch[0]->has_runs = false;
  builder.result("loss", part, artifact::ResultRole::Loss);
  expectError(builder, "result 'loss': is not one number");
}

TEST(Verify, ScalarsOfABatchHaveNoShape) {
  ArtifactBuilder builder;
  auto batch = std::make_unique<artifact::BatchTensorT>();
  batch->name = "temperature";
  batch->dtype = artifact::DataType::F32;
  batch->buffer = builder.buffer({});
  builder.program().batch.push_back(std::move(batch));
  ASSERT_STATUS_OK(builder.build());
}

TEST(Verify, GroupsNameAxesOfTheMesh) {
  ArtifactBuilder builder({{"shard", 2}});
  builder.group({"seq"});
  expectError(builder, "group 0: the mesh has no axis 'seq'");
  builder.package.groups[0]->axes = {"shard", "shard"};
  expectError(builder, "group 0: axis 'shard' occurs twice");
  builder.package.groups[0]->axes = {"shard"};
  builder.package.mesh[0]->size = 0;
  expectError(builder, "mesh axis 'shard' has size 0");
}

} // namespace
} // namespace tessera
