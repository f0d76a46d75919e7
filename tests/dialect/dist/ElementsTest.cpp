//===- ElementsTest.cpp - which elements ranks have of a split dimension --===//
//
// By hand, by counting, and by taking the steps of planReshard with lists of elements.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "runtime/data/Batch.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/DebugStringHelper.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace mlir;
using namespace tessera::dist;
using Kind = ReshardStep::Kind;
using Elements = SmallVector<int64_t>;

namespace {

Split splitInto(std::initializer_list<SplitLevel> list) {
  Split split;
  split.append(list);
  return split;
}

/// Meshes of axes a, b and c.
struct ElementsTest : testing::Test {
  ElementsTest() { context.loadDialect<DistDialect>(); }

  MeshAttr meshOf(ArrayRef<int64_t> sizes) {
    const SmallVector<StringRef> names = {"a", "b", "c"};
    SmallVector<AxisRole> roles(sizes.size(), AxisRole::Sequence);
    return MeshAttr::get(&context, Builder(&context).getStrArrayAttr(ArrayRef(names).take_front(sizes.size())), sizes,
                         roles);
  }

  MLIRContext context;
};

/// All splits over some of `numAxes` axes, in any order, each level plain or a zigzag, behind 1 or 2 blocks.
void listSplits(unsigned numAxes, const Split &split, std::vector<Split> &all) {
  all.push_back(split);
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (!split.hasAxis(axis))
      for (int64_t blocks : {1, 2})
        for (bool isZigzag : {false, true}) {
          Split with = split;
          with.push_back({axis, blocks, isZigzag});
          listSplits(numAxes, with, all);
        }
}

TEST_F(ElementsTest, AreThoseOfTheDefinition) {
  MeshAttr mesh = meshOf({2, 3});
  auto elements = [&](const Split &split, int64_t size, int64_t rank) { return elementsOf(split, size, mesh, rank); };
  EXPECT_EQ(elements(Split(), 3, 4), (Elements{0, 1, 2}));
  EXPECT_EQ(elements(Split({1}), 6, 4), (Elements{2, 3}));
  EXPECT_EQ(elements(Split({0, 1}), 6, 4), (Elements{4}));
  EXPECT_EQ(elements(Split({1, 0}), 6, 4), (Elements{3}));
  // Of six ranges the first rank has the first and the last.
  EXPECT_EQ(elements(splitInto({{1, 1, true}}), 12, 0), (Elements{0, 1, 10, 11}));
  EXPECT_EQ(elements(splitInto({{1, 1, true}}), 12, 4), (Elements{2, 3, 8, 9}));
  EXPECT_EQ(elements(splitInto({{1, 1, true}}), 12, 5), (Elements{4, 5, 6, 7}));
  // Blocks of 3, a zigzag inside of blocks of 6.
  EXPECT_EQ(elements(splitInto({{1, 2}}), 6, 1), (Elements{1, 4}));
  EXPECT_EQ(elements(splitInto({{1, 2, true}}), 12, 1), (Elements{1, 4, 7, 10}));
  // Each of a's parts is two blocks, and b splits each of these.
  EXPECT_EQ(elements(splitInto({{0}, {1, 2}}), 12, 4), (Elements{7, 10}));
  // Both split inside of blocks of 6: what was [2, 6] before a reshape, split over a and b.
  EXPECT_EQ(elements(splitInto({{0, 2}, {1}}), 12, 4), (Elements{4, 10}));
  EXPECT_EQ(elements(splitInto({{0, 2}, {1, 2}}), 24, 4), (Elements{7, 10, 19, 22}));
  // Of a zigzag's two ranges b = 0 has the first one, b = 1 the second.
  mesh = meshOf({3, 2});
  EXPECT_EQ(elements(splitInto({{0, 1, true}, {1}}), 12, 2), (Elements{2, 3}));
  EXPECT_EQ(elements(splitInto({{0, 1, true}, {1}}), 12, 3), (Elements{8, 9}));
}

TEST_F(ElementsTest, AreOnAsManyRanksAsDoNotSplitThem) {
  for (const SmallVector<int64_t> &sizes : {SmallVector<int64_t>{2, 3}, {2, 3, 2}, {4, 3}}) {
    MeshAttr mesh = meshOf(sizes);
    std::vector<Split> splits;
    listSplits(static_cast<unsigned>(sizes.size()), Split(), splits);
    ASSERT_GT(splits.size(), 40u);
    const int64_t size = mesh.getNumRanks() * 16;
    for (const Split &split : splits) {
      std::vector<int64_t> seen(size, 0);
      for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
        const Elements elements = elementsOf(split, size, mesh, rank);
        ASSERT_EQ(static_cast<int64_t>(elements.size()), size / groupSize(mesh, split));
        ASSERT_TRUE(llvm::is_sorted(elements));
        ASSERT_TRUE(!split.isRange() ||
                    elements.back() - elements.front() + 1 == static_cast<int64_t>(elements.size()));
        for (int64_t element : elements)
          ++seen.at(element);
      }
      for (int64_t count : seen)
        ASSERT_EQ(count, mesh.getNumRanks() / groupSize(mesh, split));
    }
  }
}

