//===- StepTimes.h - where the time of a step went -------------------------===//
//
// Takes the executor's events per rank: when the compute stream computed, when it did nothing but wait for others or
// communicate (exposed), and which collectives ran meanwhile on any stream.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H
#define TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H

#include "runtime/step/Trace.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tessera {

/// Seconds of one rank, or means over ranks.
struct RankTimes {
  double compute = 0; ///< Compute stream: everything but waits and collectives.
  double exposed = 0; ///< Compute stream: waits and collectives.
  double hidden = 0;  ///< Collectives were under way, and the compute stream neither waited nor communicated.
};

class StepTimes : public TraceSink {
public:
  StepTimes(int firstRank, int numRanks) : ranks(new Rank[numRanks]()), firstRank(firstRank), numRanks(numRanks) {}

  /// The sinks of the steps to come, which get every event too.
  void setNext(std::vector<TraceSink *> sinks) { next = std::move(sinks); }
  void record(const TraceEvent &event) override;
  bool wantsInstructions() const override { return !next.empty(); }
  /// Of one rank since the last call. Not while it runs a step.
  RankTimes take(int rank);

private:
  using Interval = std::pair<int64_t, int64_t>; ///< nanoseconds
  struct Rank {
    std::mutex mutex;
    int64_t compute = 0, whole = 0; ///< nanoseconds; `whole`: of steps told as one
    std::vector<Interval> exposed, collectives;
  };
  std::unique_ptr<Rank[]> ranks;
  int firstRank, numRanks;
  std::vector<TraceSink *> next;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H
