//===- CudaLayoutTest.cpp - products and copies as CUDA's libraries see them ===//

#include "runtime/device/cuda/GemmLayout.h"
#include "runtime/device/cuda/MovePlan.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tessera::cuda {
namespace {

using artifact::DataType;
using Dims = std::vector<int64_t>;

TensorView view(Dims shape, Dims strides) {
  TensorView made;
  made.shape = std::move(shape);
  made.strides = std::move(strides);
  return made;
}

/// What cuBLASLt would compute, in the order of memory, against the definition of the product.
void expectSameProduct(const TensorView &a, const TensorView &b, const TensorView &c) {
  auto made = gemmLayout(a, b, c);
  ASSERT_TRUE(made.isOk()) << made.status();
  const GemmLayout &layout = *made;
  std::vector<double> left(4096), right(4096), expected(4096, -1), found(4096, -1);
  for (size_t index = 0; index < left.size(); ++index) {
    left[index] = static_cast<double>(index * 7 % 23) - 11;
    right[index] = static_cast<double>(index * 5 % 19) - 9;
  }
  size_t rank = c.shape.size();
  int64_t batches = 1;
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    batches *= c.shape[dim];
  auto offset = [&](const TensorView &operand, int64_t batch) {
    int64_t result = 0;
    for (size_t dim = rank - 2; dim-- > 0; batch /= c.shape[dim])
      result += operand.shape[dim] == 1 ? 0 : batch % c.shape[dim] * operand.strides[dim];
    return result;
  };
  auto at = [rank](const TensorView &operand, int64_t row, int64_t column) {
    return row * operand.strides[rank - 2] + column * operand.strides[rank - 1];
  };
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t row = 0; row < c.shape[rank - 2]; ++row)
      for (int64_t column = 0; column < c.shape[rank - 1]; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < a.shape[rank - 1]; ++k)
          sum += left[offset(a, batch) + at(a, row, k)] * right[offset(b, batch) + at(b, k, column)];
        expected[offset(c, batch) + at(c, row, column)] = sum;
      }
  int64_t calls = 1;
  for (const GemmLoop &loop : layout.loops)
    calls *= loop.size;
  auto element = [](const MatrixLayout &matrix, int64_t row, int64_t column) {
    return matrix.isTransposed ? column + row * matrix.leading : row + column * matrix.leading;
  };
  for (int64_t call = 0; call < calls; ++call) {
    int64_t atA = 0, atB = 0, atC = 0, rest = call;
    for (size_t loop = layout.loops.size(); loop-- > 0; rest /= layout.loops[loop].size) {
      int64_t digit = rest % layout.loops[loop].size;
      atA += digit * layout.loops[loop].a;
      atB += digit * layout.loops[loop].b;
      atC += digit * layout.loops[loop].c;
    }
    int64_t inner = layout.first.isTransposed ? layout.first.rows : layout.first.columns;
    for (int64_t batch = 0; batch < layout.batch; ++batch)
      for (int64_t row = 0; row < layout.target.rows; ++row)
        for (int64_t column = 0; column < layout.target.columns; ++column) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += right[atB + batch * layout.first.batchStride + element(layout.first, row, k)] *
                   left[atA + batch * layout.second.batchStride + element(layout.second, k, column)];
          found[atC + batch * layout.target.batchStride + element(layout.target, row, column)] = sum;
        }
  }
  EXPECT_EQ(found, expected);
}

TEST(CudaGemmLayout, PlainAndTransposed) {
  for (const TensorView &a : {view({3, 4}, {4, 1}), view({3, 4}, {9, 1}), view({3, 4}, {1, 3}), view({3, 4}, {1, 5})})
    for (const TensorView &b : {view({4, 5}, {5, 1}), view({4, 5}, {1, 4}), view({4, 5}, {1, 7})})
      for (const TensorView &c : {view({3, 5}, {5, 1}), view({3, 5}, {8, 1})})
        expectSameProduct(a, b, c);
}

