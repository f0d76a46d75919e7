//===- Watchdog.h - notices that a step of a GPU will not end ---------------===//
//
// A thread of its own: the rank's thread may be held by the driver, whose queues are finite, while the GPU waits for a
// rank that is gone. It looks every 20 ms for other ranks that give up or are gone, for errors of collectives, and for
// collectives that do not end within the stall timeout. Then it tells all ranks and ends what is under way on the GPU.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_WATCHDOG_H
#define TESSERA_RUNTIME_DEVICE_CUDA_WATCHDOG_H

#include "runtime/base/Status.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tessera::cuda {

struct CudaShared;

class Watchdog {
public:
  explicit Watchdog(CudaShared &shared) : shared(shared) {}
  ~Watchdog() { stop(); }
  void start();
  void stop();

  /// Between these two it watches.
  void beginStep();
  void endStep();

  /// Whether the run goes on; after a failure the GPU may never be idle again.
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }
  Status failure() const;
  /// An error that the rank's thread has found.
  void setFailed(const Status &reason);

private:
  using Clock = std::chrono::steady_clock;
  void watch();
  Status look();

  CudaShared &shared;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool isWatching = false, isEnding = false;
  std::atomic<bool> failed{false};
  Status reason;
  Clock::time_point moved; ///< when a stream went on last
  uint64_t seen = 0;       ///< of the progress, then
  std::thread thread;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_WATCHDOG_H
