//===- CudaStream.cpp - streams and events of a GPU -------------------------===//

#include "runtime/device/cuda/CudaStream.h"

#include <algorithm>
#include <thread>

namespace tessera::cuda {

using Clock = std::chrono::steady_clock;

CudaStream::~CudaStream() {
  shared.streams[number] = nullptr;
  if (handle)
    cuStreamDestroy(handle);
}

Status CudaStream::open() {
  int least = 0, greatest = 0;
  TESSERA_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  // Communication first: what it waits for is small, and what waits for it is large.
  TESSERA_CU(cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, number == 0 ? least : greatest));
  if (shared.streams.size() <= static_cast<size_t>(number))
    shared.streams.resize(number + 1);
  shared.streams[number] = this;
  return Status::ok();
}

Status CudaStream::record(DeviceEvent &event) {
  auto &mine = static_cast<CudaEvent &>(event);
  mine.recordedIn = shared.step;
  TESSERA_CU(cuEventRecord(mine.event, handle));
  return Status::ok();
}

Status CudaStream::wait(DeviceEvent &event, WaitObserver observer) {
  auto &other = static_cast<CudaEvent &>(event);
  if (other.recordedIn != shared.step)
    return Status::ok();
  TimeMark begin = observer ? mark() : 0;
  TESSERA_CU(cuStreamWaitEvent(handle, other.event, CU_EVENT_WAIT_DEFAULT));
  if (observer)
    observer(begin, mark());
  return Status::ok();
}

TimeMark CudaStream::mark() {
  if (shared.isCapturing)
    return 0;
  if (shared.numMarks == shared.marks.size()) {
    CUevent event = nullptr;
    if (CUresult result = cuEventCreate(&event, CU_EVENT_DEFAULT); result != CUDA_SUCCESS) {
      markError = result;
      return 0;
    }
    shared.marks.push_back(event);
  }
  if (CUresult result = cuEventRecord(shared.marks[shared.numMarks], handle); result != CUDA_SUCCESS)
    markError = result;
  return static_cast<TimeMark>(shared.numMarks++);
}

static bool isCollective(const Command *command) {
  return command->kind == "all_gather" || command->kind == "reduce_scatter" || command->kind == "all_reduce" ||
         command->kind == "all_to_all" || command->kind == "permute";
}

Status CudaStream::synchronise() {
  if (shared.isCapturing)
    return Status::ok();
  Clock::time_point begin = Clock::now(), checked = begin, moved = begin;
  uint64_t seen = shared.progress.fingerprint();
  while (true) {
    CUresult result = std::exchange(markError, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS)
      result = cuStreamQuery(handle);
    if (result == CUDA_SUCCESS)
      return Status::ok();
    if (result != CUDA_ERROR_NOT_READY) {
      std::string place = shared.progress.describe();
      Status error = driverError("the GPU failed", result);
      return error.withContext(place.empty() ? "step " + std::to_string(shared.rank->step)
                                             : "step " + std::to_string(shared.rank->step) + ", under way: " + place);
    }
    Clock::time_point now = Clock::now();
    if (now - checked > std::chrono::milliseconds(20)) {
      checked = now;
      Status reason = shared.rank->communicator.abortReason();
      if (reason.isOk())
        reason = shared.collectives->poll();
      if (uint64_t current = shared.progress.fingerprint(); current != seen) {
        seen = current;
        moved = now;
      }
      if (reason.isOk() && shared.stallTimeoutSeconds > 0 &&
          std::chrono::duration<double>(now - moved).count() > shared.stallTimeoutSeconds) {
        std::vector<const Command *> stuck = shared.progress.underWay();
        if (std::any_of(stuck.begin(), stuck.end(), isCollective))
          reason = TESSERA_ERROR(Aborted, "stalled: step " + std::to_string(shared.rank->step) + " of rank " +
                                              std::to_string(shared.rank->communicator.rank()) + " waits in " +
                                              shared.progress.describe());
      }
      if (!reason.isOk()) {
        shared.rank->communicator.abort(reason);
        shared.collectives->abort();
        return reason;
      }
    }
    // A short step must not wait for the timer of the system.
    if (now - begin < std::chrono::milliseconds(2))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

} // namespace tessera::cuda
