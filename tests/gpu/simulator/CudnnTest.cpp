//===- CudnnTest.cpp - what the simulated cuDNN computes and refuses ----------===//
//
// Through the backend's own wrapper (CudnnPlans.h), and where that cannot say something wrong, through the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudnnPlans.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>

namespace tessera::cuda {
namespace {

using artifact::ConvKind;
using artifact::DataType;
using Id = CudnnGraph::Id;
using Dims = std::vector<int64_t>;

class SimulatedCudnn : public testing::Test {
protected:
  void SetUp() override {
    // A GPU that has failed stays so: each test that makes one fail takes the next.
    setenv("TESSERA_SIM_DEVICES", "16", 1);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    next();
  }
  void TearDown() override { leave(); }

  void next() {
    leave();
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, ++device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory, words * 4), CUDA_SUCCESS);
    ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  }
  void leave() {
    if (!handle)
      return;
    cudnnDestroy(std::exchange(handle, nullptr));
    cuMemFree(memory);
    cuStreamDestroy(stream);
    cuDevicePrimaryCtxRelease(device);
  }

  /// Runs a graph's plan on operands at places of the memory, in words; the workspace is its second half.
  std::vector<float> run(const CudnnGraph &graph, const std::vector<float> &before, const std::vector<uint64_t> &places,
                         uint64_t workspace = words / 2) {
    auto plan = CudnnPlan::make(graph, handle);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    if (!plan.isOk())
      return {};
    std::vector<float> after(before.size(), -1);
    EXPECT_EQ(cuMemcpyHtoD(memory, before.data(), before.size() * 4), CUDA_SUCCESS);
    std::vector<void *> operands;
    for (uint64_t place : places)
      operands.push_back(std::bit_cast<void *>(memory + place * 4));
    Status started = (*plan)->start(operands, std::bit_cast<void *>(memory + workspace * 4), stream);
    EXPECT_TRUE(started.isOk()) << started.message();
    ended = cuStreamSynchronize(stream);
    if (ended == CUDA_SUCCESS) {
      EXPECT_EQ(cuMemcpyDtoH(after.data(), memory, after.size() * 4), CUDA_SUCCESS);
    }
    return after;
  }

  /// Why a graph of what `build` describes has no plan.
  template <typename Build> std::string refusal(Build build) {
    CudnnGraph graph;
    build(graph);
    auto plan = CudnnPlan::make(graph, handle);
    return plan.isOk() ? "" : plan.status().message();
  }
  static bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

  static constexpr uint64_t words = 4096;
  static inline int device = -1;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  cudnnHandle_t handle = nullptr;
  CUresult ended = CUDA_SUCCESS;
};

TEST_F(SimulatedCudnn, MultipliesByStridesAndGroups) {
  // Two matrices [1, 2] by one [2, 2] that is stored transposed.
  CudnnGraph graph;
  Id a = graph.operand(denseTensor({1, 2, 1, 2})), b = graph.operand(transposed(denseTensor({1, 1, 2, 2}))),
     c = graph.operand(denseTensor({1, 2, 1, 2}));
  graph.multiply(a, b, c);
  std::vector<float> after = run(graph, {1, 2, 3, 4, 10, 20, 30, 40, 0, 0, 0, 0}, {0, 4, 8});
  EXPECT_EQ(std::vector<float>(after.end() - 4, after.end()), (std::vector<float>{50, 110, 110, 250}));
}

TEST_F(SimulatedCudnn, RoundsWhatIsVirtual) {
  CudnnGraph graph;
  Id x = graph.operand(denseTensor({1, 1, 1, 4})), y = graph.operand(denseTensor({1, 1, 1, 1})),
     narrow = graph.temporary(denseTensor({1, 1, 1, 4}, DataType::BF16));
  graph.pointwise({CUDNN_POINTWISE_ADD, x, graph.constant(256, 4)}, narrow);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, narrow, y);
  // 257 is halfway between 256 and 258, and 259 between 258 and 260: to the even one.
  EXPECT_EQ(run(graph, {0, 1, 2, 3, 0}, {0, 4}).back(), 256 + 256 + 258 + 260);
}

