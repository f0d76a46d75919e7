//===- VerifyTest.cpp - each check of a program ----------------------------===//

#include "runtime/artifact/LearningRate.h"
#include "tests/runtime/ArtifactBuilder.h"
#include "tests/runtime/TestSupport.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace tessera {
namespace {

using test::ArtifactBuilder;

void expectError(const ArtifactBuilder &builder, const std::string &part) {
  Status status = builder.build().status();
  ASSERT_FALSE(status.isOk()) << "expected: " << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

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

TEST(Verify, GemmShapes) {
  ArtifactBuilder builder;
  uint32_t a = builder.buffer({4, 8}), b = builder.buffer({8, 6}), c = builder.buffer({4, 6}),
           d = builder.buffer({6, 4}), wide = builder.buffer({4, 6}, artifact::DataType::F64),
           flat = builder.view(c, {4, 6}, {0, 1});
  builder.gemm(a, b, c);
  ASSERT_TRUE(builder.build().isOk());
  auto &gemm = *builder.program().instructions[0]->operation.AsGemm();
  gemm.c = d;
  expectError(builder, "instruction 0 (node node): product of [4, 8] and [8, 6] into [6, 4]");
  gemm.c = wide;
  expectError(builder, "operand c: type F64, the CPU computes in F32");
  uint32_t narrowA = builder.buffer({4, 8}, artifact::DataType::BF16),
           narrowB = builder.buffer({8, 6}, artifact::DataType::BF16),
           narrowC = builder.buffer({4, 6}, artifact::DataType::BF16);
  gemm.c = narrowC;
  expectError(builder, "operand c is of type BF16, expected F32");
  gemm.a = narrowA;
  expectError(builder, "operand b is of type F32, expected BF16");
  gemm.b = narrowB;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  gemm.c = c;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  gemm.a = a;
  gemm.b = b;
  gemm.c = flat;
  expectError(builder, "result c has stride 0 in dimension 0");
  gemm.c = 99;
  expectError(builder, "operand c: buffer 99 of 9");
}

TEST(Verify, Epilogues) {
  using artifact::Epilogue;
  ArtifactBuilder builder;
  uint32_t a = builder.buffer({4, 8}), b = builder.buffer({8, 6}), c = builder.buffer({4, 6});
  auto bias = static_cast<int32_t>(builder.buffer({6})), rows = static_cast<int32_t>(builder.buffer({4})),
       aux = static_cast<int32_t>(builder.buffer({4, 6})),
       narrow = static_cast<int32_t>(builder.buffer({6}, artifact::DataType::BF16)),
       gaps = static_cast<int32_t>(builder.view(c, {6}, {2}));
  builder.gemm(a, b, c);
  auto &gemm = *builder.program().instructions[0]->operation.AsGemm();
  struct Case {
    Epilogue epilogue;
    int32_t input, output;
  };
  for (auto [epilogue, input, output] :
       {Case{Epilogue::Bias, bias, -1}, Case{Epilogue::Gelu, -1, -1}, Case{Epilogue::GeluAux, -1, aux},
        Case{Epilogue::GeluBias, bias, -1}, Case{Epilogue::GeluAuxBias, bias, aux}, Case{Epilogue::GeluGrad, aux, -1},
        Case{Epilogue::GeluGradBiasGrad, aux, bias}, Case{Epilogue::BiasGradA, -1, rows},
        Case{Epilogue::BiasGradB, -1, bias}}) {
    gemm.epilogue = epilogue;
    gemm.epilogue_input = input;
    gemm.epilogue_output = output;
    EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
    gemm.epilogue_input = input < 0 ? bias : -1;
    expectError(builder, "epilogue " + std::string(artifact::EnumNameEpilogue(epilogue)) + " needs");
  }
  auto expectBad = [&](Epilogue epilogue, int32_t input, int32_t output, const std::string &message) {
    gemm.epilogue = epilogue;
    gemm.epilogue_input = input;
    gemm.epilogue_output = output;
    expectError(builder, message);
  };
  expectBad(Epilogue::None, bias, -1, "epilogue None needs no input and no output");
  expectBad(static_cast<Epilogue>(77), -1, -1, "unknown epilogue");
  expectBad(Epilogue::Bias, 99, -1, "operand epilogue_input: buffer 99 of");
  expectBad(Epilogue::Bias, rows, -1, "operand epilogue_input of type F32 and shape [4], expected F32 and [6]");
  expectBad(Epilogue::Bias, narrow, -1, "operand epilogue_input of type BF16");
  expectBad(Epilogue::Bias, gaps, -1, "with gaps, expected F32 and [6]");
  expectBad(Epilogue::GeluAux, -1, bias, "operand epilogue_output of type F32 and shape [6], expected F32 and [4, 6]");
  expectBad(Epilogue::BiasGradA, -1, bias, "shape [6], expected F32 and [4]");
  gemm.beta = 1;
  expectBad(Epilogue::Bias, bias, -1, "epilogue Bias needs a contiguous result and a beta of 0");
  gemm.epilogue = Epilogue::BiasGradB;
  gemm.epilogue_input = -1;
  gemm.epilogue_output = bias;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
}

TEST(Verify, ConvShapes) {
  ArtifactBuilder builder;
  artifact::ConvT conv;
  conv.x = builder.buffer({2, 4, 9, 9});
  conv.w = builder.buffer({6, 2, 3, 3});
  conv.y = builder.buffer({2, 6, 5, 5});
  conv.strides = {2, 2};
  conv.padding = {1, 1, 1, 1};
  conv.dilations = {1, 1};
  conv.groups = 2;
  auto &stored = builder.add(std::move(conv));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.groups = 1;
  expectError(builder, "in 1 groups");
  stored.groups = 2;
  stored.strides = {1, 2};
  expectError(builder, "convolution of [2, 4, 9, 9] with [6, 2, 3, 3] into [2, 6, 5, 5]");
  stored.strides = {0, 2};
  expectError(builder, "stride, dilation or padding out of range");
  stored.strides = {2};
  expectError(builder, "expected 2 strides");
}

TEST(Verify, AttentionShapes) {
  ArtifactBuilder builder;
  artifact::AttentionT attention;
  attention.q = builder.buffer({2, 4, 10, 8});
  attention.k = builder.buffer({2, 2, 12, 8});
  attention.v = builder.buffer({2, 2, 12, 6});
  attention.out = builder.buffer({2, 4, 10, 6});
  attention.lse = builder.buffer({2, 4, 10});
  attention.mask = static_cast<int32_t>(builder.buffer({2, 1, 1, 12}, artifact::DataType::Bool));
  uint32_t threeHeads = builder.buffer({2, 3, 10, 8}),
           longMask = builder.buffer({2, 1, 1, 13}, artifact::DataType::Bool);
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.q = threeHeads;
  expectError(builder, "3 heads in 2 groups");
  stored.q = attention.q;
  stored.mask = static_cast<int32_t>(longMask);
  expectError(builder, "mask of shape [2, 1, 1, 13] for scores [2, 4, 10, 12]");
  stored.mask = attention.mask;
  stored.lse = attention.q;
  expectError(builder, "operand lse has 4 dimensions, expected 3");
}

TEST(Verify, AttentionGradNeedsTwoNumbersPerRow) {
  ArtifactBuilder builder;
  artifact::AttentionGradT attention;
  attention.q = builder.buffer({2, 4, 10, 8});
  attention.k = builder.buffer({2, 2, 12, 8});
  attention.v = builder.buffer({2, 2, 12, 6});
  attention.out = builder.buffer({2, 4, 10, 6});
  attention.lse = builder.buffer({2, 4, 10});
  attention.dout = builder.buffer({2, 4, 10, 6});
  attention.dq = builder.buffer({2, 4, 10, 8});
  attention.dk = builder.buffer({2, 2, 12, 8});
  attention.dv = builder.buffer({2, 2, 12, 6});
  attention.workspace = static_cast<int32_t>(builder.buffer({2, 2, 4, 10}));
  uint32_t one = builder.buffer({1, 2, 4, 10}),
           spread = builder.view(builder.buffer({320}), {2, 2, 4, 10}, {160, 80, 20, 2});
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.workspace = static_cast<int32_t>(one);
  expectError(builder, "workspace");
  stored.workspace = static_cast<int32_t>(spread);
  expectError(builder, "workspace is not contiguous");
}

TEST(Verify, Collectives) {
  ArtifactBuilder builder({{"shard", 2}});
  uint32_t group = builder.group({"shard"}), part = builder.buffer({24}), whole = builder.buffer({48});
  uint32_t inside = builder.view(whole, {24}, {1}, 12), spread = builder.view(whole, {24}, {2});
  builder.collective(artifact::CollectiveKind::AllGather, group, part, whole, 1);
  auto &stored = *builder.program().instructions[0]->operation.AsCollective();
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.kind = artifact::CollectiveKind::ReduceScatter;
  expectError(builder, "ReduceScatter of [24] into [48] over 2 ranks");
  stored.kind = artifact::CollectiveKind::AllGather;
  stored.input = inside;
  expectError(builder, "input and output of a collective overlap");
  stored.input = spread;
  expectError(builder, "must be contiguous");
  stored.kind = artifact::CollectiveKind::AllReduce;
  stored.input = stored.output = whole;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.reduction = artifact::ReductionKind::Max;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.kind = artifact::CollectiveKind::Permute;
  expectError(builder, "Permute with a reduction");
  stored.reduction = static_cast<artifact::ReductionKind>(7);
  expectError(builder, "unknown kind of reduction");
  stored.kind = artifact::CollectiveKind::AllReduce;
  stored.reduction = artifact::ReductionKind::Sum;
  stored.group = 3;
  expectError(builder, "group 3 of 1");
}

TEST(Verify, StreamsEventsAndLoops) {
  ArtifactBuilder builder;
  uint32_t a = builder.buffer({4, 4}), b = builder.buffer({4, 4}), event = builder.newEvent();
  builder.record(event, 1);
  ASSERT_TRUE(builder.build().isOk());
  builder.record(event, 2);
  expectError(builder, "event 0 is recorded on two streams");
  builder.program().instructions.pop_back();
  builder.wait(7, 0);
  expectError(builder, "event 7 of 1");
  builder.program().instructions.pop_back();
  builder.gemm(a, a, b);
  builder.program().instructions.back()->stream = 2;
  expectError(builder, "Gemm must be on the compute stream, is on stream 2");
  builder.program().instructions.back()->stream = 9;
  expectError(builder, "stream 9 of 4");
  builder.program().instructions.pop_back();
  builder.beginLoop(0);
  expectError(builder, "repeats 0 times");
}

TEST(Verify, NestedLoopsAreBounded) {
  ArtifactBuilder builder;
  uint32_t whole = builder.buffer({2, 3, 4}), part = builder.view(whole, {4}, {1});
  builder.package.buffers[part]->iteration_strides = {48, 16};
  builder.beginLoop(2);
  builder.beginLoop(3);
  builder.fill(part, 1);
  ASSERT_STATUS_OK(builder.build());
  // By the loop that it is in, not by how often it runs in all.
  builder.package.buffers[part]->iteration_strides = {16, 48};
  expectError(builder, "buffer 1 leaves its arena within 2 x 3 iterations");
  builder.package.buffers[part]->iteration_strides = {0, 0, 0, 0, 16};
  expectError(builder, "buffer 1: 5 strides between iterations");
  builder.package.buffers[part]->iteration_strides = {48, 16};
  builder.beginLoop(2);
  builder.beginLoop(2);
  ASSERT_STATUS_OK(builder.build());
  builder.beginLoop(1);
  expectError(builder, "more than 4 repeats inside each other");
}

TEST(Verify, NestedLoopsDoNotRunForEver) {
  ArtifactBuilder builder;
  builder.beginLoop(int64_t{1} << 20);
  builder.beginLoop(int64_t{1} << 20);
  expectError(builder, "repeats too often with the loops around it");
}

TEST(Verify, ProgramsAreWhatTheySay) {
  ArtifactBuilder builder;
  uint32_t number = builder.buffer({});
  builder.addProgram(artifact::ProgramKind::Evaluate, "evaluate");
  expectError(builder, "program 'evaluate': results: 0 sums and 0 counts of a loss, expected 1 of each");
  builder.result("loss_sum", number, artifact::ResultRole::LossSum);
  builder.result("loss_count", number, artifact::ResultRole::LossCount);
  ASSERT_STATUS_OK(builder.build());
  builder.wait(0, 0); // of the first program, which has no events
  expectError(builder, "program 'evaluate': instruction 0 (node node): event 0 of 0");
  builder.current().instructions.clear();
  builder.fill(7, 0);
  expectError(builder, "program 'evaluate': instruction 0 (node node), operand target: buffer 7 of 1");
  builder.current().instructions.clear();
  builder.current().name = "step";
  expectError(builder, "program 'step': there is another one of its kind or name");
  builder.current().name = "evaluate";
  std::swap(builder.package.programs[0], builder.package.programs[1]);
  expectError(builder, "program 'evaluate': the first program trains, and no other");
  builder.package.programs.clear();
  expectError(builder, "programs: there are 0");
}

TEST(Verify, StreamsAreKnown) {
  ArtifactBuilder builder;
  builder.package.streams[2]->kind = artifact::StreamKind::Compute;
  expectError(builder, "stream 2: is of kind Compute; the first stream computes, and no other");
  builder.package.streams[2]->kind = artifact::StreamKind::Gather;
  ASSERT_STATUS_OK(builder.build());
  builder.package.streams[2]->group = 0;
  expectError(builder, "stream 2: group 0 of 0");
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
  builder.result("loss", part, artifact::ResultRole::Loss);
  expectError(builder, "result 'loss': is not one number");
}

TEST(Verify, DerivedTensorsAreOfAState) {
  ArtifactBuilder builder({{"shard", 2}});
  builder.group({"shard"});
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "u";
  state->elements = 20;
  state->shard_group = 0;
  state->buffer = builder.buffer({10});
  builder.package.state.push_back(std::move(state));
  auto derived = std::make_unique<artifact::DerivedTensorT>();
  derived->buffer = builder.buffer({10}, artifact::DataType::BF16);
  builder.package.derived.push_back(std::move(derived));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.package.derived[0]->state = 1;
  expectError(builder, "derived tensor 0: state 1 does not exist");
  builder.package.derived[0]->state = 0;
  builder.package.derived[0]->buffer = builder.buffer({20}, artifact::DataType::BF16);
  expectError(builder, "derived tensor 0: its buffer of shape [20] does not hold this rank's part");
  builder.package.derived[0]->buffer = builder.buffer({10}, artifact::DataType::F16);
  expectError(builder, "derived tensor 0: its buffer is of type F16, expected BF16");
  builder.package.derived[0]->buffer = 99;
  expectError(builder, "derived tensor 0");
  builder.package.state[0]->dtype = artifact::DataType::F64;
  builder.package.state[0]->buffer = builder.buffer({10}, artifact::DataType::F64);
  expectError(builder, "derived tensor 0: is made from F64, expected F32");
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
