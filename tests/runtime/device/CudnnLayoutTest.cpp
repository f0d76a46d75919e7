//===- CudnnLayoutTest.cpp - tensors as cuDNN's graphs see them ----------===//

#include "runtime/device/cuda/CudnnLayout.h"
#include "runtime/artifact/GpuAttention.h"
#include "runtime/device/cuda/AttentionPlan.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

using artifact::DataType;
using Dims = std::vector<int64_t>;

/// An address that nothing reads.
TensorView view(Dims shape, Dims strides, DataType dtype, uintptr_t address = 0x1000) {
  TensorView made;
  made.data = reinterpret_cast<void *>(address);
  made.dtype = dtype;
  made.shape = std::move(shape);
  made.strides = std::move(strides);
  return made;
}

/// [B, H, T, D] stored as [B, T, H, D].
TensorView heads(int64_t heads, int64_t rows, int64_t depth, DataType dtype = DataType::BF16) {
  return view({2, heads, rows, depth}, {heads * rows * depth, depth, heads * depth, 1}, dtype);
}

AttentionViews attention(int64_t groups, int64_t queries, int64_t keys, int64_t depth, DataType dtype,
                         bool causal = true) {
  AttentionViews made;
  made.causal = causal;
  made.q = made.dq = heads(6, queries, depth, dtype);
  made.k = made.dk = made.v = made.dv = heads(groups, keys, depth, dtype);
  made.out = made.dout = heads(6, queries, depth, dtype);
  made.lse = view({2, 6, queries}, {6 * queries, queries, 1}, DataType::F32);
  return made;
}

TEST(CudnnLayout, KeepsShapesAndStrides) {
  CudnnTensor made = cudnnTensor(heads(6, 100, 64));
  EXPECT_EQ(made.dims, (Dims{2, 6, 100, 64}));
  EXPECT_EQ(made.strides, (Dims{38400, 64, 384, 1}));
  EXPECT_EQ(made.dtype, DataType::BF16);
  EXPECT_EQ(made.alignment, 16);
}

TEST(CudnnLayout, TransposesTheLastTwoDimensions) {
  CudnnTensor made = transposed(cudnnTensor(heads(6, 100, 64)));
  EXPECT_EQ(made.dims, (Dims{2, 6, 64, 100}));
  EXPECT_EQ(made.strides, (Dims{38400, 64, 1, 384}));
}

TEST(CudnnLayout, DenseTensorsHaveNoGaps) {
  CudnnTensor made = denseTensor({2, 3, 5, 7});
  EXPECT_EQ(made.strides, (Dims{105, 35, 7, 1}));
  EXPECT_EQ(scratchBytes(made), 1024U); // 840, rounded up
  EXPECT_EQ(scratchBytes(denseTensor({2, 3, 5, 7}, DataType::BF16)), 512U);
}

TEST(CudnnLayout, AlignmentIsThatOfEveryRowInEveryIteration) {
  EXPECT_EQ(cudnnAlignment(view({4, 8}, {8, 1}, DataType::BF16), 0), 16);
  EXPECT_EQ(cudnnAlignment(view({4, 6}, {6, 1}, DataType::BF16), 0), 4);
  EXPECT_EQ(cudnnAlignment(view({1, 6}, {6, 1}, DataType::BF16), 0), 16); // one row
  EXPECT_EQ(cudnnAlignment(view({4, 8}, {8, 1}, DataType::BF16, 0x1002), 0), 2);
  EXPECT_EQ(cudnnAlignment(view({4, 8}, {8, 1}, DataType::BF16), 24), 8);
}

TEST(CudnnRefusal, TakesHalvesOfUsualShapes) {
  for (bool isBackward : {false, true})
    for (int64_t groups : {6, 2, 1}) {
      EXPECT_EQ(cudnnRefusal(attention(groups, 100, 100, 64, DataType::BF16), isBackward), "");
      EXPECT_EQ(cudnnRefusal(attention(groups, 100, 60, 128, DataType::F16, false), isBackward), "");
    }
}

