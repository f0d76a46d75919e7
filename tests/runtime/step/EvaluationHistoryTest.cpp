//===- EvaluationHistoryTest.cpp - which evaluation is the best ------------===//

#include "runtime/step/EvaluationHistory.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();

TEST(EvaluationHistory, TheFirstOfTheLowestIsTheBest) {
  EvaluationHistory history;
  EXPECT_FALSE(history.isOver(1));
  EXPECT_TRUE(history.add(10, 2.0));
  EXPECT_FALSE(history.add(20, 2.0));
  EXPECT_TRUE(history.add(30, 1.5));
  EXPECT_FALSE(history.isOver(1));
  EXPECT_FALSE(history.add(40, none));
  EXPECT_TRUE(history.isOver(1));
  EXPECT_FALSE(history.isOver(2));
  EXPECT_FALSE(history.isOver(0));
  EXPECT_FALSE(history.add(50, 1.6));
  EXPECT_TRUE(history.isOver(2));
  EXPECT_EQ(history.bestStep, 30);
  EXPECT_EQ(history.bestLoss, 1.5);
}

/// Records have no number for a loss that is not finite: a run decides alike before and after a resume.
TEST(EvaluationHistory, WhatIsNotFiniteIsNeverTheBest) {
  EvaluationHistory live;
  for (int64_t step = 1; step <= 3; ++step)
    EXPECT_FALSE(live.add(step, infinite));
  const EvaluationHistory resumed = EvaluationHistory::of({{1, none}, {2, none}, {3, none}, {4, 0.5}}, 3);
  for (const EvaluationHistory &history : {live, resumed}) {
    EXPECT_FALSE(history.bestStep);
    EXPECT_EQ(history.sinceBest, 3);
    EXPECT_TRUE(history.isOver(3));
  }
}

} // namespace
} // namespace tessera