TEST_F(ElementsTest, OfAZigzagOverTwoAxesAreThoseOfOneAxis) {
  MeshAttr two = meshOf({2, 3}), one = meshOf({6});
  for (int64_t blocks : {1, 5})
    for (int64_t rank = 0; rank < 6; ++rank)
      EXPECT_EQ(elementsOf(splitInto({{0, blocks, true}, {1, 1, true}}), blocks * 24, two, rank),
                elementsOf(splitInto({{0, blocks, true}}), blocks * 24, one, rank));
}

/// Of causal attention, and of a window, as many pairs of a query and a key that it sees for each rank.
TEST_F(ElementsTest, OfAZigzagHaveEqualWork) {
  for (int64_t ranks : {2, 3, 4, 8}) {
    MeshAttr mesh = meshOf({ranks});
    const int64_t positions = 2 * ranks * 64;
    for (int64_t window : {positions, positions / 4}) {
      auto pairsOf = [&](const Split &split, int64_t rank) {
        int64_t pairs = 0;
        for (int64_t query : elementsOf(split, positions, mesh, rank))
          pairs += std::min(query + 1, window);
        return pairs;
      };
      int64_t most = 0, all = 0, mostInOrder = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const int64_t pairs = pairsOf(splitInto({{0, 1, true}}), rank);
        most = std::max(most, pairs);
        all += pairs;
        mostInOrder = std::max(mostInOrder, pairsOf(Split({0}), rank));
      }
      const double balance = static_cast<double>(all) / static_cast<double>(ranks * most);
      if (window == positions) {
        EXPECT_EQ(all, ranks * most);
        EXPECT_LT(all, ranks * mostInOrder * 3 / 4 + ranks);
      } else {
        EXPECT_GE(balance, 0.75); // a window leaves early queries less, which only some rank has
      }
    }
  }
}

TEST_F(ElementsTest, AreTheRuntimesPartOfABatch) {
  MeshAttr mesh = meshOf({2, 3});
  tessera::BatchSpec spec;
  spec.dtype = tessera::DataType::I32;
  spec.globalShape = {2, 24};
  spec.dims = {tessera::artifact::DimRole::Sample, tessera::artifact::DimRole::Position};
  std::vector<int32_t> rows(48);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int32_t>(i);
  for (bool isZigzag : {false, true})
    for (int64_t rank = 0; rank < 6; ++rank) {
      const Elements elements = elementsOf(splitInto({{0, 1, isZigzag}, {1, 1, isZigzag}}), 24, mesh, rank);
      std::vector<int32_t> part(8);
      copyRankPart(spec, reinterpret_cast<const uint8_t *>(rows.data()), {{1, 6, rank, isZigzag}}, part.data());
      for (int64_t row : {0, 1})
        for (auto [place, element] : llvm::enumerate(elements))
          EXPECT_EQ(part[row * 4 + place], row * 24 + element);
    }
}

// --- Steps with lists of elements --------------------------------------------

/// What a rank has of each dimension.
using Parts = SmallVector<Elements, 2>;

/// Where parts lie that position `position` of `ranks` has of one block of `size` elements.
Elements placesIn(int64_t size, int64_t ranks, bool isZigzag, int64_t position) {
  Elements places;
  const int64_t run = size / (isZigzag ? 2 * ranks : ranks);
  for (int64_t start : isZigzag ? Elements{position, 2 * ranks - 1 - position} : Elements{position})
    for (int64_t i = 0; i < run; ++i)
      places.push_back(start * run + i);
  return places;
}

/// The part of `whole` at `position`, of each of `blocks` blocks.
Elements take(const Elements &whole, int64_t blocks, int64_t ranks, bool isZigzag, int64_t position) {
  Elements part;
  const int64_t block = static_cast<int64_t>(whole.size()) / blocks;
  for (int64_t first = 0; first < static_cast<int64_t>(whole.size()); first += block)
    for (int64_t place : placesIn(block, ranks, isZigzag, position))
      part.push_back(whole[first + place]);
  return part;
}

/// What `parts` of all positions are parts of.
Elements put(ArrayRef<Elements> parts, int64_t blocks, bool isZigzag) {
  const auto ranks = static_cast<int64_t>(parts.size()), size = static_cast<int64_t>(parts[0].size()) * ranks;
  Elements whole(size);
  for (auto [position, part] : llvm::enumerate(parts)) {
    const auto *next = part.begin();
    for (int64_t first = 0; first < size; first += size / blocks)
      for (int64_t place : placesIn(size / blocks, ranks, isZigzag, position))
        whole[first + place] = *next++;
  }
  return whole;
}

