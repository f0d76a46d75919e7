//===- StepTimes.cpp - where the time of a step went -----------------------===//

#include "runtime/telemetry/StepTimes.h"

namespace tessera {

static bool isCollective(std::string_view kind) {
  return kind == "all_gather" || kind == "reduce_scatter" || kind == "all_reduce" || kind == "all_to_all" ||
         kind == "permute";
}

void StepTimes::record(const TraceEvent &event) {
  int index = event.rank - firstRank;
  if (index >= 0 && index < numRanks) {
    int64_t nanoseconds = event.endNanoseconds - event.beginNanoseconds;
    bool communicates = isCollective(event.kind);
    if (communicates)
      sums[index].communication += nanoseconds;
    if (event.stream == 0)
      (communicates || event.kind == "wait" ? sums[index].exposed : sums[index].compute) += nanoseconds;
  }
  for (TraceSink *sink : next)
    sink->record(event);
}

RankTimes StepTimes::take(int rank) {
  Sums &sum = sums[rank - firstRank];
  auto seconds = [](std::atomic<int64_t> &nanoseconds) { return static_cast<double>(nanoseconds.exchange(0)) / 1e9; };
  return {seconds(sum.compute), seconds(sum.exposed), seconds(sum.communication)};
}

} // namespace tessera
