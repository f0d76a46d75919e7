//===- ChromeTraceTest.cpp - traces are valid and complete -----------------------------===//

#include "runtime/telemetry/ChromeTrace.h"
#include "runtime/telemetry/StepTimes.h"
#include "tests/runtime/TestSupport.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace tessera {
namespace {

TraceEvent makeEvent(int rank, int stream, std::string_view kind, int64_t begin, int64_t end) {
  TraceEvent event;
  event.rank = rank;
  event.stream = stream;
  event.step = 3;
  event.kind = kind;
  event.location = "h.0/\"MatMul\"\n"; // must be escaped
  event.detail = "forward h.0";
  event.beginNanoseconds = begin;
  event.endNanoseconds = end;
  event.bytes = 4096;
  return event;
}

std::string nameOf(int stream) { return "lane " + std::to_string(stream); }

TEST(ChromeTrace, IsValidJsonWithLanesPerRankAndStream) {
  test::ScratchFolder scratch;
  ChromeTrace trace;
  constexpr int64_t start = 5'000'000'000;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    for (int stream = 0; stream < 3; ++stream)
      threads.emplace_back([&trace, rank, stream] {
        for (int i = 0; i < 100; ++i)
          trace.record(makeEvent(rank, stream, "gemm", start + 1000 * i, start + 1000 * i + 500));
      });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(trace.numEvents(), 600u);
  ASSERT_STATUS_OK(trace.write(scratch.path("trace.json"), nameOf));

  auto json = nlohmann::json::parse(test::readFile(scratch.path("trace.json")), nullptr, false);
  ASSERT_TRUE(json.is_object());
  std::map<std::pair<int, int>, int> counts;
  std::map<std::pair<int, int>, std::string> lanes;
  double previous = 0;
  for (const auto &event : json["traceEvents"]) {
    std::pair<int, int> lane = {event["pid"], event["tid"]};
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name")
        lanes[lane] = event["args"]["name"];
      continue;
    }
    ++counts[lane];
    EXPECT_EQ(event["name"], "gemm h.0/\"MatMul\"\n");
    EXPECT_EQ(event["dur"], 0.5);
    EXPECT_GE(event["ts"], previous);
    previous = event["ts"];
    EXPECT_EQ(event["args"]["bytes"], 4096);
    EXPECT_EQ(event["args"]["step"], 3);
  }
  EXPECT_EQ(previous, 99.0); // microseconds from 0
  EXPECT_EQ(counts.size(), 6u);
  EXPECT_EQ((counts[{1, 2}]), 100);
  EXPECT_EQ((lanes[{0, 0}]), "lane 0");
  EXPECT_EQ((lanes[{1, 1}]), "lane 1");
  EXPECT_EQ((lanes[{1, 2}]), "lane 2");
}

TEST(ChromeTrace, EmptyAndUnwritable) {
  test::ScratchFolder scratch;
  ChromeTrace trace;
  ASSERT_STATUS_OK(trace.write(scratch.path("trace.json"), nameOf));
  EXPECT_TRUE(nlohmann::json::parse(test::readFile(scratch.path("trace.json")))["traceEvents"].empty());
  EXPECT_ERROR(trace.write(scratch.path("no/trace.json"), nameOf), "cannot write");
}

TEST(StepTimes, DividesTheTimeOfARank) {
  ChromeTrace trace;
  StepTimes times(4, 2);
  times.record(makeEvent(4, 0, "wait", 0, 1000));
  times.record(makeEvent(4, 0, "all_reduce", 1000, 3000));
  times.record(makeEvent(5, 0, "wait", 0, 1000));
  times.record(makeEvent(5, 0, "gemm", 0, 70000));
  times.record(makeEvent(5, 1, "all_gather", 0, 90000)); // overlapped
  times.record(makeEvent(3, 0, "gemm", 0, 70000));       // not of these ranks
  RankTimes first = times.take(4), second = times.take(5);
  EXPECT_DOUBLE_EQ(first.exposed, 3e-6);
  EXPECT_EQ(first.compute, 0);
  EXPECT_EQ(first.hidden, 0);
  EXPECT_DOUBLE_EQ(second.exposed, 1e-6);
  EXPECT_DOUBLE_EQ(second.compute, 7e-5);
  EXPECT_DOUBLE_EQ(second.hidden, 89e-6);
  EXPECT_EQ(times.take(5).compute, 0);
  times.setNext({&trace});
  times.record(makeEvent(5, 0, "gemm", 0, 70000));
  EXPECT_EQ(trace.numEvents(), 1u);
}

TEST(StepTimes, CollectivesOfSeveralStreamsAreHiddenOnce) {
  StepTimes times(0, 1);
  times.record(makeEvent(0, 0, "wait", 50000, 60000));
  times.record(makeEvent(0, 1, "all_gather", 10000, 40000));
  times.record(makeEvent(0, 2, "reduce_scatter", 30000, 60000));
  RankTimes told = times.take(0);
  EXPECT_DOUBLE_EQ(told.exposed, 10e-6);
  EXPECT_DOUBLE_EQ(told.hidden, 40e-6);
}

TEST(StepTimes, OfAStepAsOneTheRestComputes) {
  StepTimes times(0, 1);
  times.record(makeEvent(0, 1, "all_gather", 10000, 50000));
  times.record(makeEvent(0, 0, "wait", 40000, 50000));
  times.record(makeEvent(0, 0, "all_reduce", 90000, 95000));
  times.record(makeEvent(0, 0, "step", 0, 100000));
  RankTimes told = times.take(0);
  EXPECT_DOUBLE_EQ(told.compute, 85e-6);
  EXPECT_DOUBLE_EQ(told.exposed, 15e-6);
  EXPECT_DOUBLE_EQ(told.hidden, 30e-6);
}

} // namespace
} // namespace tessera