/// One step of all ranks.
std::vector<Parts> takeStep(const ReshardStep &step, const std::vector<Parts> &values, MeshAttr mesh) {
  const ArrayAttr axes = axisNames(mesh, step.axes);
  const int64_t ranks = groupSize(mesh, step.axes);
  std::vector<Parts> after = values;
  for (auto [rank, value] : llvm::enumerate(after)) {
    // The members of the rank's group, by position: they differ from it on these axes only.
    SmallVector<size_t> members(ranks, rank);
    SmallVector<unsigned> others;
    for (unsigned axis = 0; axis < mesh.getSizes().size(); ++axis)
      if (!llvm::is_contained(step.axes, axis))
        others.push_back(axis);
    const ArrayAttr rest = axisNames(mesh, others);
    for (size_t other = 0; other < values.size(); ++other)
      if (positionInGroup(mesh, rest, static_cast<int64_t>(other)) ==
          positionInGroup(mesh, rest, static_cast<int64_t>(rank)))
        members[positionInGroup(mesh, axes, other)] = other;
    auto parts = [&](int64_t dim) {
      return llvm::map_to_vector(members, [&](size_t member) { return values[member][dim]; });
    };
    const int64_t position = positionInGroup(mesh, axes, rank);
    if (step.kind == Kind::AllGather)
      value[step.dim] = put(parts(step.dim), step.blocks, step.isZigzag);
    else if (step.kind == Kind::Slice || step.kind == Kind::ReduceScatter || step.kind == Kind::AllToAll)
      value[step.dim] = take(value[step.dim], step.blocks, ranks, step.isZigzag, position);
    if (step.kind == Kind::AllToAll)
      value[step.fromDim] = put(parts(step.fromDim), step.fromBlocks, step.fromZigzag);
  }
  return after;
}

TEST_F(ElementsTest, AreWhereTheStepsOfAPlanBringThem) {
  MeshAttr mesh = meshOf({2, 3, 2});
  const int64_t size = mesh.getNumRanks() * 16;
  std::vector<Split> splits;
  listSplits(3, Split(), splits);
  auto valuesOf = [&](const Layout &layout) {
    std::vector<Parts> values(mesh.getNumRanks());
    for (auto [rank, value] : llvm::enumerate(values))
      for (const Split &split : layout.dims)
        value.push_back(elementsOf(split, size, mesh, rank));
    return values;
  };
  // Every split of the first dimension, then some pairs; the second one has some of the axes that are left.
  auto layoutOf = [&](size_t first, size_t second) {
    Layout layout = {{splits[first % splits.size()], Split()}, {}};
    for (const SplitLevel &level : splits[second % splits.size()])
      if (!layout.splits(level.axis))
        layout.dims[1].push_back(level);
    return layout;
  };
  const Layout whole = Layout::replicated(2);
  std::vector<std::pair<Layout, Layout>> pairs;
  for (size_t i = 0; i < splits.size(); ++i) {
    pairs.push_back({whole, layoutOf(i, 0)});
    pairs.push_back({layoutOf(i, 0), whole});
    for (size_t j = 0; j < 12; ++j)
      pairs.push_back({layoutOf(i, 7 * i + 5 * j), layoutOf(11 * i + 13 * j, 3 * i + j)});
  }
  for (const auto &[from, to] : pairs) {
    std::vector<Parts> values = valuesOf(from);
    for (const ReshardStep &step : planReshard(from, to))
      values = takeStep(step, values, mesh);
    ASSERT_EQ(values, valuesOf(to)) << "from " << debugString(from.toAttr(mesh)) << " to "
                                    << debugString(to.toAttr(mesh));
  }
}

// --- The attribute ------------------------------------------------------------

TEST_F(ElementsTest, SplitsAreWhatTheirAttributesSay) {
  MeshAttr mesh = meshOf({2, 3, 2});
  std::vector<Split> splits;
  listSplits(3, Split(), splits);
  for (const Split &split : splits) {
    const Layout layout = {{Split(), split}, {}};
    ASSERT_EQ(Layout::get(layout.toAttr(mesh), mesh), layout);
    ASSERT_EQ(getSplit(layout.toAttr(mesh), 1, mesh), split);
    ASSERT_EQ(layout.inRanges() == layout, split.isRange());
  }
}

