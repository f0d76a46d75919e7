//===- GemmTest.cpp - matrix products against a double reference -----------===//

#include "runtime/device/cpu/Gemm.h"

#include "runtime/device/cpu/Team.h"
#include "tests/runtime/device/HostTensor.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using test::HostTensor;

std::vector<double> reference(HostTensor &a, HostTensor &b, HostTensor &c, double alpha, double beta) {
  std::vector<double> result;
  int64_t depth = a.shape().back();
  c.forEach([&](const std::vector<int64_t> &index) {
    std::vector<int64_t> left = index, right = index;
    size_t rank = index.size();
    for (size_t dim = 0; dim + 2 < rank; ++dim) {
      left[dim] = a.shape()[dim] == 1 ? 0 : index[dim];
      right[dim] = b.shape()[dim] == 1 ? 0 : index[dim];
    }
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += static_cast<double>(a.at(left)) * b.at(right);
    }
    result.push_back(alpha * sum + (beta == 0 ? 0 : beta * c.at(index)));
  });
  return result;
}

void check(HostTensor a, HostTensor b, HostTensor c, float alpha = 1, float beta = 0) {
  a.random(1);
  b.random(2);
  if (beta != 0)
    c.random(3);
  else
    c.forEach([&](const std::vector<int64_t> &index) { c.at(index) = NAN; }); // beta 0 must not read c
  std::vector<double> expected = reference(a, b, c, alpha, beta);
  cpu::Team team(2);
  team.adopt();
  cpu::GemmPlanner planner;
  auto plan = planner.plan(a.view(), b.view(), c.view(), alpha, beta);
  ASSERT_TRUE(plan.isOk()) << plan.status();
  Status status = (*plan)->run(a.view().data, b.view().data, c.view().data);
  ASSERT_TRUE(status.isOk()) << status;
  EXPECT_LT(relativeError(c, expected), 1e-6);
  EXPECT_TRUE(c.gapsAreUntouched());
}

/// Operands in bf16 and the result in bf16 or f32; products of bf16 are exact in f32.
void checkHalf(HostTensor a, HostTensor b, HostTensor c, float beta = 0) {
  a.random(1);
  b.random(2);
  for (bool isHalf : {false, true}) {
    c.random(3);
    test::HalfTensor halfA(a), halfB(b);
    std::unique_ptr<test::HalfTensor> halfC = isHalf ? std::make_unique<test::HalfTensor>(c) : nullptr;
    std::vector<double> expected = reference(a, b, c, 1, beta);
    cpu::Team team(2);
    team.adopt();
    cpu::GemmPlanner planner;
    TensorView target = isHalf ? halfC->view() : c.view();
    auto plan = planner.plan(halfA.view(), halfB.view(), target, 1, beta);
    ASSERT_TRUE(plan.isOk()) << plan.status();
    Status status = (*plan)->run(halfA.view().data, halfB.view().data, target.data);
    ASSERT_TRUE(status.isOk()) << status;
    if (isHalf)
      halfC->copyBack();
    EXPECT_LT(relativeError(c, expected), isHalf ? 0x1p-8 : 1e-6);
    EXPECT_TRUE(c.gapsAreUntouched());
  }
}

const std::vector<size_t> transposed = {1, 0};

TEST(Gemm, BFloat16) {
  checkHalf({{37, 65}}, {{65, 29}}, {{37, 29}});
  checkHalf({{37, 65}, transposed}, {{65, 29}}, {{37, 29}});
  checkHalf({{37, 65}}, {{65, 29}, transposed}, {{37, 29}});
  checkHalf({{37, 65}}, {{65, 29}}, {{37, 29}, transposed});
  checkHalf({{37, 65}, transposed}, {{65, 29}}, {{37, 29}}, 1.0f);
  checkHalf({{16, 24}, {}, 5}, {{24, 40}, {}, 3}, {{16, 40}, {}, 7});
  checkHalf({{1, 8}}, {{8, 1}}, {{1, 1}});
}
TEST(Gemm, BFloat16Batches) {
  checkHalf({{3, 10, 12}}, {{3, 12, 9}}, {{3, 10, 9}});
  checkHalf({{2, 3, 11, 8}, {0, 2, 1, 3}}, {{2, 3, 8, 11}, {0, 3, 1, 2}}, {{2, 3, 11, 11}});
  checkHalf({{4, 6, 8}}, {{1, 8, 5}}, {{4, 6, 5}});
  checkHalf({{6, 5, 4}, {1, 2, 0}}, {{6, 4, 3}, {1, 2, 0}}, {{6, 5, 3}, {1, 2, 0}}, 1.0f);
}

