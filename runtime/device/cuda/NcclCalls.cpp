//===- NcclCalls.cpp - calls of NCCL with their errors in words -------------===//

#include "runtime/device/cuda/NcclCalls.h"

#include <thread>

namespace tessera::cuda {

Status ncclFailure(const char *call, ncclResult_t result, ncclComm_t communicator) {
  std::string text = std::string(call) + ": " + ncclGetErrorString(result);
  if (const char *last = ncclGetLastError(communicator); last && *last)
    text += std::string(" (") + last + ")";
  return TESSERA_ERROR(IoError, text);
}

Status NcclCalls::check(const char *call, ncclResult_t result, ncclComm_t communicator) const {
  if (result == ncclSuccess)
    return Status::ok();
  return result == ncclInProgress && communicator ? settle(call, communicator)
                                                  : ncclFailure(call, result, communicator);
}

Status NcclCalls::settle(const char *call, ncclComm_t communicator) const {
  auto begin = std::chrono::steady_clock::now();
  while (true) {
    ncclResult_t state = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
    if (asked != ncclSuccess)
      return ncclFailure(call, asked, communicator);
    if (state == ncclSuccess)
      return Status::ok();
    if (state != ncclInProgress)
      return ncclFailure(call, state, communicator);
    TESSERA_RETURN_IF_ERROR(stillWaits(call, begin));
  }
}

Status NcclCalls::stillWaits(const char *call, std::chrono::steady_clock::time_point begin) const {
  TESSERA_RETURN_IF_ERROR(control.abortReason());
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (timeout > 0 && seconds > timeout)
    return TESSERA_ERROR(Aborted, std::string("stalled: not all ranks reached ") + call + " within " +
                                      std::to_string(static_cast<int>(timeout)) + " s");
  // A collective is taken by a thread of NCCL, usually at once.
  if (seconds < 200e-6)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  return Status::ok();
}

} // namespace tessera::cuda
