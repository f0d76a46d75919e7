//===- VerifyTest.cpp - each check of a program ----------------------------===//

#include "tests/runtime/ArtifactBuilder.h"

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

TEST(Verify, BufferMustLieInItsArena) {
  ArtifactBuilder builder;
  uint32_t buffer = builder.buffer({4, 4});
  ASSERT_TRUE(builder.build().isOk());
  builder.program.buffers[buffer]->strides = {5, 1};
  expectError(builder, "buffer 0: reaches beyond its arena of 64 bytes");
  builder.program.buffers[buffer]->strides = {std::numeric_limits<int64_t>::max(), 1};
  expectError(builder, "buffer 0: dimension 0 has stride");
  builder.program.buffers[buffer]->strides = {4, -1};
  expectError(builder, "buffer 0: dimension 1 has stride -1");
  builder.program.buffers[buffer]->strides = {4};
  expectError(builder, "buffer 0: 2 dimensions and 1 strides");
  builder.program.buffers[buffer]->strides = {4, 1};
  builder.program.buffers[buffer]->shape = {int64_t{1} << 40, int64_t{1} << 40};
  expectError(builder, "buffer 0: dimension 1 has size");
  builder.program.buffers[buffer]->shape = {4, 4};
  builder.program.buffers[buffer]->offset = std::numeric_limits<uint64_t>::max() - 3;
  expectError(builder, "reaches beyond its arena");
  builder.program.buffers[buffer]->offset = 2;
  expectError(builder, "offset 2 is not a multiple");
  builder.program.buffers[buffer]->offset = 0;
  builder.program.buffers[buffer]->arena = 9;
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
    artifact::ProgramBuilder program(builder);
    program.add_version(artifact::formatVersion);
    program.add_target(target);
    program.add_arenas(arenas);
    program.add_buffers(buffers);
    program.add_instructions(instructions);
    program.add_locations(locations);
    program.add_num_streams(1);
    artifact::FinishProgramBuffer(builder, program.Finish());
    auto artifact = Artifact::fromBytes(test::serialise(builder), "scalar");
    EXPECT_TRUE(artifact.isOk()) << artifact.status();
  }
}

TEST(Verify, RankAndIterationStridesStayInside) {
  ArtifactBuilder builder({{"shard", 4}});
  builder.group({"shard"});
  uint32_t whole = builder.buffer({16}), part = builder.view(whole, {4}, {1});
  builder.program.buffers[part]->rank_group = 0;
  builder.program.buffers[part]->rank_stride = 16;
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.program.buffers[part]->rank_stride = 20;
  expectError(builder, "buffer 1: reaches beyond its arena");
  builder.program.buffers[part]->rank_group = 1;
  expectError(builder, "group 1 of 1");
  builder.program.buffers[part]->rank_group = -1;
  builder.program.buffers[part]->iteration_stride = 16;
  builder.beginLoop(4);
  builder.fill(part, 1);
  builder.endLoop();
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.program.instructions[0]->operation.AsRepeat()->count = 5;
  expectError(builder, "instruction 1 (node node), operand target: buffer 1 leaves its arena within 5 iterations");
}

TEST(Verify, GemmShapes) {
  ArtifactBuilder builder;
  uint32_t a = builder.buffer({4, 8}), b = builder.buffer({8, 6}), c = builder.buffer({4, 6}),
           d = builder.buffer({6, 4}), wide = builder.buffer({4, 6}, artifact::DataType::F64),
           flat = builder.view(c, {4, 6}, {0, 1});
  builder.gemm(a, b, c);
  ASSERT_TRUE(builder.build().isOk());
  auto &gemm = *builder.program.instructions[0]->operation.AsGemm();
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
  auto &gemm = *builder.program.instructions[0]->operation.AsGemm();
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
  auto &stored = *builder.program.instructions[0]->operation.AsCollective();
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
  builder.program.instructions.pop_back();
  builder.wait(7, 0);
  expectError(builder, "event 7 of 1");
  builder.program.instructions.pop_back();
  builder.gemm(a, a, b);
  builder.program.instructions.back()->stream = 2;
  expectError(builder, "Gemm must be on the compute stream, is on stream 2");
  builder.program.instructions.back()->stream = 9;
  expectError(builder, "stream 9 of 4");
  builder.program.instructions.pop_back();
  builder.beginLoop(0);
  expectError(builder, "repeats 0 times");
}

