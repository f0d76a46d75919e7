//===- NonFiniteTest.cpp - what becomes of steps that are not finite -------===//

#include "runtime/step/NonFinite.h"
#include "runtime/state/Manifest.h"
#include "tests/runtime/TestSupport.h"

#include <cmath>

namespace tessera {
namespace {

const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();

StepOutcome good(int64_t step) { return {step, 2.5, 1.0, true, 0.1}; }
StepOutcome bad(int64_t step) { return {step, nan, nan, false, 0.1}; }

NonFinite policy(const std::string &choice, bool hasGuard = true) { return *NonFinite::create(choice, hasGuard); }

TEST(NonFinite, TheDefaultIsWhatTheArtifactCanDo) {
  ASSERT_STATUS_OK(policy("").after(bad(1), false));
  StepOutcome unguarded{1, nan, {}, {}, 0.1};
  EXPECT_ERROR(policy("", false).after(unguarded, false), "step 1 is not finite: its loss is nan; its update is made");
  EXPECT_ERROR(NonFinite::create("skip", false), "the artifact cannot skip an update");
  EXPECT_ERROR(NonFinite::create("retry", true), "expected skip, stop or ignore");
  EXPECT_TRUE(policy("ignore", false).ignores());
  ASSERT_STATUS_OK(policy("ignore", false).after(unguarded, false));
}

TEST(NonFinite, TenInARowEndTheRun) {
  NonFinite steps = policy("skip");
  for (int64_t step = 1; step < 10; ++step)
    ASSERT_STATUS_OK(steps.after(bad(step), false));
  ASSERT_STATUS_OK(steps.after(good(10), false)); // interrupts them
  EXPECT_FALSE(steps.hasSkipped());
  for (int64_t step = 11; step < 20; ++step)
    ASSERT_STATUS_OK(steps.after(bad(step), false));
  EXPECT_TRUE(steps.hasSkipped());
  Status ended = steps.after(bad(20), false);
  EXPECT_ERROR(ended, "10 steps in a row changed nothing, from step 11 on; of the last, its loss is nan (gradient norm "
                      "nan); learning rate 0.1; use a lower --lr");
}

TEST(NonFinite, StopEndsAtTheFirst) {
  NonFinite steps = policy("stop");
  ASSERT_STATUS_OK(steps.after(good(1), false));
  StepOutcome norm{2, 2.5, infinity, false, 0.1};
  EXPECT_ERROR(steps.after(norm, false), "step 2 changed nothing: its gradient norm is inf (loss 2.5); learning rate");
}

TEST(NonFinite, UpdatesAreCountedWithoutSkippedSteps) {
  NonFinite steps = policy("skip");
  EXPECT_EQ(steps.updateOf(1), 1);
  ASSERT_STATUS_OK(steps.after(good(1), false));
  ASSERT_STATUS_OK(steps.after(bad(2), false));
  ASSERT_STATUS_OK(steps.after(bad(3), false));
  EXPECT_EQ(steps.updateOf(4), 2);
  CheckpointInfo info;
  steps.save(info);
  EXPECT_EQ(info.skippedSteps, 2u);
  EXPECT_EQ(info.skippedInARow, 2u);
  NonFinite resumed = policy("skip");
  resumed.resume(info);
  EXPECT_EQ(resumed.updateOf(4), 2);
  for (int64_t step = 4; step < 11; ++step)
    ASSERT_STATUS_OK(resumed.after(bad(step), false));
  EXPECT_ERROR(resumed.after(bad(11), false), "10 steps in a row changed nothing, from step 2 on");
}

TEST(NonFinite, MessagesThinOut) {
  NonFinite steps = policy("skip");
  testing::internal::CaptureStderr();
  for (int64_t step = 1; step <= 64; ++step)
    ASSERT_STATUS_OK(steps.after(step % 2 ? bad(step) : good(step), true));
  std::string said = testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0;
       (at = said.find(" changed nothing: its loss is nan (gradient norm nan)", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 7u) << said; // of 32: 1, 2, 3, 4, 8, 16, 32
}

TEST(NonFinite, FinalWeightsThatAreNotFiniteAreWrittenOnlyOnDemand) {
  ASSERT_STATUS_OK(policy("skip").checkExport(""));
  EXPECT_ERROR(policy("skip").checkExport("parameter 'w' has 1 value that is not finite"),
               "the final weights are not written: parameter 'w' has 1 value");
  EXPECT_ERROR(policy("stop", false).checkExport("parameter 'w' …"), "the final weights are not written");
  ASSERT_STATUS_OK(policy("ignore").checkExport("parameter 'w' …"));
}

} // namespace
} // namespace tessera
