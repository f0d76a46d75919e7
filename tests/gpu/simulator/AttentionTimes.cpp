//===- AttentionTimes.cpp - times of attention on tensor cores ----------------===//
//
// For a GPU: tests/gpu/attention.py runs these and reads the lines that begin with "time". The simulator has no times.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaAttentionKernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <vector>

namespace tessera::cuda {
namespace {

class Times : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (CUevent *event : {&begin, &end})
      ASSERT_EQ(cuEventCreate(event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  }
  void TearDown() override {
    for (CUevent event : {begin, end})
      cuEventDestroy(event);
    cuStreamDestroy(stream);
  }

  void *allocate(int64_t bytes) {
    CUdeviceptr made = 0;
    EXPECT_EQ(cuMemAlloc(&made, static_cast<size_t>(bytes)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(made, 0x3c, static_cast<size_t>(bytes), stream), CUDA_SUCCESS); // 0.0115 in bf16
    memory.push_back(made);
    return std::bit_cast<void *>(made);
  }

  /// Causal, in bf16: prints milliseconds of a forward and a backward pass.
  void measure(int64_t heads, int64_t tokens, int64_t depth) {
    AttentionLayout p;
    p.batch = 1, p.heads = p.groups = heads, p.queries = p.keys = tokens, p.depth = p.valueDepth = depth;
    p.causal = true;
    for (StridedTensor *tensor : {&p.q, &p.k, &p.v, &p.out, &p.dout, &p.dq, &p.dk, &p.dv})
      *tensor = {allocate(2 * heads * tokens * depth), {heads * tokens * depth, tokens * depth, depth, 1}, false};
    p.lse = {allocate(4 * heads * tokens), {heads * tokens, tokens, 1, 0}, true};
    p.delta = static_cast<float *>(allocate(8 * heads * tokens));
    ASSERT_TRUE(kernels.load(p, artifact::DataType::BF16, AttentionUnits::Tensor).isOk());
    float milliseconds[2] = {0, 0};
    for (bool isBackward : {false, true})
      for (int time = 0; time < 4; ++time) { // the first ones warm up, the last one counts
        ASSERT_EQ(cuEventRecord(begin, stream), CUDA_SUCCESS);
        ASSERT_TRUE(kernels.start(p, artifact::DataType::BF16, AttentionUnits::Tensor, isBackward, stream).isOk());
        ASSERT_EQ(cuEventRecord(end, stream), CUDA_SUCCESS);
        ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
        ASSERT_EQ(cuEventElapsedTime(&milliseconds[isBackward], begin, end), CUDA_SUCCESS);
      }
    std::printf("time heads %lld tokens %lld depth %lld forward %.4f backward %.4f\n", static_cast<long long>(heads),
                static_cast<long long>(tokens), static_cast<long long>(depth), milliseconds[0], milliseconds[1]);
    for (CUdeviceptr each : memory)
      cuMemFree(each);
    memory.clear();
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  AttentionKernels kernels;
  std::vector<CUdeviceptr> memory;
};

TEST_F(Times, DISABLED_Causal) {
  for (int64_t depth : {64, 128})
    for (int64_t tokens : {8192, 32768, 131072})
      measure(1024 / depth, tokens, depth);
}

} // namespace
} // namespace tessera::cuda
