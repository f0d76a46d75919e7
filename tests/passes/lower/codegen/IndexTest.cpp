//===- IndexTest.cpp - exact quotients, and what would make them so -------===//

#include "passes/lower/codegen/Index.h"

#include <gtest/gtest.h>

using namespace tessera::codegen;

namespace {

Space spaceOf(std::initializer_list<int64_t> sizes) {
  Space space;
  for (int64_t size : sizes) {
    Digit digit;
    digit.size = size;
    space.digits.push_back(digit);
  }
  return space;
}

TEST(Space, DividesOrSaysWhichCutWouldHelp) {
  Space space = spaceOf({4, 6});
  std::optional<Cut> wanted;
  const Index index = Index::ofDigit(0, 6) + Index::ofDigit(1);
  auto exact = space.divide(index, 6, wanted);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->first, Index::ofDigit(0));
  EXPECT_EQ(exact->second, Index::ofDigit(1));
  EXPECT_FALSE(space.divide(index, 3, wanted)); // 6 = 2 * 3
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->digit, 1u);
  EXPECT_EQ(wanted->factor, 3);
}

TEST(Space, InsideOfABranchTheDigitOfTheSpaceIsCut) {
  Space space = spaceOf({12});
  const Index inside = space.inside(Index::ofDigit(0), 1);
  EXPECT_EQ(space.outside(inside), Index::ofDigit(0));
  std::optional<Cut> wanted;
  EXPECT_FALSE(space.divide(inside, 4, wanted));
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->digit, 0u);
}

/// A position that is looked up is no digit of the space, inside of a branch either: there is nothing to cut.
TEST(Space, WhatIsLookedUpIsNotCut) {
  Space space = spaceOf({12});
  const Index looked = Index::ofDigit(space.addOpaque(12, 0));
  std::optional<Cut> wanted;
  EXPECT_FALSE(space.divide(looked, 4, wanted));
  EXPECT_FALSE(wanted);
  const Index inside = space.inside(looked, 1);
  EXPECT_EQ(space.outside(inside), looked);
  EXPECT_FALSE(space.divide(inside, 4, wanted));
  EXPECT_FALSE(wanted);
}

TEST(Index, OfACutDigitHasBothParts) {
  const Index index = Index::ofDigit(0, 12) + Index::ofDigit(1, 3) + 5;
  EXPECT_EQ(cutLast(index, {1, 4}), Index::ofDigit(0, 12) + Index::ofDigit(1, 12) + Index::ofDigit(2, 3) + 5);
  EXPECT_EQ(cutLast(Index::ofDigit(0, 12), {1, 4}), Index::ofDigit(0, 12));
}

} // namespace
