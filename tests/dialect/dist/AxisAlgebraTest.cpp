//===- AxisAlgebraTest.cpp - plans between all pairs of layouts -----------===//

#include "compiler/dialect/dist/AxisAlgebra.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera::dist;
using Kind = ReshardStep::Kind;

namespace {

/// Appends an axis to the split of a dimension; false if it is split inside of other blocks.
bool addAxis(Split &split, unsigned axis, int64_t blocks) {
  if (!split.empty() && split.blocks != blocks)
    return false;
  split.push_back(axis);
  split.blocks = blocks;
  return true;
}

/// Takes the minor axis off; false if it is another one, or if the blocks are others.
bool removeAxis(Split &split, unsigned axis, int64_t blocks) {
  if (split.empty() || split.blocks != blocks || split.pop_back_val() != axis)
    return false;
  if (split.empty())
    split.blocks = 1;
  return true;
}

/// The layout after a step, or a failure if the step cannot be taken from `layout`.
testing::AssertionResult apply(const ReshardStep &step, Layout &layout) {
  switch (step.kind) {
  case Kind::Slice:
  case Kind::ReduceScatter:
    for (unsigned axis : step.axes) {
      if (layout.splits(axis) || layout.isUnreduced(axis) != (step.kind == Kind::ReduceScatter))
        return testing::AssertionFailure() << "axis " << axis << " is not free for a split";
      llvm::erase(layout.unreduced, Partial(axis));
      if (!addAxis(layout.dims[step.dim], axis, step.blocks))
        return testing::AssertionFailure() << "the dimension is split inside of other blocks";
    }
    return testing::AssertionSuccess();
  case Kind::AllReduce:
    if (!llvm::is_sorted(step.axes))
      return testing::AssertionFailure() << "axes out of mesh order";
    for (unsigned axis : step.axes) {
      if (layout.owedOver(axis) != step.reduction)
        return testing::AssertionFailure() << "axis " << axis << " does not owe this";
      llvm::erase(layout.unreduced, Partial(axis, step.reduction));
    }
    return testing::AssertionSuccess();
  case Kind::AllGather:
    for (unsigned axis : llvm::reverse(step.axes))
      if (!removeAxis(layout.dims[step.dim], axis, step.blocks))
        return testing::AssertionFailure() << "axis " << axis << " is not the minor axis of the dimension";
    return testing::AssertionSuccess();
  case Kind::AllToAll:
    if (!removeAxis(layout.dims[step.fromDim], step.axes.front(), step.fromBlocks))
      return testing::AssertionFailure() << "axis is not the minor axis of the source dimension";
    if (!addAxis(layout.dims[step.dim], step.axes.front(), step.blocks))
      return testing::AssertionFailure() << "the dimension is split inside of other blocks";
    return testing::AssertionSuccess();
  case Kind::Mask:
    for (unsigned axis : step.axes) {
      if (layout.splits(axis) || layout.isUnreduced(axis))
        return testing::AssertionFailure() << "axis " << axis << " is in use";
      layout.unreduced.push_back(axis);
    }
    llvm::sort(layout.unreduced);
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "unknown step";
}

/// All ways to put axes `next`.. of `numAxes` into one of two dimensions (at any place), unreduced, or nowhere; the
/// first dimension, where it is split, is whole or has 5 blocks.
void listLayouts(unsigned next, unsigned numAxes, const Layout &layout, SmallVectorImpl<Layout> &all) {
  if (next == numAxes) {
    all.push_back(layout);
    if (!layout.dims.front().empty()) {
      all.push_back(layout);
      all.back().dims.front().blocks = 5;
    }
    return;
  }
  listLayouts(next + 1, numAxes, layout, all);
  for (unsigned dim = 0; dim < layout.dims.size(); ++dim)
    for (unsigned place = 0; place <= layout.dims[dim].size(); ++place) {
      Layout with = layout;
      with.dims[dim].insert(with.dims[dim].begin() + place, next);
      listLayouts(next + 1, numAxes, with, all);
    }
  Layout with = layout;
  with.unreduced.push_back(next);
  listLayouts(next + 1, numAxes, with, all);
}

TEST(PlanReshard, ReachesEveryLayoutFromEveryLayout) {
  SmallVector<Layout> all;
  listLayouts(0, 3, Layout::replicated(2), all);
  ASSERT_GT(all.size(), 50u);
  for (const Layout &from : all)
    for (const Layout &to : all) {
      Layout layout = from;
      for (const ReshardStep &step : planReshard(from, to))
        ASSERT_TRUE(apply(step, layout));
      ASSERT_TRUE(layout == to);
      if (from == to) {
        ASSERT_TRUE(planReshard(from, to).empty());
      }
    }
}

TEST(PlanReshard, ScattersBeforeItReduces) {
  Layout from = {{{}}, {0, 1}}, to = {{{1}}, {}};
  auto steps = planReshard(from, to);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::ReduceScatter);
  EXPECT_EQ(steps[0].axes, Axes({1}));
  EXPECT_EQ(steps[1].kind, Kind::AllReduce);
  EXPECT_EQ(steps[1].axes, Axes({0}));
}

TEST(PlanReshard, ReducesMaximaWholeAndMasksNone) {
  Layout partial = {{{}}, {{1, ReductionKind::Max}}}, split = {{{1}}, {}}, whole = {{{}}, {}};
  auto steps = planReshard(partial, split);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::AllReduce);
  EXPECT_EQ(steps[0].reduction, ReductionKind::Max);
  EXPECT_EQ(steps[1].kind, Kind::Slice);
  EXPECT_TRUE(planReshard(whole, partial).empty());
  // A sum that is owed is no maximum.
  steps = planReshard({{{}}, {1}}, partial);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].reduction, ReductionKind::Sum);
}

