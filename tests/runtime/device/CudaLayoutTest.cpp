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

double activate(double x) { return x * x + 3 * x; } // stands for GELU: which number meets which is what matters
double slope(double x) { return 2 * x + 3; }

/// What an epilogue writes: the result, and the bias gradient or pre-activation.
struct Written {
  std::vector<double> result, output;
  bool operator==(const Written &) const = default;
};

/// By the definition of artifact.fbs, in rows.
Written defined(artifact::Epilogue epilogue, const TensorView &a, const TensorView &b, const TensorView &c,
                const std::vector<double> &left, const std::vector<double> &right, const std::vector<double> &input) {
  int64_t m = c.shape[0], n = c.shape[1], depth = a.shape[1];
  auto at = [](const TensorView &view, int64_t row, int64_t column) {
    return static_cast<size_t>(row * view.strides[0] + column * view.strides[1]);
  };
  Written made{std::vector<double>(512), std::vector<double>(512)};
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      double value = 0;
      for (int64_t k = 0; k < depth; ++k)
        value += left[at(a, row, k)] * right[at(b, k, column)];
      size_t index = row * n + column;
      if (takesBias(epilogue))
        value += input[column];
      if (givesPreActivation(epilogue))
        made.output[index] = value;
      if (appliesGelu(epilogue))
        value = activate(value);
      if (takesPreActivation(epilogue))
        value *= slope(input[index]);
      if (epilogue == artifact::Epilogue::GeluGradBiasGrad)
        made.output[column] += value;
      made.result[at(c, row, column)] = value;
    }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t row = 0; row < m && epilogue == artifact::Epilogue::BiasGradA; ++row)
      made.output[row] += left[at(a, row, k)];
    for (int64_t column = 0; column < n && epilogue == artifact::Epilogue::BiasGradB; ++column)
      made.output[column] += right[at(b, k, column)];
  }
  return made;
}

/// By NVIDIA's documentation of a descriptor: column-major, a bias and its gradient for each row of D (BGRADB: column).
Written documented(artifact::Epilogue epilogue, const GemmLayout &layout, const EpilogueLayout &told,
                   const std::vector<double> &left, const std::vector<double> &right,
                   const std::vector<double> &input) {
  auto element = [](const MatrixLayout &matrix, int64_t row, int64_t column) {
    return static_cast<size_t>(matrix.isTransposed ? column + row * matrix.leading : row + column * matrix.leading);
  };
  int64_t depth = layout.first.isTransposed ? layout.first.rows : layout.first.columns;
  Written made{std::vector<double>(512), std::vector<double>(512)};
  for (int64_t row = 0; row < layout.target.rows; ++row)
    for (int64_t column = 0; column < layout.target.columns; ++column) {
      double value = 0;
      for (int64_t k = 0; k < depth; ++k)
        value += right[element(layout.first, row, k)] * left[element(layout.second, k, column)];
      auto aux = static_cast<size_t>(row + column * told.auxLeading);
      if (takesBias(epilogue))
        value += input[row];
      if (givesPreActivation(epilogue))
        made.output[aux] = value;
      if (appliesGelu(epilogue))
        value = activate(value);
      if (takesPreActivation(epilogue))
        value *= slope(input[aux]);
      if (epilogue == artifact::Epilogue::GeluGradBiasGrad)
        made.output[row] += value;
      made.result[element(layout.target, row, column)] = value;
    }
  for (int64_t index = 0; index < told.biasElements; ++index)
    for (int64_t k = 0; k < depth; ++k)
      if (told.sum == EpilogueLayout::Sum::First)
        made.output[index] += right[element(layout.first, index, k)];
      else if (told.sum == EpilogueLayout::Sum::Second)
        made.output[index] += left[element(layout.second, k, index)];
  return made;
}

TEST(CudaGemmLayout, Epilogues) {
  std::vector<double> left(256), right(256), input(256);
  for (size_t index = 0; index < left.size(); ++index) {
    left[index] = static_cast<double>(index * 7 % 23) - 11;
    right[index] = static_cast<double>(index * 5 % 19) - 9;
    input[index] = static_cast<double>(index * 3 % 13) - 6;
  }
  for (int value = 1; value <= static_cast<int>(artifact::Epilogue::MAX); ++value)
    for (const TensorView &a : {view({3, 4}, {4, 1}), view({3, 4}, {1, 5})})
      for (const TensorView &b : {view({4, 8}, {8, 1}), view({4, 8}, {1, 4})})
        for (const TensorView &c : {view({3, 8}, {8, 1}), view({3, 8}, {11, 1})}) {
          auto epilogue = static_cast<artifact::Epilogue>(value);
          if (!c.isContiguous() && !sumsOperand(epilogue))
            continue; // refused by the artifact's verifier
          auto layout = gemmLayout(a, b, c);
          ASSERT_TRUE(layout.isOk()) << layout.status();
          auto told = epilogueLayout(epilogue, *layout);
          ASSERT_TRUE(told.isOk()) << told.status();
          EXPECT_EQ(documented(epilogue, *layout, *told, left, right, input),
                    defined(epilogue, a, b, c, left, right, input))
              << artifact::EnumNameEpilogue(epilogue);
        }
}

TEST(CudaGemmLayout, RefusesEpiloguesThatTheLibraryDoesNotHave) {
  auto odd = gemmLayout(view({3, 4}, {4, 1}), view({4, 12}, {12, 1}), view({3, 12}, {12, 1}));
  auto batch = gemmLayout(view({2, 3, 4}, {12, 4, 1}), view({2, 4, 8}, {32, 8, 1}), view({2, 3, 8}, {24, 8, 1}));
  ASSERT_TRUE(odd.isOk() && batch.isOk());
  EXPECT_TRUE(epilogueLayout(artifact::Epilogue::GeluBias, *odd).isOk());
  EXPECT_EQ(epilogueLayout(artifact::Epilogue::GeluGrad, *odd).status().message(),
            "epilogue GeluGrad of 12 columns: cuBLASLt needs a multiple of 8");
  EXPECT_EQ(epilogueLayout(artifact::Epilogue::Bias, *batch).status().message(),
            "epilogue Bias of a batch of products");
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
  EXPECT_EQ(*encodeNumber(DataType::F16, 1), 0x3c00u);
  EXPECT_EQ(*encodeNumber(DataType::F16, -0.5), 0xb800u);
  EXPECT_EQ(*encodeNumber(DataType::I64, -1), ~uint64_t{0});
  EXPECT_EQ(*encodeNumber(DataType::F8E4M3FN, 0), 0u);
  EXPECT_FALSE(encodeNumber(DataType::F8E4M3FN, 1).isOk());
}

} // namespace
} // namespace tessera::cuda
