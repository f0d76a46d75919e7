//===- CudaStream.cpp - streams and events of a GPU -------------------------===//

#include "runtime/device/cuda/CudaStream.h"

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
  CUresult result = cuEventRecord(mine.event, handle);
  return result == CUDA_SUCCESS ? Status::ok() : blame(driverError("cuEventRecord", result));
}

Status CudaStream::wait(DeviceEvent &event, WaitObserver observer) {
  auto &other = static_cast<CudaEvent &>(event);
  if (other.recordedIn != shared.step)
    return Status::ok();
  TimeMark begin = observer ? mark() : 0;
  if (CUresult result = cuStreamWaitEvent(handle, other.event, CU_EVENT_WAIT_DEFAULT); result != CUDA_SUCCESS)
    return blame(driverError("cuStreamWaitEvent", result));
  if (observer)
    observer(begin, mark());
  return Status::ok();
}

TimeMark CudaStream::mark() {
  // A graph has events of its own, which each launch records anew.
  std::vector<CUevent> &marks = shared.isCapturing ? shared.graphMarks : shared.marks;
  size_t next = shared.isCapturing ? marks.size() : shared.numMarks++;
  if (next == marks.size()) {
    CUevent event = nullptr;
    if (CUresult result = cuEventCreate(&event, CU_EVENT_DEFAULT); result != CUDA_SUCCESS) {
      markError = result;
      return 0;
    }
    marks.push_back(event);
  }
  unsigned flags = shared.isCapturing ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT;
  if (CUresult result = cuEventRecordWithFlags(marks[next], handle, flags); result != CUDA_SUCCESS)
    markError = result;
  return static_cast<TimeMark>(shared.isCapturing ? CudaShared::firstGraphMark + next : next);
}

Status CudaStream::gpuFailure(CUresult result) const {
  std::string place = Progress::describe(shared.progress.underWay());
  // A graph tells of collectives only.
  const char *call = shared.isReplay ? "the GPU failed (--no-graph says in which instruction)" : "the GPU failed";
  return driverError(call, result)
      .withContext("step " + std::to_string(shared.rank->step) + (place.empty() ? "" : ", under way: " + place));
}

Status CudaStream::blame(Status status) const {
  if (status.isOk() || shared.isCapturing)
    return status;
  CUresult result = cuStreamQuery(handle);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
    return status;
  return gpuFailure(result).withContext("told of an earlier failure");
}

Status CudaStream::synchronise() {
  if (shared.isCapturing)
    return Status::ok();
  Clock::time_point begin = Clock::now();
  while (true) {
    // What was aborted ends too, with whatever was in memory.
    if (shared.watchdog.hasFailed())
      return shared.watchdog.failure();
    CUresult result = std::exchange(markError, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS)
      result = cuStreamQuery(handle);
    if (result == CUDA_SUCCESS)
      return Status::ok();
    if (result != CUDA_ERROR_NOT_READY) {
      Status error = gpuFailure(result);
      shared.watchdog.setFailed(error);
      return error;
    }
    // A short step must not wait for the timer of the system.
    if (Clock::now() - begin < std::chrono::milliseconds(2))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

} // namespace tessera::cuda