TEST(CudnnRefusal, SaysWhy) {
  auto refusal = [](const AttentionViews &views, bool isBackward = true) { return cudnnRefusal(views, isBackward); };
  EXPECT_EQ(refusal(attention(6, 64, 64, 64, DataType::F32)), "operands are neither bf16 nor f16");
  EXPECT_EQ(refusal(attention(6, 64, 32, 64, DataType::BF16)), "it is causal over 64 queries and 32 keys");
  EXPECT_NE(refusal(attention(6, 64, 64, 60, DataType::BF16)), "");
  EXPECT_NE(refusal(attention(6, 64, 64, 256, DataType::BF16)), "");
  EXPECT_EQ(refusal(attention(6, 64, 64, 256, DataType::BF16), false), "");
  AttentionViews views = attention(6, 64, 64, 64, DataType::BF16);
  views.isPartial = true; // it reads the lse that it is given
  views.window = 64;      // as many as there are
  EXPECT_EQ(refusal(views), "");
  views.window = 63;
  EXPECT_EQ(refusal(views), "each query sees a window of 63 keys");
  views.window = 0;
  views.begin = view({1, 64}, {64, 1}, DataType::I64);
  views.end = view({1, 64}, {64, 1}, DataType::I64);
  EXPECT_EQ(refusal(views), "each query sees a range of keys of its own");
  views.begin.reset();
  views.end.reset();
  views.mask = view({2, 1, 64, 64}, {4096, 4096, 64, 1}, DataType::F32);
  EXPECT_NE(refusal(views), "");
  views.mask.reset();
  for (TensorView *result : {&views.out, &views.dq, &views.dk, &views.dv}) {
    result->dtype = DataType::F32;
    EXPECT_EQ(refusal(views), "a result is f32 where its operands are not");
    result->dtype = DataType::BF16;
  }
  views.v.strides[3] = 2;
  EXPECT_EQ(refusal(views), "an operand's innermost stride is 2");
  views.v.strides[3] = 1;
  views.dk.data = reinterpret_cast<void *>(uintptr_t{0x1008});
  EXPECT_EQ(refusal(views), "an operand is not aligned to 16 bytes");
  views.dk.data = views.k.data;
  views.lse.strides[1] = 65;
  EXPECT_EQ(refusal(views), "lse is not contiguous");
}

TEST(CudnnRefusal, GradientsThatWouldNeedALargeWorkspace) {
  // 2 bytes of each score: 2 x 6 heads of 21144 tokens are just below 10 GiB.
  EXPECT_EQ(cudnnRefusal(attention(6, 21144, 21144, 64, DataType::BF16), true), "");
  const AttentionViews large = attention(6, 21160, 21160, 64, DataType::BF16);
  EXPECT_EQ(cudnnRefusal(large, true),
            "its deterministic gradient would need a workspace of 10248 MiB (more than 10240)");
  EXPECT_EQ(cudnnRefusal(large, false), "");
  EXPECT_EQ(cudnnRefusal(large, true, /*isDeterministic=*/false), "");
  // Of grouped heads, gradients of the keys and values of all heads are kept, too.
  EXPECT_NE(cudnnRefusal(attention(2, 21144, 21144, 64, DataType::BF16), true), "");
  AttentionViews other = large; // that nothing else but the slow kernels would take
  other.scale = -1;
  EXPECT_EQ(cudnnRefusal(other, true), "");
}

TEST(TensorRefusal, SaysWhy) {
  auto refusal = [](const AttentionViews &views) { return tensorRefusal(views, true); };
  AttentionViews views = attention(2, 64, 32, 128, DataType::F16);
  views.window = 16;
  views.begin = view({1, 64}, {64, 1}, DataType::I64);
  views.end = view({1, 64}, {64, 1}, DataType::I64);
  views.dq.dtype = DataType::F32;
  views.lse.strides[1] = 65;
  EXPECT_EQ(refusal(views), "");
  EXPECT_EQ(refusal(attention(6, 64, 64, 64, DataType::F32)), "operands are neither bf16 nor f16");
  EXPECT_EQ(refusal(attention(6, 64, 64, 136, DataType::BF16)),
            "heads of size 136 (they take multiples of 8 up to 128)");
  EXPECT_NE(refusal(attention(6, 64, 64, 60, DataType::BF16)), "");
  views.scale = 0;
  EXPECT_EQ(refusal(views), "its scale is not positive");
  views.scale = 1;
  views.mask = view({2, 1, 64, 32}, {2048, 2048, 32, 1}, DataType::Bool);
  EXPECT_EQ(refusal(views), "it has a mask");
  views.mask.reset();
  views.dv.data = reinterpret_cast<void *>(uintptr_t{0x1008});
  EXPECT_EQ(refusal(views), "an operand is not aligned to 16 bytes");
}

TEST(GpuAttention, Units) {
  GpuAttention a;
  a.queries = a.keys = 4096, a.depth = a.valueDepth = 128, a.heads = a.groups = 8, a.isCausal = a.isBackward = true;
  EXPECT_EQ(attentionUnits(a), AttentionUnits::Cudnn); // 256 MiB
  a.hasWideResults = true;
  EXPECT_EQ(attentionUnits(a), AttentionUnits::Tensor);
  a.hasMask = true;
  EXPECT_EQ(attentionUnits(a), AttentionUnits::Scalar);
  a.hasMask = a.hasWideResults = false;
  a.queries = a.keys = 1 << 20;
  EXPECT_EQ(attentionUnits(a), AttentionUnits::Tensor);
  EXPECT_EQ(cudnnGradientBytes(a), int64_t{16} << 40);
  a.isBackward = false;
  EXPECT_EQ(attentionUnits(a), AttentionUnits::Cudnn);
}

} // namespace
} // namespace tessera::cuda
