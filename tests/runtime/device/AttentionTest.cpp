//===- AttentionTest.cpp - attention against a double reference ------------===//

#include "tests/runtime/device/AttentionFixture.h"
#include "tests/runtime/device/AttentionParts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

using Case = test::AttentionCase;
using Fixture = test::AttentionFixture;
using test::HostTensor;
using test::Ranges;
using test::RangesOf;

void check(const Case &c) {
  Fixture reference(c);
  if (c.isHalf)
    for (HostTensor *input : {&reference.q, &reference.k, &reference.v, &reference.dout})
      test::HalfTensor rounded(*input);
  reference.runReference();
  // In bf16 results are rounded, and gradients are computed from the rounded result.
  const bool isRounded = c.isHalf && !c.hasWideResults;
  const double forward = isRounded ? 0x1p-8 : 2e-6, backward = isRounded ? 0x1p-7 : 5e-6;
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
    Fixture fixture(c);
    fixture.run(*kernel, c.threads);
    EXPECT_LT(relativeError(fixture.out, reference.wantedOut), forward);
    EXPECT_LT(relativeError(fixture.lse, reference.wantedLse), 2e-6);
    EXPECT_LT(relativeError(fixture.dq, reference.wantedDq), backward);
    EXPECT_LT(relativeError(fixture.dk, reference.wantedDk), backward);
    EXPECT_LT(relativeError(fixture.dv, reference.wantedDv), backward);
  }
}

TEST(Attention, Plain) { check({2, 2, 2, 64, 64, 32, 32}); }
TEST(Attention, Causal) { check({1, 3, 3, 200, 200, 16, 16, true}); }
TEST(Attention, CausalOverSeveralChunks) { check({1, 1, 1, 300, 300, 8, 8, true}); }
TEST(Attention, OddSizes) { check({1, 2, 2, 67, 131, 13, 7}); }
TEST(Attention, One) { check({1, 1, 1, 1, 1, 1, 1}); }
TEST(Attention, CausalFewerQueries) { check({1, 1, 1, 5, 70, 8, 8, true}); }
TEST(Attention, CausalFewerKeys) { check({1, 1, 1, 70, 5, 8, 8, true}); } // the first rows attend to nothing
TEST(Attention, GroupedQueries) { check({2, 6, 2, 80, 80, 24, 24, true}); }
TEST(Attention, SingleGroup) { check({1, 4, 1, 70, 90, 20, 40, false, Case::NoMask, {}, false, 3}); }
TEST(Attention, Interleaved) { check({2, 3, 3, 66, 66, 16, 16, true, Case::NoMask, {}, true}); }
TEST(Attention, BooleanPaddingMask) { check({2, 2, 2, 30, 70, 8, 8, false, Case::Boolean, {2, 1, 1, 70}}); }
TEST(Attention, BooleanFullMask) { check({2, 2, 1, 30, 70, 8, 8, true, Case::Boolean, {2, 2, 30, 70}}); }
TEST(Attention, AdditiveMask) { check({2, 4, 2, 65, 65, 16, 16, true, Case::Additive, {1, 4, 65, 65}}); }
TEST(Attention, AdditiveRowMask) { check({2, 2, 2, 30, 40, 8, 8, false, Case::Additive, {2, 1, 30, 40}}); }

Case half(Case c) {
  c.isHalf = true;
  return c;
}
TEST(Attention, BFloat16) {
  check(half({2, 2, 2, 64, 64, 32, 32}));
  check(half({1, 2, 2, 67, 131, 13, 7}));
  check(half({2, 6, 2, 80, 80, 24, 24, true, Case::NoMask, {}, true}));
  check(half({1, 4, 1, 300, 300, 16, 16, true, Case::NoMask, {}, false, 3})); // more threads than groups
  check(half({2, 2, 1, 30, 70, 8, 8, true, Case::Boolean, {2, 2, 30, 70}}));
  check(half({2, 4, 2, 65, 65, 16, 16, true, Case::Additive, {1, 4, 65, 65}}));
}

Case usualScale(Case c) {
  c.scale = 1 / std::sqrt(static_cast<float>(c.depth));
  return c;
}
TEST(Attention, LongDepths) { // sums in more than one part, and in place
  for (int64_t keys : {128, 135}) {
    check(usualScale({1, 2, 1, 130, keys, 144, 80, true}));
    check(usualScale(half({1, 2, 1, 130, keys, 144, 160, true})));
    check(usualScale(half({1, 2, 2, 130, keys, 133, 17, false, Case::NoMask, {}, false, 3}))); // rows at odd places
  }
}

