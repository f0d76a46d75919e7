//===- AxisAlgebraTest.cpp - plans between all pairs of layouts -----------===//

#include "compiler/dialect/dist/AxisAlgebra.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera::dist;
using Kind = ReshardStep::Kind;

namespace {

Split levels(std::initializer_list<SplitLevel> list) {
  Split split;
  split.append(list);
  return split;
}

/// Appends the levels of a step over `axes`; false if what is there is not made of as many blocks.
bool addAxes(Split &split, ArrayRef<unsigned> axes, int64_t blocks, bool isZigzag) {
  const int64_t have = split.empty() ? 1 : split.blocksAt(split.size() - 1);
  if (blocks % have != 0)
    return false;
  for (unsigned axis : axes)
    split.push_back({axis, axis == axes.front() ? blocks / have : 1, isZigzag});
  return true;
}

/// Takes the minor axes off; false if they are others, or split inside of other blocks, or dealt otherwise.
bool removeAxes(Split &split, ArrayRef<unsigned> axes, int64_t blocks, bool isZigzag) {
  for (unsigned axis : llvm::reverse(axes)) {
    if (split.empty() || split.blocksAt(split.size() - 1) != blocks)
      return false;
    const SplitLevel last = split.pop_back_val();
    if (last.axis != axis || last.isZigzag != isZigzag || (axis != axes.front() && last.blocks != 1))
      return false;
  }
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
    }
    if (!addAxes(layout.dims[step.dim], step.axes, step.blocks, step.isZigzag))
      return testing::AssertionFailure() << "the dimension is split inside of other blocks";
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
    if (!removeAxes(layout.dims[step.dim], step.axes, step.blocks, step.isZigzag))
      return testing::AssertionFailure() << "axes are not the minor ones of the dimension";
    return testing::AssertionSuccess();
  case Kind::AllToAll:
    if (step.axes.size() != 1 || !removeAxes(layout.dims[step.fromDim], step.axes, step.fromBlocks, step.fromZigzag))
      return testing::AssertionFailure() << "axis is not the minor axis of the source dimension";
    if (!addAxes(layout.dims[step.dim], step.axes, step.blocks, step.isZigzag))
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

/// `split` with each level plain or a zigzag; behind whole blocks, 2 of them in front of one level, or none.
SmallVector<Split> variantsOf(const Split &split) {
  SmallVector<Split> variants;
  for (unsigned zigzags = 0; zigzags < 1u << split.size(); ++zigzags)
    for (size_t inBlocks = 0; inBlocks <= split.size(); ++inBlocks) {
      Split &variant = variants.emplace_back(split);
      for (auto [number, level] : llvm::enumerate(variant)) {
        level.isZigzag = zigzags >> number & 1;
        level.blocks = number == inBlocks ? 2 : 1;
      }
    }
  return variants;
}

/// All ways to put axes `next`.. of `numAxes` into one of two dimensions (at any place), unreduced, or nowhere; the
/// first dimension, where it is split, in all of its variants.
void listLayouts(unsigned next, unsigned numAxes, const Layout &layout, SmallVectorImpl<Layout> &all) {
  if (next == numAxes) {
    for (const Split &split : variantsOf(layout.dims.front())) {
      all.push_back(layout);
      all.back().dims.front() = split;
    }
    return;
  }
  listLayouts(next + 1, numAxes, layout, all);
  for (unsigned dim = 0; dim < layout.dims.size(); ++dim)
    for (unsigned place = 0; place <= layout.dims[dim].size(); ++place) {
      Layout with = layout;
      with.dims[dim].insert(with.dims[dim].begin() + place, SplitLevel(next));
      listLayouts(next + 1, numAxes, with, all);
    }
  Layout with = layout;
  with.unreduced.push_back(next);
  listLayouts(next + 1, numAxes, with, all);
}

TEST(PlanReshard, ReachesEveryLayoutFromEveryLayout) {
  SmallVector<Layout> all;
  listLayouts(0, 3, Layout::replicated(2), all);
  ASSERT_GT(all.size(), 200u);
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
  Layout from = {{Split()}, {0, 1}}, to = {{Split({1})}, {}};
  auto steps = planReshard(from, to);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::ReduceScatter);
  EXPECT_EQ(steps[0].axes, Axes({1}));
  EXPECT_EQ(steps[1].kind, Kind::AllReduce);
  EXPECT_EQ(steps[1].axes, Axes({0}));
}