TEST_F(SimulatedCudnn, ConvolvesWithUnequalPadding) {
  CudnnGraph graph;
  CudnnGraph::Convolution how{ConvKind::Forward, {1, 2}, {0, 1}, {0, 0}, {1, 1}, 0, 0, 0};
  how.x = graph.operand(denseTensor({1, 1, 1, 4}));
  how.w = graph.operand(denseTensor({1, 1, 1, 2}));
  how.y = graph.operand(denseTensor({1, 1, 1, 2}));
  graph.convolution(how);
  std::vector<float> after = run(graph, {1, 2, 3, 4, 10, 100, 0, 0, -1, -1}, {0, 4, 8});
  EXPECT_EQ(std::vector<float>(after.end() - 2, after.end()), (std::vector<float>{100, 320}));
}

TEST_F(SimulatedCudnn, RunsOperationsInTheOrderTheyNeed) {
  CudnnGraph graph;
  Id x = graph.operand(denseTensor({1, 1, 1, 1})), y = graph.operand(denseTensor({1, 1, 1, 1})),
     sum = graph.temporary(denseTensor({1, 1, 1, 1}));
  graph.pointwise({CUDNN_POINTWISE_MUL, sum, sum}, y);
  graph.pointwise({CUDNN_POINTWISE_ADD, x, x}, sum);
  EXPECT_EQ(run(graph, {3, 0, 0, 0, 0}, {0, 4}).back(), 36);
}

TEST_F(SimulatedCudnn, RefusesGraphs) {
  auto dense = [](Dims dims) { return denseTensor(std::move(dims)); };
  auto product = [&](const Dims &a, const Dims &b, const Dims &c) {
    return refusal([&](CudnnGraph &graph) {
      graph.multiply(graph.operand(dense(a)), graph.operand(dense(b)), graph.operand(dense(c)));
    });
  };
  EXPECT_EQ(product({2, 4, 8, 16}, {2, 2, 16, 8}, {2, 4, 8, 8}), "");
  EXPECT_TRUE(has(product({2, 4, 8, 16}, {2, 3, 16, 8}, {2, 4, 8, 8}), "the batches of a product"));
  EXPECT_TRUE(has(product({2, 4, 8, 16}, {2, 4, 12, 8}, {2, 4, 8, 8}), "the shapes of a product"));
  EXPECT_TRUE(has(product({4, 8, 16}, {2, 4, 16, 8}, {2, 4, 8, 8}), "other ranks"));
  auto sum = [&](const Dims &b, const Dims &result) {
    return refusal([&](CudnnGraph &graph) {
      Id x = graph.operand(dense({2, 4, 8, 8})), other = graph.operand(dense(b)), y = graph.operand(dense(result));
      graph.pointwise({CUDNN_POINTWISE_ADD, x, other}, y);
    });
  };
  EXPECT_EQ(sum({2, 4, 8, 1}, {2, 4, 8, 8}), "");
  EXPECT_TRUE(has(sum({2, 2, 8, 8}, {2, 4, 8, 8}), "cannot be broadcast"));
  EXPECT_TRUE(has(sum({2, 4, 8, 8}, {2, 4, 8, 1}), "cannot be broadcast"));
  EXPECT_TRUE(
      has(refusal([&](CudnnGraph &graph) {
            graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.operand(dense({2, 4, 8})), graph.operand(dense({2, 3, 8})));
          }),
          "a reduction's result"));
  EXPECT_TRUE(has(refusal([&](CudnnGraph &graph) {
                    graph.pointwise({CUDNN_POINTWISE_TANH_FWD, graph.operand(dense({1}))}, graph.operand(dense({1})));
                  }),
                  "pointwise mode"));
  EXPECT_TRUE(has(refusal([&](CudnnGraph &graph) {
                    graph.pointwise({CUDNN_POINTWISE_EXP, graph.temporary(dense({1}))}, graph.operand(dense({1})));
                  }),
                  "a virtual tensor is not written"));
  EXPECT_TRUE(has(refusal([&](CudnnGraph &graph) {
                    Id x = graph.operand(dense({1})), y = graph.operand(dense({1}));
                    graph.pointwise({CUDNN_POINTWISE_EXP, x}, y);
                    graph.pointwise({CUDNN_POINTWISE_LOG, x}, y);
                  }),
                  "written twice"));
  EXPECT_TRUE(has(refusal([&](CudnnGraph &graph) {
                    Id x = graph.operand(dense({1})), y = graph.operand(dense({1}));
                    graph.pointwise({CUDNN_POINTWISE_EXP, x}, y);
                    graph.pointwise({CUDNN_POINTWISE_LOG, y}, x);
                  }),
                  "wait for each other"));
  auto convolution = [&](const Dims &w, const Dims &y, const Dims &strides = {2, 2}, const Dims &after = {1, 1}) {
    return refusal([&](CudnnGraph &graph) {
      CudnnGraph::Convolution how{ConvKind::Forward, strides, {1, 1}, after, {1, 1}, 0, 0, 0};
      how.x = graph.operand(dense({2, 4, 9, 9}));
      how.w = graph.operand(dense(w));
      how.y = graph.operand(dense(y));
      graph.convolution(how);
    });
  };
  EXPECT_EQ(convolution({6, 2, 3, 3}, {2, 6, 5, 5}), "");
  EXPECT_TRUE(has(convolution({6, 2, 3, 3}, {2, 6, 4, 4}), "a convolution's sizes"));
  EXPECT_EQ(convolution({6, 2, 3, 3}, {2, 6, 4, 4}, {2, 2}, {0, 0}), "");
  EXPECT_TRUE(has(convolution({6, 3, 3, 3}, {2, 6, 5, 5}), "a convolution's channels"));
  EXPECT_TRUE(has(convolution({5, 2, 3, 3}, {2, 5, 5, 5}), "a convolution's channels"));
  EXPECT_TRUE(has(convolution({6, 2, 3, 3}, {2, 6, 5, 5}, {2}), "a convolution's lists"));
}

