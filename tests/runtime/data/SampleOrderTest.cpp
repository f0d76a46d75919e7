//===- SampleOrderTest.cpp - places of a run and samples -------------------------===//

#include "runtime/data/SampleOrder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace tessera {
namespace {

TEST(SampleOrderTest, OnePartHasEverySampleOnceInAnEpoch) {
  SampleOrder order({{100, 1}}, 7, true), sequential({{100, 1}}, 7, false);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<uint64_t> seen;
    for (uint64_t index = 0; index < 100; ++index) {
      seen.insert(order.sampleAt(epoch * 100 + index));
      EXPECT_EQ(sequential.sampleAt(epoch * 100 + index), index);
    }
    EXPECT_EQ(seen.size(), 100u);
  }
  EXPECT_EQ(order.epochSamples(), 100u);
}

/// The samples of each part, in the order of the run.
std::vector<std::vector<uint64_t>> drawsOf(const SampleOrder &order, const std::vector<SamplePart> &parts,
                                           uint64_t first, uint64_t count) {
  std::vector<std::vector<uint64_t>> draws(parts.size());
  for (uint64_t place = first; place < first + count; ++place) {
    uint64_t sample = order.sampleAt(place);
    size_t part = 0;
    for (; part < parts.size() && sample >= parts[part].samples; ++part)
      sample -= parts[part].samples;
    EXPECT_LT(part, parts.size());
    draws[part].push_back(sample);
  }
  return draws;
}

TEST(SampleOrderTest, PartsOfAMixtureHaveTheirSharesInAnyStretch) {
  const std::vector<SamplePart> parts = {{1000, 0.7}, {40, 0.2}, {1000, 0.0999}, {3, 0.0001}};
  const SampleOrder order(parts, 3, true);
  for (uint64_t first : {uint64_t{0}, uint64_t{12345}, (uint64_t{1} << 30) - 500, uint64_t{1} << 40}) {
    auto draws = drawsOf(order, parts, first, 1000);
    for (size_t part = 0; part < parts.size(); ++part)
      EXPECT_LE(std::abs(static_cast<double>(draws[part].size()) - 1000 * parts[part].weight), 4)
          << first << " " << part;
  }
}

TEST(SampleOrderTest, EachPartOfAMixtureHasEpochsOfItsOwn) {
  const std::vector<SamplePart> parts = {{50, 0.5}, {7, 0.25}, {50, 0.25}};
  for (bool shuffles : {true, false}) {
    auto draws = drawsOf(SampleOrder(parts, 11, shuffles), parts, 0, 4000);
    for (size_t part = 0; part < parts.size(); ++part)
      for (size_t begin = 0; begin + parts[part].samples <= draws[part].size(); begin += parts[part].samples) {
        std::set<uint64_t> epoch(draws[part].begin() + begin, draws[part].begin() + begin + parts[part].samples);
        EXPECT_EQ(epoch.size(), parts[part].samples) << "part " << part << " from draw " << begin;
      }
    EXPECT_EQ(draws[0][0] == 0 && draws[0][1] == 1 && draws[0][2] == 2, !shuffles);
    draws[0].resize(50), draws[2].resize(50);
    EXPECT_EQ(draws[0] == draws[2], !shuffles); // orders of their own
  }
}

/// Draws have consecutive numbers where a place is reached directly, over the end of the period, too.
TEST(SampleOrderTest, APlaceIsFoundDirectly) {
  const std::vector<SamplePart> parts = {{uint64_t{1} << 50, 1 / 3.0}, {uint64_t{1} << 50, 2 / 3.0}};
  const SampleOrder order(parts, 5, false);
  auto draws = drawsOf(order, parts, (uint64_t{1} << 30) - 1000, 2000);
  for (const auto &part : draws)
    for (size_t index = 1; index < part.size(); ++index)
      ASSERT_EQ(part[index], part[index - 1] + 1);
  const double expected = (std::ldexp(1, 30) - 1000) / 3;
  EXPECT_LE(std::abs(static_cast<double>(draws[0][0]) - expected), 4);
}

TEST(SampleOrderTest, AnEpochOfAMixtureEndsWithItsFirstPart) {
  EXPECT_EQ(SampleOrder({{100, 0.5}, {1000, 0.5}}, 0, true).epochSamples(), 200u);
  EXPECT_EQ(SampleOrder({{1, 0.75}, {1000, 0.25}}, 0, true).epochSamples(), 1u);
  EXPECT_EQ(SampleOrder({{10, 0.2}, {1000, 0.8}}, 0, true).epochSamples(), 50u);
}

TEST(SampleOrderTest, SeedsGiveOtherOrders) {
  const std::vector<SamplePart> parts = {{1000, 0.5}, {1000, 0.5}};
  EXPECT_NE(drawsOf(SampleOrder(parts, 1, true), parts, 0, 50), drawsOf(SampleOrder(parts, 2, true), parts, 0, 50));
  EXPECT_EQ(drawsOf(SampleOrder(parts, 1, true), parts, 0, 50), drawsOf(SampleOrder(parts, 1, true), parts, 0, 50));
}

} // namespace
} // namespace tessera