TEST(PlanReshard, JoinsAxesInTheOrderOfTheSplit) {
  Layout whole = {{{}}, {}};
  for (const Axes &axes : {Axes({0, 1}), Axes({1, 0})}) {
    auto steps = planReshard({{axes}, {}}, whole);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].axes, axes);
    steps = planReshard(whole, {{axes}, {}});
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].axes, axes);
  }
}

TEST(PlanReshard, ExchangesDimensionsWithoutGathering) {
  auto steps = planReshard({{{0}, {}}, {}}, {{{}, {0}}, {}});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, Kind::AllToAll);
  EXPECT_EQ(steps[0].fromDim, 0);
  EXPECT_EQ(steps[0].dim, 1);
}

TEST(PlanReshard, GathersWhatIsSplitInsideOfOtherBlocks) {
  auto steps = planReshard({{Split({0}, 5)}, {}}, {{Split({0})}, {}});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::AllGather);
  EXPECT_EQ(steps[0].blocks, 5);
  EXPECT_EQ(steps[1].kind, Kind::Slice);
  EXPECT_EQ(steps[1].blocks, 1);
}

TEST(Layout, LeavesOutAxesOfSizeOne) {
  MLIRContext context;
  context.loadDialect<DistDialect>();
  auto names = [&](ArrayRef<StringRef> list) {
    SmallVector<Attribute> attrs;
    for (StringRef name : list)
      attrs.push_back(StringAttr::get(&context, name));
    return ArrayAttr::get(&context, attrs);
  };
  auto mesh = MeshAttr::get(&context, names({"replicate", "shard", "seq"}), {2, 1, 3});
  auto sharding =
      ShardingAttr::get(&context, ArrayAttr::get(&context, {names({"seq", "shard"}), names({})}), names({"replicate"}));
  Layout layout = Layout::get(sharding, mesh);
  EXPECT_EQ(layout.dims[0], Axes({2}));
  EXPECT_TRUE(layout.dims[1].empty());
  EXPECT_EQ(layout.unreduced, Partials{Partial(0)});
  EXPECT_EQ(groupSize(mesh, {0, 2}), 6);
  EXPECT_EQ(Layout::get(layout.toAttr(mesh), mesh), layout);
  Layout inBlocks = {{Split({0, 2}, 5), {}}, {}};
  EXPECT_EQ(Layout::get(inBlocks.toAttr(mesh), mesh), inBlocks);
  EXPECT_EQ(blocksOf(inBlocks.toAttr(mesh), 0), 5);
  EXPECT_TRUE(inBlocks.withoutBlocks().isReplicated());
  EXPECT_TRUE(Layout::get(inBlocks.toAttr(mesh), MeshAttr::get(&context, mesh.getNames(), {1, 1, 1})).isReplicated());
  EXPECT_TRUE(findUnknownAxis(sharding, mesh).empty());
  EXPECT_EQ(findUnknownAxis(sharding, MeshAttr::get(&context, names({"shard", "seq"}), {2, 2})), "replicate");
}

} // namespace
