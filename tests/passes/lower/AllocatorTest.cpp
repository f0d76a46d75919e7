//===- AllocatorTest.cpp - placements never overlap and stay near the peak ===//

#include "passes/lower/Allocator.h"

#include <gtest/gtest.h>
#include <random>

using namespace tessera::lower;

namespace {

void expectSound(llvm::ArrayRef<Lifetime> lifetimes, const Placement &placement, int64_t alignment) {
  ASSERT_EQ(placement.offsets.size(), lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(placement.offsets[i] % alignment, 0);
    EXPECT_LE(placement.offsets[i] + lifetimes[i].bytes, placement.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      bool overlap = placement.offsets[i] < placement.offsets[j] + lifetimes[j].bytes &&
                     placement.offsets[j] < placement.offsets[i] + lifetimes[i].bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
}

/// The buffers of a training step of a transformer: activations that the backward pass needs, short-lived temporaries
/// of both passes, and gradients.
std::vector<Lifetime> transformerStep(int64_t layers, int64_t tokens, int64_t width, int64_t heads,
                                      int64_t vocabulary) {
  std::vector<Lifetime> result;
  constexpr int64_t ops = 12;
  int64_t head = 2 * layers * ops, unit = 4 * tokens * width;
  int64_t end = head + 6;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t forward = layer * ops, backward = end + (layers - 1 - layer) * 2 * ops;
    auto kept = [&](int64_t bytes, int64_t at, int64_t until) {
      result.push_back({bytes, forward + at, backward + until});
    };
    auto temporary = [&](int64_t bytes, int64_t at, int64_t length) {
      result.push_back({bytes, backward + at, backward + at + length});
    };
    kept(unit, 0, 22);               // input of the layer
    kept(4 * tokens, 1, 20);         // mean
    kept(4 * tokens, 1, 20);         // reciprocal deviation
    kept(3 * unit, 2, 18);           // queries, keys, values
    kept(unit, 3, 16);               // attention
    kept(4 * tokens * heads, 3, 16); // log-sum-exp
    kept(unit, 5, 12);               // residual
    kept(4 * unit, 7, 8);            // hidden
    result.push_back({4 * unit, forward + 8, forward + 9});
    result.push_back({unit, forward + 4, forward + 5});
    temporary(unit, 0, 12);
    temporary(4 * unit, 2, 4);
    temporary(4 * unit, 3, 2);
    temporary(unit, 7, 5);
    temporary(3 * unit, 13, 4);
    temporary(unit, 17, 6);
    result.push_back({4 * 12 * width * width, backward + 1, backward + 30}); // gradient of the unit
  }
  result.push_back({4 * tokens * vocabulary, head, end + 3});
  result.push_back({4 * tokens, head + 1, end + 2});
  return result;
}

TEST(Allocator, EmptyAndSingle) {
  EXPECT_EQ(placeAllocations({}, 64).bytes, 0);
  Placement placement = placeAllocations({{100, 0, 3}}, 64);
  EXPECT_EQ(placement.bytes, 128);
  EXPECT_EQ(placement.offsets[0], 0);
}

TEST(Allocator, ReusesWhatIsDead) {
  std::vector<Lifetime> lifetimes = {{128, 0, 1}, {128, 2, 3}, {64, 1, 2}};
  Placement placement = placeAllocations(lifetimes, 64);
  expectSound(lifetimes, placement, 64);
  EXPECT_EQ(placement.bytes, 192);
}

TEST(Allocator, RandomLifetimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lifetimes(random() % 120);
    for (Lifetime &lifetime : lifetimes) {
      lifetime.bytes = random() % 5000;
      lifetime.first = random() % 200;
      lifetime.last = lifetime.first + random() % 60;
    }
    Placement placement = placeAllocations(lifetimes, 64);
    expectSound(lifetimes, placement, 64);
    EXPECT_GE(placement.bytes, peakLiveBytes(lifetimes, 64));
  }
}

TEST(Allocator, NearThePeakOnTransformerSteps) {
  for (auto [layers, tokens, width, heads, vocabulary] :
       {std::array<int64_t, 5>{12, 1024, 768, 12, 50257}, {4, 1024, 128, 4, 256}, {24, 2048, 1024, 16, 32000}}) {
    std::vector<Lifetime> lifetimes = transformerStep(layers, tokens, width, heads, vocabulary);
    Placement placement = placeAllocations(lifetimes, 64);
    expectSound(lifetimes, placement, 64);
    EXPECT_LE(double(placement.bytes), 1.05 * double(peakLiveBytes(lifetimes, 64))) << layers << " layers";
  }
}

TEST(Allocator, EqualInputsGiveEqualPlacements) {
  std::vector<Lifetime> lifetimes = transformerStep(6, 256, 128, 4, 1000);
  EXPECT_EQ(placeAllocations(lifetimes, 64).offsets, placeAllocations(lifetimes, 64).offsets);
}

} // namespace
