//===- VerifyInstructionsTest.cpp - each check of an instruction ------------===//

#include "tests/runtime/artifact/VerifyTestSupport.h"

#include <functional>
#include <limits>

namespace tessera {
namespace {

using test::ArtifactBuilder;
using test::expectError;

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

TEST(Verify, Scales) {
  using artifact::DataType;
  using artifact::ScaleMode;
  ArtifactBuilder builder;
  constexpr int64_t m = 64, n = 256, k = 384;
  const uint32_t a = builder.buffer({m, k}, DataType::F8E4M3FN), rows = builder.buffer({n, k}, DataType::F8E4M3FN),
                 b = builder.view(rows, {k, n}, {1, k}), c = builder.buffer({m, n}, DataType::BF16),
                 across = builder.buffer({k, n}, DataType::F8E4M3FN);
  auto scales = [&](std::vector<int64_t> shape, DataType dtype = DataType::F32) {
    return static_cast<int32_t>(builder.buffer(std::move(shape), dtype));
  };
  builder.gemm(a, b, c);
  auto &gemm = *builder.program().instructions[0]->operation.AsGemm();
  auto set = [&](ScaleMode aMode, int32_t aScales, ScaleMode bMode, int32_t bScales) {
    gemm.a_scale_mode = aMode;
    gemm.a_scales = aScales;
    gemm.b_scale_mode = bMode;
    gemm.b_scales = bScales;
  };
  const int32_t one = scales({}), ofRows = scales({m}), ofColumns = scales({n}), vectors = scales({3, m}),
                others = scales({3, n}), blocks = scales({2, 4}), unpadded = scales({2, 3}),
                micro = scales({1, 3, 32, 4, 4}, DataType::F8E8M0FNU),
                microColumns = scales({2, 3, 32, 4, 4}, DataType::F8E8M0FNU);
  struct Case {
    ScaleMode aMode;
    int32_t aScales;
    ScaleMode bMode;
    int32_t bScales;
  };
  for (const Case &good :
       {Case{ScaleMode::Tensor, one, ScaleMode::Tensor, one}, Case{ScaleMode::Row, ofRows, ScaleMode::Row, ofColumns},
        Case{ScaleMode::Block128, vectors, ScaleMode::Block128, others},
        Case{ScaleMode::Block128, vectors, ScaleMode::Block128x128, blocks},
        Case{ScaleMode::Block32, micro, ScaleMode::Block32, microColumns}}) {
    set(good.aMode, good.aScales, good.bMode, good.bScales);
    EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  }
  // What a library would read without a word.
  set(ScaleMode::Block128, vectors, ScaleMode::Block128x128, unpadded);
  expectError(builder, "operand b_scales of type F32 and shape [2, 3], expected F32 and [2, 4]");
  set(ScaleMode::Block128, static_cast<int32_t>(builder.buffer({m, 3})), ScaleMode::Block128x128, blocks);
  expectError(builder, "operand a_scales of type F32 and shape [64, 3], expected F32 and [3, 64]");
  set(ScaleMode::Row, ofRows, ScaleMode::Tensor, one);
  expectError(builder, "no product of scales of modes Row and Tensor");
  auto &moved = *builder.package.buffers[static_cast<size_t>(ofRows)];
  moved.offset += 4;
  set(ScaleMode::Row, ofRows, ScaleMode::Row, ofColumns);
  expectError(builder, "operand a_scales must begin at a multiple of 16 bytes");
  moved.offset -= 4;
  auto &operand = *builder.package.buffers[b];
  operand.offset += 8;
  expectError(builder, "operands of 8-bit floats must begin at multiples of 16 bytes");
  operand.offset -= 8;
  operand.iteration_strides = {8};
  expectError(builder, "operands of 8-bit floats must begin at multiples of 16 bytes");
  operand.iteration_strides.clear();
  // A scale by itself may lie anywhere.
  auto &alone = *builder.package.buffers[static_cast<size_t>(one)];
  alone.offset += 4;
  set(ScaleMode::Tensor, one, ScaleMode::Tensor, one);
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  alone.offset -= 4;
  set(ScaleMode::Tensor, -1, ScaleMode::Tensor, one);
  expectError(builder, "operand a_scales is missing");
  set(ScaleMode::Tensor, 99, ScaleMode::Tensor, one);
  expectError(builder, "operand a_scales: buffer 99 of");
  set(static_cast<ScaleMode>(77), one, ScaleMode::Tensor, one);
  expectError(builder, "unknown mode of scales");
  set(ScaleMode::Tensor, one, ScaleMode::Tensor, one);
  gemm.b = across;
  expectError(builder, "need stride 1 along what is contracted");
  gemm.b = b;
  gemm.epilogue = artifact::Epilogue::Gelu;
  expectError(builder, "product of 8-bit floats with a batch or an epilogue");
  gemm.epilogue = artifact::Epilogue::None;
  gemm.a = builder.buffer({m, k}, DataType::BF16);
  expectError(builder, "operand b is of type F8E4M3FN, expected BF16");
  gemm.b = builder.view(builder.buffer({n, k}, DataType::BF16), {k, n}, {1, k});
  expectError(builder, "of a product that is not of 8-bit floats");
  gemm.a = builder.buffer({m, k}, DataType::F8E5M2);
  gemm.b = builder.view(builder.buffer({n, k}, DataType::F8E5M2), {k, n}, {1, k});
  expectError(builder, "product of F8E5M2 and F8E5M2");
  gemm.a = builder.buffer({m, 24}, DataType::F8E4M3FN);
  gemm.b = builder.view(rows, {24, n}, {1, k});
  expectError(builder, "sizes must be multiples of 16");
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

} // namespace
} // namespace tessera
