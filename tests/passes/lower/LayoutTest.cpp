//===- LayoutTest.cpp - strided layouts against explicit indexing ---------===//

#include "passes/lower/Layout.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tessera::lower;

namespace {

/// Where the elements lie, in row-major order.
std::vector<int64_t> addresses(const Layout &layout) {
  std::vector<int64_t> result = {layout.offset};
  for (size_t dim = 0; dim < layout.shape.size(); ++dim) {
    std::vector<int64_t> next;
    for (int64_t base : result)
      for (int64_t i = 0; i < layout.shape[dim]; ++i)
        next.push_back(base + i * layout.strides[dim]);
    result = std::move(next);
  }
  return result;
}

TEST(Layout, ReshapeKeepsRowMajorOrder) {
  Layout heads = Layout::contiguous({2, 3, 12}).slice({0, 0, 4}, {2, 3, 8}, {1, 1, 1});
  std::optional<Layout> split = heads.reshape({2, 3, 2, 2});
  ASSERT_TRUE(split);
  EXPECT_EQ(addresses(*split), addresses(heads));
  EXPECT_FALSE(heads.reshape({24}));  // gaps between the rows
  EXPECT_TRUE(heads.reshape({6, 4})); // rows themselves merge
  EXPECT_FALSE(split->transpose({0, 2, 1, 3}).reshape({2, 6, 2}));
}

TEST(Layout, UnitDimensionsDoNotMatter) {
  Layout layout = Layout::contiguous({4, 1, 6});
  layout.strides[1] = 1000;
  EXPECT_TRUE(layout.isContiguous());
  std::optional<Layout> flat = layout.reshape({1, 24, 1});
  ASSERT_TRUE(flat);
  EXPECT_EQ(addresses(*flat), addresses(layout));
  EXPECT_TRUE(Layout::contiguous({1}).reshape({}));
  EXPECT_TRUE(Layout::contiguous({}).reshape({1, 1}));
}

TEST(Layout, TransposeAndItsInverse) {
  Layout layout = Layout::contiguous({2, 3, 4, 5});
  llvm::SmallVector<int64_t> permutation = {0, 2, 3, 1};
  EXPECT_EQ(layout.transpose(permutation).transposeInverse(permutation), layout);
  EXPECT_EQ(layout.transpose(permutation).shape, (llvm::SmallVector<int64_t>{2, 4, 5, 3}));
  EXPECT_FALSE(layout.transpose(permutation).isContiguous());
}

TEST(Layout, SliceWithSteps) {
  Layout layout = Layout::contiguous({10}).slice({1}, {8}, {3});
  EXPECT_EQ(addresses(layout), (std::vector<int64_t>{1, 4, 7}));
}

TEST(Layout, RankAndIterationParts) {
  mlir::MLIRContext context;
  mlir::ArrayAttr axes = mlir::ArrayAttr::get(&context, {mlir::StringAttr::get(&context, "shard")});
  std::optional<Layout> part = Layout::contiguous({12}).rankPart(0, 4, axes);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->shape, (llvm::SmallVector<int64_t>{3}));
  EXPECT_EQ(part->rankStride, 3);
  EXPECT_FALSE(part->rankPart(0, 3, axes)); // depends on the rank already
  std::optional<Layout> micro = Layout::contiguous({4, 2, 8}).iterationPart();
  ASSERT_TRUE(micro);
  EXPECT_EQ(micro->iterationStride, 16);
  EXPECT_TRUE(micro->isContiguous());
  EXPECT_FALSE(micro->iterationPart());
}

} // namespace
