//===- EpilogueTest.cpp - sums by the backend's own kernels -------------------===//
//
// On the simulated driver: what stands in for a bias gradient that cuBLASLt has no algorithm for.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaEpilogue.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::cuda {
namespace {

using artifact::DataType;

class SimulatedEpilogue : public testing::Test {
protected:
  static constexpr size_t bytes = 8 << 20, workspaceBytes = 1 << 16;

  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (CUdeviceptr *memory : {&source, &target})
      ASSERT_EQ(cuMemAlloc(memory, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&workspace, workspaceBytes), CUDA_SUCCESS);
    ASSERT_TRUE(kernels.load(workspace, workspaceBytes).isOk());
  }
  void TearDown() override {
    for (CUdeviceptr memory : {source, target, workspace})
      cuMemFree(memory);
    cuStreamDestroy(stream);
  }

  /// A number of the type, of few bits.
  static float number(int64_t row, int64_t column) { return static_cast<float>((row * 7 + column * 3) % 64 - 20) / 8; }

  /// Sums [rows, columns] of bf16 or f32, from `offset` bytes behind the memory's beginning, over rows. Whether all are
  /// exact, and how many bytes of the workspace were written.
  std::pair<bool, size_t> sum(DataType dtype, int64_t rows, int64_t columns, size_t offset = 0) {
    const size_t width = byteWidth(dtype), count = static_cast<size_t>(rows * columns);
    std::vector<std::byte> matrix(count * width), out(static_cast<size_t>(columns) * width);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bits =
          std::bit_cast<uint32_t>(number(static_cast<int64_t>(i) / columns, static_cast<int64_t>(i) % columns));
      const auto narrow = static_cast<uint16_t>(bits >> 16);
      std::memcpy(&matrix[i * width], width == 4 ? static_cast<const void *>(&bits) : &narrow, width);
    }
    EXPECT_EQ(cuMemcpyHtoD(source + offset, matrix.data(), matrix.size()), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(workspace, 0xff, workspaceBytes, stream), CUDA_SUCCESS);
    GemmOperands operands;
    operands.epilogue = artifact::Epilogue::BiasGradB;
    operands.b.view.dtype = operands.c.view.dtype = dtype;
    operands.b.view.shape = {rows, columns};
    operands.b.view.strides = {columns, 1};
    GemmAddresses at;
    at.b = std::bit_cast<const void *>(source + offset);
    at.output = std::bit_cast<void *>(target);
    Status status = kernels.start(operands, at, stream);
    EXPECT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(out.data(), target, out.size()), CUDA_SUCCESS);
    std::vector<uint8_t> used(workspaceBytes);
    EXPECT_EQ(cuMemcpyDtoH(used.data(), workspace, used.size()), CUDA_SUCCESS);
    while (!used.empty() && used.back() == 0xff)
      used.pop_back();
    bool isExact = true;
    for (int64_t column = 0; column < columns; ++column) {
      float expected = 0, got;
      for (int64_t row = 0; row < rows; ++row)
        expected += number(row, column);
      uint32_t bits = 0;
      std::memcpy(width == 4 ? static_cast<void *>(&bits) : reinterpret_cast<uint16_t *>(&bits) + 1,
                  &out[static_cast<size_t>(column) * width], width);
      got = std::bit_cast<float>(bits);
      isExact &= std::abs(got - expected) <= (width == 4 ? 0 : std::abs(expected) / 256);
    }
    return {isExact, used.size()};
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr source = 0, target = 0, workspace = 0;
  EpilogueKernels kernels;
};

using Sum = std::pair<bool, size_t>;

TEST_F(SimulatedEpilogue, SumsLongColumnsInTwoSteps) {
  EXPECT_EQ(sum(DataType::F32, 1000, 96), Sum(true, 15 * 96 * 4)); // parts of 67 rows
  EXPECT_EQ(sum(DataType::BF16, 1000, 96), Sum(true, 15 * 96 * 4));
  EXPECT_EQ(sum(DataType::BF16, 129, 520), Sum(true, 2 * 520 * 4)); // more than one block of columns
}

TEST_F(SimulatedEpilogue, TakesNoMoreWorkspaceThanThereIs) {
  EXPECT_EQ(sum(DataType::F32, 300, 4096 + 32), Sum(true, 3 * 4128 * 4)); // of 4 parts
}

TEST_F(SimulatedEpilogue, SumsOthersInOneStep) {
  EXPECT_EQ(sum(DataType::BF16, 64, 96), Sum(true, 0));      // short
  EXPECT_EQ(sum(DataType::BF16, 1000, 97), Sum(true, 0));    // rows of no whole vectors
  EXPECT_EQ(sum(DataType::BF16, 1000, 96, 2), Sum(true, 0)); // not aligned
}

} // namespace
} // namespace tessera::cuda