TEST(CudaGemmLayout, SizesOfOne) {
  expectSameProduct(view({1, 4}, {1, 1}), view({4, 5}, {5, 1}), view({1, 5}, {1, 1}));
  expectSameProduct(view({3, 1}, {1, 1}), view({1, 5}, {1, 1}), view({3, 5}, {5, 1}));
  expectSameProduct(view({3, 4}, {4, 1}), view({4, 1}, {1, 1}), view({3, 1}, {1, 1}));
}

TEST(CudaGemmLayout, Batches) {
  // Heads of a fused projection: rows apart by all heads' widths.
  expectSameProduct(view({2, 3, 4, 5}, {60, 5, 15, 1}), view({2, 3, 5, 4}, {60, 5, 1, 15}),
                    view({2, 3, 4, 4}, {48, 16, 4, 1}));
  expectSameProduct(view({2, 3, 4, 5}, {60, 20, 5, 1}), view({1, 1, 5, 6}, {0, 0, 6, 1}),
                    view({2, 3, 4, 6}, {72, 24, 6, 1}));
  expectSameProduct(view({2, 1, 4, 5}, {20, 20, 5, 1}), view({2, 3, 5, 6}, {90, 30, 6, 1}),
                    view({2, 3, 4, 6}, {72, 24, 6, 1}));
}

TEST(CudaGemmLayout, ABatchOfRowsIsOneProduct) {
  auto made = gemmLayout(view({8, 16, 4}, {64, 4, 1}), view({1, 4, 5}, {0, 5, 1}), view({8, 16, 5}, {80, 5, 1}));
  ASSERT_TRUE(made.isOk());
  EXPECT_EQ(made->batch, 1);
  EXPECT_TRUE(made->loops.empty());
  EXPECT_EQ(made->target.columns, 128);
}

TEST(CudaGemmLayout, RefusesWhatTheLibraryCannotRead) {
  auto made = gemmLayout(view({3, 4}, {8, 2}), view({4, 5}, {5, 1}), view({3, 5}, {5, 1}));
  EXPECT_EQ(made.status().message(), "operand a has strides 8, 2, which cuBLASLt cannot read");
}

TEST(CudaMoveLayout, MergesDimensions) {
  auto dense = moveLayout(view({2, 3, 4}, {12, 4, 1}), view({2, 3, 4}, {12, 4, 1}));
  ASSERT_TRUE(dense.isOk());
  EXPECT_TRUE(isDense(*dense));
  EXPECT_EQ(dense->elements, 24);
  auto turned = moveLayout(view({2, 3, 4}, {12, 4, 1}), view({2, 3, 4}, {1, 8, 2}));
  ASSERT_TRUE(turned.isOk());
  EXPECT_FALSE(isDense(*turned));
  EXPECT_EQ(turned->dims, 2); // the last two are one of 12
  auto one = moveLayout(view({}, {}), view({}, {}));
  ASSERT_TRUE(one.isOk());
  EXPECT_TRUE(isDense(*one));
  EXPECT_EQ(one->elements, 1);
}

TEST(CudaMoveLayout, EncodesNumbers) {
  EXPECT_EQ(*encodeNumber(DataType::F32, 1), 0x3f800000u);
  EXPECT_EQ(*encodeNumber(DataType::BF16, 1), 0x3f80u);
  EXPECT_EQ(*encodeNumber(DataType::BF16, 1.00390625), 0x3f80u); // a tie goes to the even one
  EXPECT_EQ(*encodeNumber(DataType::BF16, 1.01171875), 0x3f82u);
  EXPECT_EQ(*encodeNumber(DataType::I64, -1), ~uint64_t{0});
  EXPECT_EQ(*encodeNumber(DataType::F8E4M3FN, 0), 0u);
  EXPECT_FALSE(encodeNumber(DataType::F8E4M3FN, 1).isOk());
}

} // namespace
} // namespace tessera::cuda
