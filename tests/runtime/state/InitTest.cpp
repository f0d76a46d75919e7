//===- InitTest.cpp - seeded values: distribution and independence ------------===//

#include "runtime/state/Init.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <cmath>
#include <cstring>

namespace tessera {
namespace {

using test::FakeState;

TEST(Philox, KnownAnswers) {
  // From the authors' kat_vectors (Random123).
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Init, NormalHasItsMoments) {
  constexpr int64_t count = 1 << 20;
  std::vector<float> values(count);
  initialValues(test::normal(0.5, 2.0), parameterKey(7, "w"), 0, count, values.data());
  double sum = 0, squares = 0, fourth = 0, withinOne = 0;
  for (float value : values) {
    double z = (value - 0.5) / 2.0;
    ASSERT_TRUE(std::isfinite(value));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    withinOne += std::abs(z) < 1;
  }
  EXPECT_NEAR(sum / count, 0, 5e-3);
  EXPECT_NEAR(squares / count, 1, 5e-3);
  EXPECT_NEAR(fourth / count, 3, 5e-2);
  EXPECT_NEAR(withinOne / count, 0.682689, 2e-3);
}

TEST(Init, NormalIsBoxMullerOfPhilox) {
  PhiloxKey key = parameterKey(3, "w");
  std::vector<float> values(4000);
  initialValues(test::normal(0, 1), key, 0, 4000, values.data());
  for (int64_t i = 0; i < 4000; i += 2) {
    auto words = philox(i / 4, key);
    uint32_t first = words[i % 4], second = words[i % 4 + 1];
    double radius = std::sqrt(-2 * std::log(((first >> 8) + 1.0) * 0x1p-24)), angle = second * 0x1p-32 * 2 * M_PI;
    ASSERT_NEAR(values[i], radius * std::cos(angle), 2e-6) << i;
    ASSERT_NEAR(values[i + 1], radius * std::sin(angle), 2e-6) << i;
  }
}

TEST(Init, UniformStaysInItsInterval) {
  std::vector<float> values(1 << 16);
  initialValues(test::uniform(-0.25, 0.75), parameterKey(1, "w"), 0, values.size(), values.data());
  double sum = 0;
  for (float value : values) {
    ASSERT_GE(value, -0.25f);
    ASSERT_LT(value, 0.75f);
    sum += value;
  }
  EXPECT_NEAR(sum / values.size(), 0.25, 5e-3);
}

TEST(Init, AnyRangeGivesTheSameElements) {
  PhiloxKey key = parameterKey(11, "w");
  std::vector<float> whole(300000);
  initialValues(test::normal(0, 1), key, 0, whole.size(), whole.data());
  for (auto [begin, end] :
       {std::pair<int64_t, int64_t>{0, 1}, {3, 9}, {1023, 1026}, {4095, 290001}, {299999, 300000}}) {
    std::vector<float> part(end - begin);
    initialValues(test::normal(0, 1), key, begin, end, part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin)) << begin;
  }
}

TEST(Init, SeedsAndNamesGiveDifferentStreams) {
  float a, b, c;
  initialValues(test::normal(0, 1), parameterKey(1, "w"), 0, 1, &a);
  initialValues(test::normal(0, 1), parameterKey(2, "w"), 0, 1, &b);
  initialValues(test::normal(0, 1), parameterKey(1, "v"), 0, 1, &c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(Init, AveragesBeginAsTheParameters) {
  FakeState::Parameter w{"w", {5, 7}, test::normal(0, 0.02)};
  FakeState state({{w}}, 2, true, {StateRole::Parameter, StateRole::Average, test::moment1});
  for (const RankState &rank : state.ranks)
    ASSERT_STATUS_OK(initialiseState(rank, 42));
  EXPECT_EQ(state.gather("w", StateRole::Average), state.gather("w"));
  EXPECT_EQ(state.gather("w", test::moment1), std::vector<float>(35, 0.0f));
  FakeState alone({{w}}, 1, true, {StateRole::Average});
  EXPECT_NE(startAverages(alone.ranks[0]).message().find("has no parameter"), std::string::npos);
}

TEST(Init, SameOnAnyMeshAndWrap) {
  FakeState::Parameter w{"w", {5, 7}, test::normal(0, 0.02)}, b{"b", {7}, test::constant(1)},
      e{"e", {11}, test::uniform(-1, 1)};
  FakeState reference({{w, b, e}}, 1);
  ASSERT_STATUS_OK(initialiseState(reference.ranks[0], 42));
  EXPECT_EQ(reference.gather("b"), std::vector<float>(7, 1.0f));
  EXPECT_EQ(reference.gather("w", test::moment1), std::vector<float>(35, 0.0f));
  for (int ranks : {1, 2, 3, 4})
    for (const FakeState::Wrap &wrap : {FakeState::Wrap{{w, b, e}}, {{e}, {w, b}}, {{b}, {w}, {e}}}) {
      FakeState state(wrap, ranks);
      for (const RankState &rank : state.ranks)
        ASSERT_STATUS_OK(initialiseState(rank, 42));
      for (const char *name : {"w", "b", "e"})
        EXPECT_EQ(state.gather(name), reference.gather(name)) << name << " on " << ranks;
    }
}

TEST(Init, NewMemoryNeedsNoZeros) {
  FakeState::Parameter w{"w", {5, 7}, test::normal(0, 0.02)};
  FakeState used({{w}}, 2), fresh({{w}}, 2);
  used.fill(5.0f);
  fresh.fill(0.0f);
  for (int rank : {0, 1}) {
    ASSERT_STATUS_OK(initialiseState(used.ranks[rank], 42));
    ASSERT_STATUS_OK(initialiseState(fresh.ranks[rank], 42, /*isZeroed=*/true));
    for (size_t view = 0; view < used.ranks[rank].size(); ++view)
      EXPECT_EQ(
          std::memcmp(used.ranks[rank][view].data, fresh.ranks[rank][view].data, used.ranks[rank][view].localBytes()),
          0);
  }
}

TEST(Init, PaddingIsZero) {
  FakeState state({{{"w", {5}, test::constant(3)}}}, 4);
  for (const RankState &rank : state.ranks)
    ASSERT_STATUS_OK(initialiseState(rank, 1));
  const float *last = reinterpret_cast<const float *>(state.ranks[3][0].data);
  EXPECT_EQ(last[0], 0.0f);
  EXPECT_EQ(last[1], 0.0f);
}

TEST(Init, MissingInitialisersAreListedTogether) {
  FakeState state({{{"w", {5}, std::nullopt}, {"b", {5}, test::constant(0)}, {"e", {2}, std::nullopt}}}, 1);
  EXPECT_ERROR(initialiseState(state.ranks[0], 1), "need weights: 'w', 'e'");
}

} // namespace
} // namespace tessera