Case windowed(Case c, int64_t window, int threads = 2) {
  c.causal = true;
  c.window = window;
  c.threads = threads;
  return c;
}
TEST(Attention, Windows) {
  for (int64_t window : {int64_t{2}, int64_t{3}, int64_t{64}, int64_t{100}, INT64_MAX})
    check(windowed({1, 1, 1, 300, 300, 8, 8}, window));
  check(windowed({2, 4, 2, 70, 200, 16, 24}, 65));
  check(windowed({1, 2, 2, 200, 70, 8, 8}, 20)); // the first rows attend to nothing
  check(windowed({1, 4, 1, 130, 130, 16, 16}, 40, 3));
  check(windowed({2, 2, 1, 90, 90, 8, 8, true, Case::Boolean, {2, 2, 90, 90}}, 30));
}

Case ranged(Case c, Ranges ranges, RangesOf of, int threads = 2) {
  c.ranges = ranges;
  c.rangesOf = of;
  c.threads = threads;
  return c;
}
TEST(Attention, RangesOfKeys) {
  for (Ranges ranges : {Ranges::Ragged, Ranges::Documents}) {
    for (RangesOf of : {RangesOf::All, RangesOf::EachSample, RangesOf::EndsOfEachSample}) {
      check(ranged({2, 2, 2, 70, 70, 8, 8}, ranges, of));
      check(ranged({2, 2, 1, 70, 130, 8, 16, true}, ranges, of, 3)); // more threads than groups
    }
    const RangesOf of = RangesOf::EachSample;
    check(ranged({2, 1, 1, 300, 90, 8, 8}, ranges, of));
    check(ranged({1, 2, 1, 280, 280, 8, 8, true}, ranges, of, 3));
    check(ranged({2, 2, 1, 40, 70, 8, 8, false, Case::Additive, {2, 1, 40, 70}}, ranges, of));
    check(windowed(ranged({2, 2, 1, 150, 150, 8, 8}, ranges, of), 33));
    check(half(ranged({2, 2, 1, 100, 100, 8, 8, true}, ranges, of, 3)));
  }
}

TEST(Attention, RowsOutsideOfAllRangesGiveZero) {
  auto check = [](const cpu::AttentionKernel &kernel, int threads, bool isHalf) {
    Case c = ranged({1, 1, 1, 130, 200, 8, 8}, Ranges::Documents, RangesOf::All);
    c.isHalf = isHalf;
    Fixture fixture(c);
    for (int64_t query = 0; query < 130; ++query) {
      fixture.ranges->begin(0, query) = 70;
      fixture.ranges->end(0, query) = query < 66 ? 70 : 75;
    }
    fixture.run(kernel, threads);
    fixture.out.forEach([&](const std::vector<int64_t> &at) {
      const bool seesNone = at[2] < 66;
      EXPECT_EQ(fixture.lse.at({0, 0, at[2]}) == -INFINITY, seesNone);
      EXPECT_EQ(fixture.out.at(at) == 0, seesNone);
      EXPECT_EQ(fixture.dq.at(at) == 0, seesNone);
    });
    fixture.dk.forEach([&](const std::vector<int64_t> &at) {
      const bool isSeen = at[2] >= 70 && at[2] < 75;
      EXPECT_EQ(fixture.dk.at(at) != 0, isSeen);
      EXPECT_EQ(fixture.dv.at(at) != 0, isSeen);
    });
  };
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels())
    for (int threads : {1, 3})
      for (bool isHalf : {false, true})
        check(*kernel, threads, isHalf);
}

TEST(Attention, WideResultsOfBFloat16) {
  for (int threads : {1, 3}) {
    Case c = half({2, 4, 2, 70, 130, 16, 24, true, Case::NoMask, {}, true, threads});
    c.hasWideResults = true;
    check(c);
    check(windowed(c, 40, threads));
  }
}

TEST(Attention, PartsOfTheKeysAddUp) {
  for (int threads : {1, 3})
    for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
      auto run = [&](const cpu::AttentionGradArguments &arguments, bool isBackward) {
        cpu::Team team(threads);
        cpu::Scratch scratch;
        isBackward ? cpu::attentionGrad(arguments, scratch, team, *kernel)
                   : cpu::attention(arguments, scratch, team, *kernel);
      };
      for (bool isHalf : {false, true}) {
        test::AttentionParts(isHalf, 0.37f).check(run, 5e-6);
        // Log-sum-exps that are rounded visibly.
        test::AttentionParts(isHalf, 60).check(run, 1e-3);
      }
    }
}

