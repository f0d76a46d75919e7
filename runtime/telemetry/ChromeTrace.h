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

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace tessera {

/// Keeps events and writes them as JSON. The strings of events must outlive the trace (they lie in the artifact).
class ChromeTrace : public TraceSink {
public:
  void record(const TraceEvent &event) override;
  /// Writes all events recorded so far, atomically, with streams called as `streamName` says. Times begin at 0.
  Status write(const std::string &path, const std::function<std::string(int)> &streamName) const;
  size_t numEvents() const;

private:
  mutable std::mutex mutex;
  std::vector<TraceEvent> events;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_CHROMETRACE_H
