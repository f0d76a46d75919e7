//===- ChromeTrace.h - steps as a timeline ----------------------------------------------===//
//
// Collects the executor's events of chosen steps and writes them in Chrome's trace format, which Perfetto
// (ui.perfetto.dev) shows: one process per rank, one lane per stream.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_CHROMETRACE_H
#define TESSERA_RUNTIME_TELEMETRY_CHROMETRACE_H

#include "runtime/base/Status.h"
#include "runtime/step/Trace.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tessera {

/// Keeps events and writes them as JSON. The strings of events must outlive the trace (they lie in the artifact).
class ChromeTrace : public TraceSink {
public:
  void record(const TraceEvent &event) override;
  /// Writes all events recorded so far, atomically. Times begin at 0.
  Status write(const std::string &path) const;
  size_t numEvents() const;

private:
  mutable std::mutex mutex;
  std::vector<TraceEvent> events;
};

/// Sums the time in which a rank's compute stream did nothing but wait for others (waits and collectives on stream 0),
/// and passes events on to another sink, if there is one.
class ExposedTime : public TraceSink {
public:
  explicit ExposedTime(int numRanks) : nanoseconds(new std::atomic<int64_t>[numRanks]()), numRanks(numRanks) {}

  /// The sink of the steps to come; null: none.
  void setNext(TraceSink *sink) { next = sink; }
  void record(const TraceEvent &event) override;
  /// Seconds since the last call, as the mean over the ranks. Not while a step runs.
  double takeMeanSeconds();

private:
  std::unique_ptr<std::atomic<int64_t>[]> nanoseconds;
  int numRanks;
  TraceSink *next = nullptr;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_CHROMETRACE_H
