//===- RankThreads.h - the threads of a run, and how they end --------------===//

#ifndef TESSERA_RUNTIME_STEP_RANKTHREADS_H
#define TESSERA_RUNTIME_STEP_RANKTHREADS_H

#include "runtime/base/Status.h"

#include <chrono>
#include <functional>
#include <optional>

namespace tessera {

/// How threads of a run have ended.
struct ThreadsEnd {
  Status status;             ///< the first failure
  int signal = 0;            ///< left before the first step because of it; 0: not
  bool isAnyRunning = false; ///< a thread is stuck
};

/// Whether a run has been asked for an end before its first step, and for too long.
class StartWatch {
public:
  /// `askedBy`: the signal that asks a run that has not begun for its end; 0: none, or it has begun.
  explicit StartWatch(std::function<int()> askedBy) : askedBy(std::move(askedBy)) {}

  int signal() const { return askedBy(); }
  bool isOver();

private:
  using Clock = std::chrono::steady_clock;
  const std::function<int()> askedBy;
  std::optional<Clock::time_point> asked;
};

/// Runs `body(0)` … `body(count - 1)` on threads until all end, or one fails (which `fail` is told) and the others had
/// time to notice. `hasFailed` tells of failures elsewhere. A thread that is stuck keeps what `body` holds alive.
ThreadsEnd runThreads(int count, const std::function<Status(int)> &body,
                      const std::function<void(int, const Status &)> &fail, const std::function<bool()> &hasFailed,
                      StartWatch &watch);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_RANKTHREADS_H