TEST(Verify, NestedLoopsAreRefused) {
  ArtifactBuilder builder;
  builder.beginLoop(2);
  builder.beginLoop(2);
  expectError(builder, "a repeat inside a repeat");
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
  builder.program.code_objects.push_back(std::move(object));
  auto kernel = std::make_unique<artifact::KernelT>();
  kernel->symbol = "k";
  builder.program.kernels.push_back(std::move(kernel));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.grain = 0;
  expectError(builder, "extent 4, grain 0");
  stored.grain = 1;
  stored.buffers = {5};
  expectError(builder, "operand 0: buffer 5 of 0");
  stored.buffers.clear();
  builder.program.kernels[0]->code_object = 3;
  expectError(builder, "kernel 'k': its code object does not exist");
  builder.program.kernels[0]->code_object = 0;
  builder.program.code_objects[0]->format = artifact::CodeFormat::Ptx;
  expectError(builder, "code object 0: is Ptx, the target is 'cpu:test:'");
}

TEST(Verify, KernelsForAGpuSayHowTheyAreLaunched) {
  ArtifactBuilder builder;
  builder.program.target = "sm_90";
  for (artifact::CodeFormat format : {artifact::CodeFormat::Cubin, artifact::CodeFormat::Ptx}) {
    auto object = std::make_unique<artifact::CodeObjectT>();
    object->target = "sm_90";
    object->format = format;
    object->data = {1, 0};
    builder.program.code_objects.push_back(std::move(object));
  }
  auto added = std::make_unique<artifact::KernelT>();
  artifact::KernelT &kernel = *added;
  kernel.symbol = "k";
  kernel.ptx = 1;
  kernel.blocks = 7;
  kernel.threads_x = 32;
  kernel.threads_y = 32;
  builder.program.kernels.push_back(std::move(added));
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
  builder.program.code_objects[1]->data = {1};
  expectError(builder, "code object 1: is PTX without a zero at its end");
  builder.program.code_objects[1]->data = {1, 0};
  builder.program.code_objects[0]->format = artifact::CodeFormat::SharedObject;
  expectError(builder, "code object 0: is SharedObject, the target is 'sm_90'");
  builder.program.target = "cpu:test:";
  builder.program.code_objects.pop_back();
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
  builder.program.state.push_back(std::move(state));
  auto batch = std::make_unique<artifact::BatchTensorT>();
  batch->name = "tokens";
  batch->dtype = artifact::DataType::I32;
  batch->global_shape = {6, 5};
  batch->shard_group = 0;
  batch->buffer = tokens;
  builder.program.batch.push_back(std::move(batch));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.program.state[0]->segments[0]->offset = 1;
  expectError(builder, "state 'u', parameter 'w': reaches beyond the unit");
  builder.program.state[0]->segments[0]->offset = 0;
  builder.program.state[0]->elements = 21;
  expectError(builder, "21 elements do not divide by 2");
  builder.program.state[0]->elements = 20;
  builder.program.batch[0]->global_shape = {7, 5};
  expectError(builder, "batch entry 'tokens': its batch does not divide by 2");
  builder.program.batch[0]->global_shape = {6, 6};
  expectError(builder, "does not hold this rank's part");
  builder.program.batch[0]->global_shape = {6, 5};
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
  builder.program.state.push_back(std::move(state));
  auto derived = std::make_unique<artifact::DerivedTensorT>();
  derived->buffer = builder.buffer({10}, artifact::DataType::BF16);
  builder.program.derived.push_back(std::move(derived));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.program.derived[0]->state = 1;
  expectError(builder, "derived tensor 0: state 1 does not exist");
  builder.program.derived[0]->state = 0;
  builder.program.derived[0]->buffer = builder.buffer({20}, artifact::DataType::BF16);
  expectError(builder, "derived tensor 0: its buffer of shape [20] does not hold this rank's part");
  builder.program.derived[0]->buffer = builder.buffer({10}, artifact::DataType::F16);
  expectError(builder, "derived tensor 0: its buffer is of type F16, expected BF16");
  builder.program.derived[0]->buffer = 99;
  expectError(builder, "derived tensor 0");
  builder.program.state[0]->dtype = artifact::DataType::F64;
  builder.program.state[0]->buffer = builder.buffer({10}, artifact::DataType::F64);
  expectError(builder, "derived tensor 0: is made from F64, expected F32");
}

TEST(Verify, GroupsNameAxesOfTheMesh) {
  ArtifactBuilder builder({{"shard", 2}});
  builder.group({"seq"});
  expectError(builder, "group 0: the mesh has no axis 'seq'");
  builder.program.groups[0]->axes = {"shard", "shard"};
  expectError(builder, "group 0: axis 'shard' occurs twice");
  builder.program.groups[0]->axes = {"shard"};
  builder.program.mesh[0]->size = 0;
  expectError(builder, "mesh axis 'shard' has size 0");
}

} // namespace
} // namespace tessera
