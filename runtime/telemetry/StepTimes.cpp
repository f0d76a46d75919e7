//===- StepTimes.cpp - where the time of a step went -----------------------===//

#include "runtime/telemetry/StepTimes.h"

#include "runtime/device/Command.h"

#include <algorithm>

namespace tessera {

void StepTimes::record(const TraceEvent &event) {
  int index = event.rank - firstRank;
  if (index >= 0 && index < numRanks) {
    Rank &rank = ranks[index];
    Interval interval{event.beginNanoseconds, event.endNanoseconds};
    int64_t nanoseconds = interval.second - interval.first;
    bool communicates = isCollective(event.kind);
    std::lock_guard<std::mutex> lock(rank.mutex);
    if (communicates)
      rank.collectives.push_back(interval);
    if (event.kind == "step")
      rank.whole += nanoseconds;
    else if (event.stream == 0 && (communicates || event.kind == "wait"))
      rank.exposed.push_back(interval);
    else if (event.stream == 0)
      rank.compute += nanoseconds;
  }
  for (TraceSink *sink : next)
    sink->record(event);
}

/// Time that is in any of the intervals.
static int64_t covered(std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t sum = 0, end = INT64_MIN;
  for (auto [from, to] : intervals) {
    sum += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return sum;
}

RankTimes StepTimes::take(int rank) {
  Rank &taken = ranks[rank - firstRank];
  std::lock_guard<std::mutex> lock(taken.mutex);
  int64_t exposed = covered(taken.exposed);
  // What collectives add to the exposed time was hidden.
  std::vector<Interval> both = taken.exposed;
  both.insert(both.end(), taken.collectives.begin(), taken.collectives.end());
  int64_t hidden = covered(std::move(both)) - exposed;
  // Of a step that is told as one, all that is not exposed computed.
  int64_t compute = taken.compute + std::max<int64_t>(0, taken.whole - exposed);
  taken.exposed.clear();
  taken.collectives.clear();
  taken.compute = taken.whole = 0;
  auto seconds = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; };
  return {seconds(compute), seconds(exposed), seconds(hidden)};
}

} // namespace tessera