TEST_F(SimulatedCudnn, RefusesDescriptors) {
  auto wrong = [](auto change) {
    CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, {2, 3});
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, {3, 1});
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16});
    change(tensor);
    return !tensor.finalize().isOk();
  };
  auto number = [](CudnnDescriptor &tensor) { tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, int64_t{1}); };
  EXPECT_FALSE(wrong(number));
  EXPECT_TRUE(wrong([](CudnnDescriptor &) {})); // no number
  EXPECT_TRUE(wrong([](CudnnDescriptor &tensor) { tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32, 1); }));
  EXPECT_TRUE(wrong([&](CudnnDescriptor &tensor) {
    number(tensor);
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, {1});
  }));
  EXPECT_TRUE(wrong([&](CudnnDescriptor &tensor) {
    number(tensor);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{2});
  }));
  EXPECT_TRUE(wrong([&](CudnnDescriptor &tensor) {
    number(tensor);
    tensor.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, int64_t{1});
  }));
  EXPECT_TRUE(wrong([&](CudnnDescriptor &tensor) {
    number(tensor);
    EXPECT_TRUE(tensor.finalize().isOk());
    number(tensor);
  }));
}

TEST_F(SimulatedCudnn, ChecksMemory) {
  const std::vector<float> before(16, 1);
  auto failsAt = [&](const std::vector<uint64_t> &places, uint64_t workspace) {
    CudnnGraph graph;
    Id x = graph.operand(denseTensor({1, 8})), y = graph.operand(denseTensor({1, 8}));
    graph.pointwise({CUDNN_POINTWISE_EXP, x}, y);
    run(graph, before, places, workspace);
    CUresult result = ended;
    next();
    return result;
  };
  EXPECT_EQ(failsAt({0, 8}, words / 2), CUDA_SUCCESS);
  EXPECT_EQ(failsAt({0, 4}, words / 2), CUDA_ERROR_LAUNCH_FAILED);           // over its operand
  EXPECT_EQ(failsAt({0, 9}, words / 2), CUDA_ERROR_LAUNCH_FAILED);           // not aligned
  EXPECT_EQ(failsAt({0, words - 4}, words / 2), CUDA_ERROR_ILLEGAL_ADDRESS); // out of bounds
  EXPECT_EQ(failsAt({0, 8}, 8), CUDA_ERROR_LAUNCH_FAILED);                   // in the workspace
  EXPECT_EQ(failsAt({0, 8}, words), CUDA_ERROR_ILLEGAL_ADDRESS);             // no workspace
}

TEST_F(SimulatedCudnn, WantsAPointerForEachTensor) {
  CudnnGraph graph;
  Id x = graph.operand(denseTensor({1, 8})), y = graph.operand(denseTensor({1, 8}));
  graph.pointwise({CUDNN_POINTWISE_EXP, x}, y);
  auto plan = CudnnPlan::make(graph, handle);
  ASSERT_TRUE(plan.isOk());
  std::vector<void *> one = {std::bit_cast<void *>(memory)};
  EXPECT_FALSE((*plan)->start(one, std::bit_cast<void *>(memory + words * 2), stream).isOk());
}

} // namespace
} // namespace tessera::cuda
