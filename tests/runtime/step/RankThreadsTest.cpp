//===- RankThreadsTest.cpp - the threads of a run, and how they end --------===//

#include "runtime/step/RankThreads.h"
#include "tests/runtime/TestSupport.h"

#include <atomic>
#include <thread>

namespace tessera {
namespace {

constexpr std::chrono::milliseconds moment{5};

StartWatch nobodyAsks() {
  return StartWatch([] { return 0; });
}

TEST(RankThreads, AllEnd) {
  std::atomic<int> sum{0};
  StartWatch watch = nobodyAsks();
  ThreadsEnd end = runThreads(
      4,
      [&](int index) {
        sum += index;
        return Status::ok();
      },
      [](int, const Status &) { FAIL(); }, [] { return false; }, watch);
  ASSERT_STATUS_OK(end.status);
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.isAnyRunning);
}

TEST(RankThreads, TheFirstFailureEndsTheOthers) {
  std::atomic<int> failed{-1};
  StartWatch watch = nobodyAsks();
  ThreadsEnd end = runThreads(
      3,
      [&](int index) {
        if (index == 1)
          throw std::runtime_error("one is enough");
        while (failed < 0)
          std::this_thread::sleep_for(moment);
        return Status::ok();
      },
      [&](int index, const Status &) { failed = index; }, [] { return false; }, watch);
  EXPECT_ERROR(end.status, "one is enough");
  EXPECT_EQ(failed, 1);
  EXPECT_FALSE(end.isAnyRunning);
}

/// The run is left while its thread is in a call that does not end.
TEST(RankThreads, ASignalEndsWhatHasNotBegun) {
  std::atomic<bool> hasEnded{false}, isTold{false};
  StartWatch watch([] { return 15; });
  ThreadsEnd end = runThreads(
      1,
      [&](int) {
        while (!isTold)
          std::this_thread::sleep_for(moment);
        hasEnded = true;
        return Status::ok();
      },
      [&](int, const Status &status) {
        EXPECT_EQ(status.code(), StatusCode::Aborted);
        isTold = true;
      },
      [] { return false; }, watch);
  EXPECT_EQ(end.signal, 15);
  EXPECT_TRUE(hasEnded);
  EXPECT_FALSE(end.isAnyRunning);
}

} // namespace
} // namespace tessera
