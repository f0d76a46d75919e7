//===- PermutationTest.cpp - the shuffled order is one --------------------------===//

#include "runtime/data/Permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

TEST(Permutation, IsABijectionForEverySize) {
  for (uint64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000, 4097})
    for (uint64_t epoch : {0, 1}) {
      Permutation order(size, 42, epoch);
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        uint64_t image = order(i);
        ASSERT_LT(image, size);
        ASSERT_FALSE(seen[image]) << size;
        seen[image] = true;
      }
    }
}

TEST(Permutation, DependsOnSeedAndEpochOnly) {
  constexpr uint64_t size = 1000;
  Permutation a(size, 1, 0), again(size, 1, 0), otherSeed(size, 2, 0), otherEpoch(size, 1, 1);
  int sameSeed = 0, sameEpoch = 0, fixed = 0;
  for (uint64_t i = 0; i < size; ++i) {
    EXPECT_EQ(a(i), again(i));
    sameSeed += a(i) == otherSeed(i);
    sameEpoch += a(i) == otherEpoch(i);
    fixed += a(i) == i;
  }
  // About one coincidence is expected of independent orders.
  EXPECT_LT(sameSeed, 10);
  EXPECT_LT(sameEpoch, 10);
  EXPECT_LT(fixed, 10);
}

TEST(Permutation, SpreadsNeighbours) {
  constexpr uint64_t size = 1 << 16;
  Permutation order(size, 5, 3);
  double distance = 0;
  for (uint64_t i = 1; i < size; ++i)
    distance += std::abs(static_cast<double>(order(i)) - static_cast<double>(order(i - 1)));
  EXPECT_NEAR(distance / size / size, 1.0 / 3, 0.01); // of two independent uniform positions
}

TEST(Permutation, LargeSizes) {
  uint64_t size = (1ull << 40) + 12345;
  Permutation order(size, 5, 3);
  for (uint64_t i : {uint64_t{0}, size / 2, size - 1})
    EXPECT_LT(order(i), size);
}

} // namespace
} // namespace tessera
