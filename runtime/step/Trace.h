//===- Trace.h - what the executor tells about a step ----------------------===//
//
// The executor calls a TraceSink after each instruction. With no sink it takes no times at all. Telemetry implements
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_TRACE_H
#define TESSERA_RUNTIME_STEP_TRACE_H

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace tessera {

struct TraceEvent {
  int rank = 0;
  int stream = 0;            ///< 0 compute, 1 gather, 2 reduce, 3 copies
  int64_t step = 0;          ///< number of the step, from 1
  uint32_t instruction = 0;  ///< position in the flattened list
  int64_t iteration = 0;     ///< of the innermost Repeat around it; 0 outside of one
  std::string_view kind;     ///< "launch", "gemm", "conv", "attention", "attention_grad", "all_gather", …, "wait"
  std::string_view detail;   ///< kernel symbol or label of the collective; may be empty. Valid as long as the artifact.
  std::string_view location; ///< name of the source node; may be empty
  int64_t beginNanoseconds = 0; ///< steady clock
  int64_t endNanoseconds = 0;
  int64_t bytes = 0; ///< moved by a collective or copy (its output), else 0
};

/// CPU time of the calling thread.
inline double threadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class TraceSink {
public:
  virtual ~TraceSink() = default;
  /// Called on the thread of the event's stream: from several threads at once, so implementations synchronise.
  virtual void record(const TraceEvent &event) = 0;
  /// False: on a device that can run a step as a whole, collectives, waits of the compute stream and one event "step"
  /// for all of it are enough.
  virtual bool wantsInstructions() const { return true; }
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_TRACE_H