TEST(PlanReshard, ReducesMaximaWholeAndMasksNone) {
  Layout partial = {{Split()}, {{1, ReductionKind::Max}}}, split = {{Split({1})}, {}}, whole = {{Split()}, {}};
  auto steps = planReshard(partial, split);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::AllReduce);
  EXPECT_EQ(steps[0].reduction, ReductionKind::Max);
  EXPECT_EQ(steps[1].kind, Kind::Slice);
  EXPECT_TRUE(planReshard(whole, partial).empty());
  // A sum that is owed is no maximum.
  steps = planReshard({{Split()}, {1}}, partial);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].reduction, ReductionKind::Sum);
}

TEST(PlanReshard, JoinsAxesInTheOrderOfTheSplit) {
  Layout whole = {{Split()}, {}};
  for (const Axes &axes : {Axes({0, 1}), Axes({1, 0})}) {
    auto steps = planReshard({{Split(axes)}, {}}, whole);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].axes, axes);
    steps = planReshard(whole, {{Split(axes)}, {}});
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].axes, axes);
  }
}

TEST(PlanReshard, ExchangesDimensionsWithoutGathering) {
  auto steps = planReshard({{Split({0}), Split()}, {}}, {{Split(), Split({0})}, {}});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, Kind::AllToAll);
  EXPECT_EQ(steps[0].fromDim, 0);
  EXPECT_EQ(steps[0].dim, 1);
}

TEST(PlanReshard, GathersWhatIsSplitInsideOfOtherBlocks) {
  auto steps = planReshard({{levels({{0, 5}})}, {}}, {{Split({0})}, {}});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::AllGather);
  EXPECT_EQ(steps[0].blocks, 5);
  EXPECT_EQ(steps[1].kind, Kind::Slice);
  EXPECT_EQ(steps[1].blocks, 1);
}

TEST(PlanReshard, GathersWhatIsDealtOtherwise) {
  auto steps = planReshard({{levels({{0, 1, true}})}, {}}, {{Split({0})}, {}});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::AllGather);
  EXPECT_TRUE(steps[0].isZigzag);
  EXPECT_EQ(steps[1].kind, Kind::Slice);
  EXPECT_FALSE(steps[1].isZigzag);
}

TEST(PlanReshard, DealsOverAGroupAtOnce) {
  Layout whole = {{Split()}, {}}, dealt = {{levels({{1, 1, true}, {0, 1, true}})}, {}};
  for (const auto &steps : {planReshard(whole, dealt), planReshard(dealt, whole)}) {
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].axes, Axes({1, 0}));
    EXPECT_TRUE(steps[0].isZigzag);
  }
  // Another way of dealing, or blocks, begin another step.
  for (const Split &split : {levels({{1, 1, true}, {0}}), levels({{1}, {0, 2}}), levels({{1}, {0, 1, true}})}) {
    EXPECT_EQ(planReshard(whole, {{split}, {}}).size(), 2u);
    EXPECT_EQ(planReshard({{split}, {}}, whole).size(), 2u);
  }
}