TEST_F(ElementsTest, AxesOfSizeOneLeaveBlocksBehind) {
  MeshAttr mesh = meshOf({2, 1, 3});
  Builder builder(&context);
  auto splitOf = [&](ArrayRef<Attribute> list) {
    return getSplit(
        ShardingAttr::get(&context, builder.getArrayAttr(builder.getArrayAttr(list)), builder.getArrayAttr({})), 0,
        mesh);
  };
  Attribute a = builder.getStringAttr("a"), b = builder.getStringAttr("b"), c = builder.getStringAttr("c");
  Attribute zigzag = builder.getUnitAttr();
  auto blocks = [&](int64_t count) { return builder.getI64IntegerAttr(count); };
  EXPECT_EQ(splitOf({b}), Split());
  EXPECT_EQ(splitOf({a, b, zigzag}), Split({0}));
  EXPECT_EQ(splitOf({b, zigzag, a}), Split({0}));
  EXPECT_EQ(splitOf({a, b, c, zigzag}), splitInto({{0}, {2, 1, true}}));
  EXPECT_EQ(splitOf({a, blocks(5), b, c}), splitInto({{0}, {2, 5}}));
  // Each of five blocks is four.
  EXPECT_EQ(splitOf({blocks(5), b, blocks(4), c}), splitInto({{2, 20}}));
}

/// What the syntax cannot say (dist.sharding_attr_c4).
TEST_F(ElementsTest, AttributesHaveAnOrderBehindAnAxisOnly) {
  Builder builder(&context);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto verify = [&](ArrayRef<Attribute> list) {
    message.clear();
    return ShardingAttr::getChecked([&] { return emitError(builder.getUnknownLoc()); }, &context,
                                    builder.getArrayAttr(builder.getArrayAttr(list)),
                                    builder.getArrayAttr({})) != nullptr;
  };
  Attribute a = builder.getStringAttr("a"), b = builder.getStringAttr("b"), zigzag = builder.getUnitAttr();
  EXPECT_TRUE(verify({a, zigzag, builder.getI64IntegerAttr(2), b, zigzag}));
  for (const SmallVector<Attribute> &list : {SmallVector<Attribute>{zigzag, a}, {a, zigzag, zigzag, b}}) {
    EXPECT_FALSE(verify(list));
    EXPECT_EQ(message, "a dimension has unit, expected an axis");
  }
  EXPECT_FALSE(verify({builder.getI64IntegerAttr(2), zigzag, a}));
  EXPECT_EQ(message, "a dimension has 2 blocks, and no axis splits them, expected at least 2, and an axis");
  EXPECT_FALSE(verify({a, builder.getF64FloatAttr(2.0)}));
  EXPECT_EQ(message, "a dimension has 2.000000e+00 : f64, expected an axis");
}

TEST_F(ElementsTest, CountsOfSplits) {
  MeshAttr mesh = meshOf({2, 3, 2});
  const Split split = splitInto({{1, 2}, {0, 1, true}, {2, 3}});
  EXPECT_EQ(split.axes(), Axes({1, 0, 2}));
  EXPECT_EQ(groupSize(mesh, split), 12);
  EXPECT_EQ(split.blocksAt(0), 2);
  EXPECT_EQ(split.blocksAt(1), 2);
  EXPECT_EQ(split.blocksAt(2), 6);
  EXPECT_TRUE(split.hasBlocks());
  EXPECT_FALSE(split.isRange());
  EXPECT_FALSE(splitInto({{0, 1, true}}).hasBlocks());
  EXPECT_FALSE(splitInto({{0, 1, true}}).isRange());
  EXPECT_TRUE(Split({0, 1}).isRange());
  EXPECT_TRUE(Split().isPrefixOf(split));
  EXPECT_TRUE(splitInto({{1, 2}}).isPrefixOf(split));
  EXPECT_FALSE(splitInto({{1}}).isPrefixOf(split));
  EXPECT_FALSE(splitInto({{1, 2}, {0}}).isPrefixOf(split));
  EXPECT_FALSE(split.isPrefixOf(splitInto({{1, 2}})));
  EXPECT_TRUE(split.hasAxis(2));
  EXPECT_FALSE(splitInto({{1, 2}}).hasAxis(2));
}

TEST_F(ElementsTest, PositionsAreSplitOverSequenceAxes) {
  Builder builder(&context);
  auto mesh =
      MeshAttr::get(&context, builder.getStrArrayAttr({"data", "ring", "one", "seq", "tp"}), {2, 2, 1, 3, 2},
                    {AxisRole::Data, AxisRole::Sequence, AxisRole::Sequence, AxisRole::Sequence, AxisRole::Model});
  EXPECT_EQ(positionAxes(mesh), Axes({1, 3}));
  EXPECT_EQ(sampleAxes(mesh), Axes({0}));
  EXPECT_EQ(gradientAxes(mesh), Axes({0, 1, 3}));
  EXPECT_EQ(stateAxes(mesh), Axes({0, 1, 3}));
  EXPECT_EQ(parameterAxes(mesh), Axes({4}));
}

} // namespace
