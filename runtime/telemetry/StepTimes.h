//===- StepTimes.h - where the time of a step went -------------------------===//
//
// Sums the executor's events per rank: computing, communicating, and the time in which the compute stream did nothing
// but wait for others (exposed communication).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H
#define TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H

#include "runtime/step/Trace.h"

#include <atomic>
#include <memory>
#include <vector>

namespace tessera {

/// Seconds of one rank, or means over ranks.
struct RankTimes {
  double compute = 0;       ///< Compute stream: everything but waits and collectives.
  double exposed = 0;       ///< Compute stream: waits and collectives.
  double communication = 0; ///< Collectives of all streams.

  /// What computing covered.
  double hidden() const { return communication > exposed ? communication - exposed : 0; }
};

class StepTimes : public TraceSink {
public:
  StepTimes(int firstRank, int numRanks) : sums(new Sums[numRanks]()), firstRank(firstRank), numRanks(numRanks) {}

  /// The sinks of the steps to come, which get every event too.
  void setNext(std::vector<TraceSink *> sinks) { next = std::move(sinks); }
  void record(const TraceEvent &event) override;
  bool wantsInstructions() const override { return !next.empty(); }
  /// Of one rank since the last call. Not while it runs a step.
  RankTimes take(int rank);

private:
  struct Sums {
    std::atomic<int64_t> compute{0}, exposed{0}, communication{0}; ///< nanoseconds
  };
  std::unique_ptr<Sums[]> sums;
  int firstRank, numRanks;
  std::vector<TraceSink *> next;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_STEPTIMES_H