TEST(PlanReshard, WhatIsDealtIsPutInOrderOnce) {
  // 16 ranges over a group of two axes: the major one puts them in order, the minor one takes its part of that.
  const Split both = levels({{1, 1, false, 16}, {0, 1, false, 16}}), one = levels({{1, 1, false, 16}});
  const Layout whole = {{Split()}, {}}, dealt = {{both}, {}}, group = {{one}, {}};
  auto steps = planReshard(whole, dealt);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].axes, Axes({1}));
  EXPECT_EQ(steps[0].dealt, 16);
  EXPECT_EQ(steps[1].axes, Axes({0}));
  EXPECT_EQ(steps[1].dealt, 0);
  steps = planReshard(dealt, whole);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].axes, Axes({0}));
  EXPECT_EQ(steps[0].dealt, 0);
  EXPECT_EQ(steps[1].axes, Axes({1}));
  EXPECT_EQ(steps[1].dealt, 16);
  steps = planReshard(dealt, group); // the group's blocks are those of its members, one behind the other
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].dealt, 0);
  steps = planReshard({{Split({1})}, {}}, group);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].dealt, 0);
  EXPECT_EQ(steps[1].dealt, 16);
}

TEST(Split, RangesOfWhatIsDealt) {
  MLIRContext context;
  context.loadDialect<DistDialect>();
  Builder builder(&context);
  const auto mesh = MeshAttr::get(&context, builder.getStrArrayAttr({"shard", "seq"}), {2, 4});
  const Split both = levels({{1, 1, false, 16}, {0, 1, false, 16}});
  EXPECT_TRUE(both.isDealt());
  EXPECT_TRUE(both.isRun());
  EXPECT_FALSE(both.isRange());
  EXPECT_EQ(both.rangesLeft(0, mesh), 4);
  EXPECT_EQ(both.rangesLeft(1, mesh), 2);
  EXPECT_EQ(both.firstDealtWith(1), 0u);
  EXPECT_TRUE(both.divides(0, 32, mesh));
  EXPECT_FALSE(both.divides(0, 24, mesh));
  EXPECT_FALSE(levels({{1, 1, false, 6}}).divides(0, 48, mesh)); // 4 ranks do not share 6 ranges
  EXPECT_EQ(Layout::get(Layout{{both}, {}}.toAttr(mesh), mesh).dims.front(), both);
}

TEST(PlanReshard, CountsTheBlocksOfAllLevels) {
  auto steps = planReshard({{Split()}, {}}, {{levels({{0, 5}, {1, 2}})}, {}});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].blocks, 5);
  EXPECT_EQ(steps[1].blocks, 10);
}

TEST(PlanReshard, ExchangesHeadsForPositionsInAZigzag) {
  Layout positions = {{Split(), levels({{0, 1, true}})}, {}}, heads = {{Split({0}), Split()}, {}};
  auto steps = planReshard(positions, heads);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, Kind::AllToAll);
  EXPECT_TRUE(steps[0].fromZigzag);
  EXPECT_FALSE(steps[0].isZigzag);
  steps = planReshard(heads, positions);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_TRUE(steps[0].isZigzag);
  EXPECT_FALSE(steps[0].fromZigzag);
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
  EXPECT_EQ(layout.dims[0].axes(), Axes({2}));
  EXPECT_TRUE(layout.dims[1].empty());
  EXPECT_EQ(layout.unreduced, Partials{Partial(0)});
  EXPECT_EQ(groupSize(mesh, Axes({0, 2})), 6);
  EXPECT_EQ(Layout::get(layout.toAttr(mesh), mesh), layout);
  Layout inBlocks = {{levels({{0, 5}, {2}}), Split()}, {}};
  EXPECT_EQ(Layout::get(inBlocks.toAttr(mesh), mesh), inBlocks);
  EXPECT_TRUE(inBlocks.inRanges().isReplicated());
  EXPECT_TRUE(Layout::get(inBlocks.toAttr(mesh), MeshAttr::get(&context, mesh.getNames(), {1, 1, 1})).isReplicated());
  EXPECT_TRUE(findUnknownAxis(sharding, mesh).empty());
  EXPECT_EQ(findUnknownAxis(sharding, MeshAttr::get(&context, names({"shard", "seq"}), {2, 2})), "replicate");
}

} // namespace