/// Keys that are hidden by adding a large number: to a query that sees none, f32's scores are all that number.
void checkHidden(float hidden, int threads) {
  Case c{1, 2, 1, 70, 130, 8, 8, false, Case::Additive, {1, 1, 70, 130}};
  Fixture reference(c), fixture(c);
  for (Fixture *each : {&reference, &fixture})
    each->additive->forEach([&](const std::vector<int64_t> &at) {
      const bool seesNone = at[2] % 3 == 0;
      each->additive->at(at) = seesNone || at[3] % 2 == 0 ? hidden : 0;
    });
  reference.runReference();
  fixture.run(cpu::attentionKernel(), threads);
  EXPECT_LT(relativeError(fixture.out, reference.wantedOut), 2e-6);
  EXPECT_LT(relativeError(fixture.dq, reference.wantedDq), 5e-6);
  EXPECT_LT(relativeError(fixture.dk, reference.wantedDk), 5e-6);
  EXPECT_LT(relativeError(fixture.dv, reference.wantedDv), 5e-6);
}

TEST(Attention, KeysHiddenByAddingALargeNumber) {
  for (int threads : {1, 3})
    for (float hidden : {-1e9f, -std::numeric_limits<float>::max()})
      checkHidden(hidden, threads);
}

TEST(Attention, RowsThatAttendToNothingGiveZero) {
  Fixture fixture({1, 1, 1, 4, 6, 8, 8, false, Case::Boolean, {1, 1, 4, 6}});
  std::fill(fixture.boolean.begin() + 6, fixture.boolean.begin() + 12, 0);
  fixture.run(cpu::attentionKernel(), 1);
  EXPECT_EQ(fixture.lse.at({0, 0, 1}), -INFINITY);
  for (int64_t d = 0; d < 8; ++d) {
    EXPECT_EQ(fixture.out.at({0, 0, 1, d}), 0.0f);
    EXPECT_EQ(fixture.dq.at({0, 0, 1, d}), 0.0f);
  }
}

/// More threads than groups: the other split of the backward pass.
void checkSameBits(const Case &c) {
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
    Fixture one(c), three(c);
    one.run(*kernel, 1);
    three.run(*kernel, 3);
    EXPECT_EQ(one.out.raw(), three.out.raw());
    EXPECT_EQ(one.lse.raw(), three.lse.raw());
    EXPECT_EQ(one.dq.raw(), three.dq.raw());
    EXPECT_EQ(one.dk.raw(), three.dk.raw());
    EXPECT_EQ(one.dv.raw(), three.dv.raw());
  }
}

TEST(Attention, SameBitsForAnyNumberOfThreads) {
  for (bool isHalf : {false, true})
    for (int64_t keys : {200, 333}) // sums in place, and in scratch
      for (Ranges ranges : {Ranges::None, Ranges::Ragged, Ranges::Documents}) {
        Case c = ranged({1, 4, 2, 300, keys, 16, 16, true}, ranges, RangesOf::All);
        c.isHalf = isHalf;
        checkSameBits(c);
      }
}

TEST(Attention, NegativeScale) {
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
    Fixture fixture({1, 1, 1, 130, 130, 16, 16, true});
    fixture.scale = -0.5f;
    fixture.runReference();
    fixture.run(*kernel, 1);
    EXPECT_LT(relativeError(fixture.out, fixture.wantedOut), 2e-6);
    EXPECT_LT(relativeError(fixture.dq, fixture.wantedDq), 5e-6);
    EXPECT_LT(relativeError(fixture.dk, fixture.wantedDk), 5e-6);
  }
}

TEST(Attention, WhatIsNoNumberIsSeen) {
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels())
    for (bool isHalf : {false, true}) {
      Case c{1, 1, 1, 70, 70, 16, 16, true};
      c.isHalf = isHalf;
      Fixture fixture(c);
      fixture.q.at({0, 0, 66, 3}) = NAN;
      fixture.run(*kernel, 1);
      for (int64_t query = 0; query < 70; ++query) {
        EXPECT_EQ(std::isnan(fixture.lse.at({0, 0, query})), query == 66);
        EXPECT_EQ(std::isnan(fixture.out.at({0, 0, query, 5})), query == 66);
        EXPECT_EQ(std::isnan(fixture.dq.at({0, 0, query, 5})), query == 66);
      }
      EXPECT_TRUE(std::isnan(fixture.dk.at({0, 0, 66, 5})));
    }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Case c{1, 1, 1, 66, 66, 8, 8, true};
  Fixture fixture(c);
  fixture.scale = 80;
  fixture.runReference();
  fixture.run(cpu::attentionKernel(), 1);
  EXPECT_LT(relativeError(fixture.out, fixture.wantedOut), 1e-4); // rounding of scores near 1000
}

} // namespace
} // namespace tessera