TEST(Gemm, Plain) { check({{37, 65}}, {{65, 29}}, {{37, 29}}); }
TEST(Gemm, TransposedRight) { check({{37, 65}}, {{65, 29}, transposed}, {{37, 29}}); }
TEST(Gemm, TransposedLeft) { check({{37, 65}, transposed}, {{65, 29}}, {{37, 29}}); }
TEST(Gemm, TransposedBoth) { check({{37, 65}, transposed}, {{65, 29}, transposed}, {{37, 29}}); }
TEST(Gemm, TransposedResult) { check({{37, 65}}, {{65, 29}}, {{37, 29}, transposed}); }
TEST(Gemm, TransposedAll) { check({{37, 65}, transposed}, {{65, 29}, transposed}, {{37, 29}, transposed}); }
TEST(Gemm, RowsWithGaps) { check({{16, 24}, {}, 5}, {{24, 40}, {}, 3}, {{16, 40}, {}, 7}); }
TEST(Gemm, LeftTransposedWithGaps) { check({{16, 24}, transposed, 5}, {{24, 40}, {}, 3}, {{16, 40}, {}, 7}); }
TEST(Gemm, AlphaAndBeta) {
  check({{33, 20}}, {{20, 17}}, {{33, 17}}, 0.5f, 2.0f);
  check({{33, 20}, transposed}, {{20, 17}}, {{33, 17}}, -0.25f, 1.0f);
  check({{33, 20}}, {{20, 17}, transposed}, {{33, 17}, transposed}, 3.0f, 1.0f);
}
TEST(Gemm, SizesOfOne) {
  check({{1, 8}}, {{8, 5}}, {{1, 5}});
  check({{7, 8}}, {{8, 1}}, {{7, 1}});
  check({{7, 1}}, {{1, 5}}, {{7, 5}});
  check({{1, 1}}, {{1, 1}}, {{1, 1}});
  check({{7, 8}, transposed}, {{8, 1}, transposed}, {{7, 1}, transposed});
  check({{7, 1}, transposed}, {{1, 5}}, {{7, 5}});
}
TEST(Gemm, Batch) { check({{3, 10, 12}}, {{3, 12, 9}}, {{3, 10, 9}}); }
TEST(Gemm, BatchOfTransposed) { check({{3, 10, 12}, {0, 2, 1}}, {{3, 12, 9}, {0, 2, 1}}, {{3, 10, 9}}); }
TEST(Gemm, HeadsInterleaved) {
  // [B, H, T, D] stored as [B, T, H, D]
  check({{2, 3, 11, 8}, {0, 2, 1, 3}}, {{2, 3, 8, 11}, {0, 3, 1, 2}}, {{2, 3, 11, 11}});
  check({{2, 3, 11, 11}}, {{2, 3, 11, 8}, {0, 2, 1, 3}}, {{2, 3, 11, 8}, {0, 2, 1, 3}}, 0.5f, 1.0f);
}
TEST(Gemm, BroadcastBatch) {
  check({{4, 6, 8}}, {{1, 8, 5}}, {{4, 6, 5}});
  check({{1, 6, 8}}, {{4, 8, 5}}, {{4, 6, 5}});
  check({{4, 6, 8}, {0, 2, 1}}, {{1, 8, 5}}, {{4, 6, 5}});
}
TEST(Gemm, NoUnitStride) { check({{6, 5, 4}, {1, 2, 0}}, {{6, 4, 3}, {1, 2, 0}}, {{6, 5, 3}, {1, 2, 0}}, 1.0f, 1.0f); }
TEST(Gemm, DiagonalsOfABatch) {
  // einsum("bii,bij->bj"): the rows [1, 3] are diagonals of 3x3 matrices, the next begins before the last has ended.
  HostTensor whole{{4, 3, 3}}, b{{4, 3, 5}}, c{{4, 1, 5}}, a{{4, 1, 3}};
  whole.random(1);
  b.random(2);
  a.forEach([&](const std::vector<int64_t> &index) { a.at(index) = whole.at({index[0], index[2], index[2]}); });
  std::vector<double> expected = reference(a, b, c, 1, 0);
  auto diagonal = whole.view();
  diagonal.shape = {4, 1, 3};
  diagonal.strides = {9, 4, 4};
  cpu::Team team(2);
  team.adopt();
  cpu::GemmPlanner planner;
  auto plan = planner.plan(diagonal, b.view(), c.view(), 1, 0);
  ASSERT_TRUE(plan.isOk()) << plan.status();
  Status status = (*plan)->run(diagonal.data, b.view().data, c.view().data);
  ASSERT_TRUE(status.isOk()) << status;
  EXPECT_LT(relativeError(c, expected), 1e-6);
}
TEST(Gemm, Large) { check({{130, 300}}, {{300, 257}}, {{130, 257}}); }

TEST(Gemm, EqualShapesSharePlansAndWorkOnOtherAddresses) {
  cpu::Team(1).adopt();
  HostTensor a({4, 5}), b({5, 6}), c({4, 6}), other({4, 5});
  a.random(1);
  b.random(2);
  other.random(3);
  cpu::GemmPlanner planner;
  auto first = planner.plan(a.view(), b.view(), c.view(), 1, 0),
       second = planner.plan(a.view(), b.view(), c.view(), 1, 0);
  ASSERT_TRUE(first.isOk() && second.isOk());
  ASSERT_TRUE((*first)->run(a.view().data, b.view().data, c.view().data).isOk());
  EXPECT_LT(relativeError(c, reference(a, b, c, 1, 0)), 1e-6);
  ASSERT_TRUE((*second)->run(other.view().data, b.view().data, c.view().data).isOk());
  EXPECT_LT(relativeError(c, reference(other, b, c, 1, 0)), 1e-6);
}

} // namespace
} // namespace tessera
