//===- Watchdog.cpp - notices that a step of a GPU will not end -------------===//

#include "runtime/device/cuda/Watchdog.h"

#include "runtime/base/Log.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>

namespace tessera::cuda {

void Watchdog::start() {
  thread = std::thread([this] { watch(); });
}

void Watchdog::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Watchdog::beginStep() {
  std::lock_guard<std::mutex> lock(mutex);
  isWatching = true;
  moved = Clock::now();
  seen = shared.progress.fingerprint();
}

void Watchdog::endStep() {
  std::lock_guard<std::mutex> lock(mutex);
  isWatching = false;
}

Status Watchdog::failure() const {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

void Watchdog::setFailed(const Status &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    reason = why;
  failed.store(true, std::memory_order_release);
}

void Watchdog::watch() {
  cuCtxSetCurrent(shared.context);
  std::unique_lock<std::mutex> lock(mutex);
  while (!isEnding && !failed) {
    changed.wait_for(lock, std::chrono::milliseconds(20));
    if (!isWatching || isEnding || failed)
      continue;
    Status status = look();
    if (status.isOk())
      continue;
    // The rank's thread may end, and free its commands, as soon as it knows of the failure.
    Communicator &communicator = shared.rank->communicator;
    const int64_t step = shared.rank->step;
    std::string place = Progress::describe(shared.progress.underWay());
    lock.unlock();
    setFailed(status);
    if (!place.empty())
      log::error("rank {} ends in step {}, under way: {}", communicator.rank(), step, place);
    communicator.abort(status);
    // NCCL waits for the graphs that hold its collectives; one that runs goes away when it has ended.
    shared.dropGraphs();
    shared.collectives->abort();
    return;
  }
}

Status Watchdog::look() {
  Communicator &communicator = shared.rank->communicator;
  TESSERA_RETURN_IF_ERROR(communicator.abortReason());
  if (Status status = shared.collectives->poll(); !status.isOk()) {
    std::string place = Progress::describe(shared.progress.underWay());
    return Status(StatusCode::Aborted, status.message())
        .withContext("rank " + std::to_string(communicator.rank()) + ": step " + std::to_string(shared.rank->step) +
                     (place.empty() ? "" : ", under way: " + place));
  }
  Clock::time_point now = Clock::now();
  if (uint64_t current = shared.progress.fingerprint(); current != seen) {
    seen = current;
    moved = now;
  }
  std::vector<const Command *> stuck = shared.progress.underWay();
  std::erase_if(stuck, [](const Command *command) { return !isCollective(command->kind); });
  if (stuck.empty())
    return Status::ok();
  std::string place = Progress::describe(stuck) + " of step " + std::to_string(shared.rank->step);
  TESSERA_RETURN_IF_ERROR(communicator.checkOthers(place));
  double limit = shared.stallTimeoutSeconds;
  // Where ranks meet on the host first, that wait names the rank that is missing.
  if (!shared.collectives->canBeCaptured())
    limit += indirectPatience(limit);
  if (limit <= 0 || std::chrono::duration<double>(now - moved).count() < limit)
    return Status::ok();
  return TESSERA_ERROR(Aborted, "stalled: rank " + std::to_string(communicator.rank()) + " waits in " + place +
                                    ", which not all ranks reached within " +
                                    std::to_string(static_cast<int>(shared.stallTimeoutSeconds)) + " s");
}

} // namespace tessera::cuda
