//===- LearningRateTest.cpp - the course of the learning rate ------------------------===//

#include "runtime/artifact/LearningRate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

artifact::LearningRateT make(const ScheduleRequest &request) {
  artifact::LearningRateT rate;
  EXPECT_EQ(makeLearningRate(request, rate), "");
  return rate;
}

TEST(LearningRate, WarmsUpThenStays) {
  auto rate = make({.kind = "constant", .peak = 0.3, .warmup = 7});
  EXPECT_EQ(learningRateAt(rate, 1, 110), 0.3 * 1.0 / 7.0);
  EXPECT_EQ(learningRateAt(rate, 6, 110), 0.3 * 6.0 / 7.0);
  EXPECT_EQ(learningRateAt(rate, 7, 110), 0.3);
  EXPECT_EQ(learningRateAt(rate, 500, 110), 0.3);
}

TEST(LearningRate, FallsAlongACosine) {
  auto rate = make({.kind = "cosine", .peak = 1, .lowest = 0.1, .warmup = 10});
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1, 110), 0.1);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 10, 110), 1);
  EXPECT_NEAR(learningRateAt(rate, 60, 110), 0.55, 1e-12);
  EXPECT_NEAR(learningRateAt(rate, 110, 110), 0.1, 1e-12);
  EXPECT_NEAR(learningRateAt(rate, 500, 110), 0.1, 1e-12);
  EXPECT_EQ(learningRateAt(rate, 20, 10), 1) << "a run that ends in its warm-up never falls";
}

TEST(LearningRate, FallsLinearlyAndAsARoot) {
  auto linear = make({.kind = "linear", .peak = 1, .lowest = 0.5, .warmup = 10});
  EXPECT_DOUBLE_EQ(learningRateAt(linear, 60, 110), 0.75);
  EXPECT_DOUBLE_EQ(learningRateAt(linear, 110, 110), 0.5);
  auto root = make({.kind = "inverse-sqrt", .peak = 1, .lowest = 0.25, .warmup = 10});
  EXPECT_DOUBLE_EQ(learningRateAt(root, 10, 0), 1);
  EXPECT_DOUBLE_EQ(learningRateAt(root, 40, 0), 0.5);
  EXPECT_DOUBLE_EQ(learningRateAt(root, 1000, 0), 0.25);
}

TEST(LearningRate, StaysAndDecaysAtTheEnd) {
  for (auto [curve, half] : {std::pair{"linear", 0.5}, {"cosine", 0.5}, {"1-sqrt", 1 - std::sqrt(0.5)}}) {
    auto rate = make({.kind = "wsd", .peak = 1, .warmup = 10, .decaySteps = 20, .decayCurve = curve});
    EXPECT_EQ(learningRateAt(rate, 80, 100), 1) << curve;
    EXPECT_NEAR(learningRateAt(rate, 90, 100), half, 1e-15) << curve;
    EXPECT_NEAR(learningRateAt(rate, 100, 100), 0, 1e-15) << curve;
    EXPECT_EQ(requestOf(rate).decayCurve, curve);
    EXPECT_EQ(requestOf(rate).warmup, 10);
    EXPECT_EQ(requestOf(rate).decaySteps, 20);
  }
}

TEST(LearningRate, RefusesWhatHasNoMeaning) {
  artifact::LearningRateT rate;
  EXPECT_NE(makeLearningRate({.kind = "step"}, rate).find("unknown schedule 'step'"), std::string::npos);
  EXPECT_NE(makeLearningRate({.kind = "wsd"}, rate).find("needs --decay-steps"), std::string::npos);
  EXPECT_NE(makeLearningRate({.kind = "linear", .decaySteps = 3}, rate).find("not for linear"), std::string::npos);
  EXPECT_NE(makeLearningRate({.kind = "constant", .lowest = 0.1}, rate).find("--min-lr"), std::string::npos);
  EXPECT_NE(makeLearningRate({.kind = "wsd", .decaySteps = 3, .decayCurve = "root"}, rate).find("unknown curve 'root'"),
            std::string::npos);
}

TEST(LearningRate, FilesAreNotTrusted) {
  auto good = make({.kind = "wsd", .warmup = 10, .decaySteps = 20});
  auto problem = [&](auto change) {
    artifact::LearningRateT rate = good;
    change(rate);
    return checkLearningRate(rate);
  };
  EXPECT_EQ(problem([](auto &) {}), "");
  EXPECT_NE(problem([](auto &rate) { rate.peak = std::numeric_limits<double>::quiet_NaN(); }), "");
  EXPECT_NE(problem([](auto &rate) { rate.lowest = -1; }), "");
  EXPECT_NE(problem([](auto &rate) { rate.parts.clear(); }), "");
  EXPECT_NE(problem([](auto &rate) { rate.parts.front()->end = -1; }), "");
  EXPECT_NE(problem([](auto &rate) { rate.parts.front()->from_end = true; }), "");
  EXPECT_NE(problem([](auto &rate) { rate.parts.back()->end = 21; }), "");
  EXPECT_NE(problem([](auto &rate) { rate.parts.back()->curve = static_cast<artifact::Curve>(100); }), "");
  EXPECT_NE(problem([](auto &rate) {
              while (rate.parts.size() < 17)
                rate.parts.push_back(std::make_unique<artifact::LearningRatePartT>(*rate.parts.back()));
            }),
            "");
}

} // namespace
} // namespace tessera
