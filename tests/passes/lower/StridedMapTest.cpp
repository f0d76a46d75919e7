//===- StridedMapTest.cpp - strided maps against sets of integers ---------===//

#include "passes/lower/StridedMap.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace tessera::lower;

namespace {

/// What a map takes each of its inputs to.
std::map<int64_t, int64_t> elementsOf(const StridedMap &map) {
  std::map<int64_t, int64_t> result;
  std::vector<std::pair<int64_t, int64_t>> elements{{map.in, map.out}};
  for (const StridedMap::Dim &dim : map.dims) {
    std::vector<std::pair<int64_t, int64_t>> next;
    for (int64_t i = 0; i < dim.size; ++i)
      for (auto [in, out] : elements)
        next.emplace_back(in + i * dim.in, out + i * dim.out);
    elements = std::move(next);
  }
  for (auto [in, out] : elements)
    EXPECT_TRUE(result.try_emplace(in, out).second) << "two indices have the input " << in;
  return result;
}

std::map<int64_t, int64_t> elementsOf(const StridedMaps &maps) {
  std::map<int64_t, int64_t> result;
  for (const StridedMap &map : maps) {
    EXPECT_TRUE(map.isNested());
    for (auto [in, out] : elementsOf(map))
      EXPECT_TRUE(result.try_emplace(in, out).second) << "two maps have the input " << in;
  }
  return result;
}

/// A nested map of up to four dimensions; its outputs are dense and in an order of their own.
StridedMap randomMap(std::mt19937 &random, bool aligned) {
  auto below = [&](int64_t bound) { return int64_t(random() % uint64_t(bound)); };
  std::vector<StridedMap::Dim> dims(below(5));
  int64_t stride = 1;
  for (StridedMap::Dim &dim : dims) {
    stride *= 1 + below(3);
    if (!aligned)
      stride += below(3);
    dim = {1 + below(4), stride, 0};
    stride *= dim.size;
  }
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  int64_t out = 1;
  for (size_t i : order) {
    dims[i].out = out;
    out *= dims[i].size;
  }
  return StridedMap::get(below(40), below(10), dims);
}

TEST(StridedMap, CanonicalFormMergesWhatIsOneDimension) {
  EXPECT_EQ(StridedMap::get(3, 5, {{2, 1, 1}, {4, 2, 2}, {1, 9, 9}}), (StridedMap{3, 5, {{8, 1, 1}}}));
  EXPECT_EQ(StridedMap::get(0, 0, {{2, 1, 4}, {4, 2, 1}}), (StridedMap{0, 0, {{4, 2, 1}, {2, 1, 4}}}));
  EXPECT_FALSE((StridedMap{0, 0, {{3, 2, 1}, {2, 2, 3}}}).isNested());
}

TEST(StridedMap, MeetsAndSubtractsAsSetsDo) {
  std::mt19937 random(7);
  int64_t common = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    StridedMap a = randomMap(random, trial % 2 == 0), b = randomMap(random, trial % 2 == 0);
    auto left = elementsOf(a), right = elementsOf(b);
    std::map<int64_t, int64_t> expectedMeet, expectedRest;
    for (auto [in, out] : left)
      if (auto other = right.find(in); other != right.end())
        expectedMeet[out] = other->second;
      else
        expectedRest[in] = out;
    common += int64_t(expectedMeet.size());
    ASSERT_EQ(elementsOf(meet(a, b)), expectedMeet) << "trial " << trial;
    ASSERT_EQ(elementsOf(subtract(a, b)), expectedRest) << "trial " << trial;
    ASSERT_EQ(overlap(a, b), !expectedMeet.empty()) << "trial " << trial;
  }
  EXPECT_GT(common, 10000);
}

TEST(StridedMap, StopsWhereTheEffortEnds) {
  // Rows of 2^20 + 1 against rows of 2^20: no two are cut alike.
  const int64_t rows = 1 << 20;
  StridedMap a = StridedMap::get(0, 0, {{rows, rows + 1, 1}, {rows, 1, rows}}),
             b = StridedMap::get(0, 0, {{rows, rows, 1}, {rows - 1, 1, rows}});
  int64_t effort = 1000;
  meet(a, b, effort);
  EXPECT_LT(effort, 0);
  effort = 1000;
  subtract(a, b, effort);
  EXPECT_LT(effort, 0);
  // With enough of it, the results are those without a limit.
  std::mt19937 random(11);
  for (int trial = 0; trial < 2000; ++trial) {
    StridedMap c = randomMap(random, false), d = randomMap(random, false);
    for (int64_t least : {1, 4, 16, 64, 1 << 20}) {
      effort = least;
      if (StridedMaps common = meet(c, d, effort); effort >= 0) {
        EXPECT_EQ(common, meet(c, d)) << "trial " << trial;
      }
      effort = least;
      if (StridedMaps rest = subtract(c, d, effort); effort >= 0) {
        EXPECT_EQ(rest, subtract(c, d)) << "trial " << trial;
      }
    }
  }
}

TEST(StridedMap, StaysSmallForLargeTensors) {
  // The queries of packed projections, [tokens, 3, heads, width], against all of it and against the part of the keys.
  const int64_t tokens = 1 << 20, part = 1 << 12;
  StridedMap whole = StridedMap::identity(tokens * 3 * part);
  auto of = [&](int64_t which) { return StridedMap::get(which * part, 0, {{tokens, 3 * part, part}, {part, 1, 1}}); };
  EXPECT_EQ(meet(of(0), whole).size(), 1u);
  EXPECT_TRUE(meet(of(0), of(1)).empty());
  StridedMaps rest = subtract(whole, of(1));
  EXPECT_LE(rest.size(), 3u);
  int64_t left = 0;
  for (const StridedMap &map : rest)
    left += map.size();
  EXPECT_EQ(left, 2 * tokens * part);
}

} // namespace
