//===- NcclCalls.h - calls of NCCL with their errors in words ---------------===//
//
// Communicators do not block, where the libraries let them: a call is begun, and what does not come to an end within
// the stall timeout, or while another rank gives up, is an error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_NCCLCALLS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_NCCLCALLS_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/cuda/Cuda.h"

#include <nccl.h>

#include <chrono>
#include <memory>

namespace tessera::cuda {

/// "ncclAllReduce: invalid usage (…)". `communicator` may be null.
Status ncclFailure(const char *call, ncclResult_t result, ncclComm_t communicator);

class NcclCalls {
public:
  /// `timeoutSeconds` 0: waits for ever.
  NcclCalls(Communicator &control, double timeoutSeconds) : control(control), timeout(timeoutSeconds) {}

  /// The result of a call that has been made; waits for one that is under way. `communicator` may be null.
  Status check(const char *call, ncclResult_t result, ncclComm_t communicator) const;
  /// Waits until a call that was begun has been taken.
  Status settle(const char *call, ncclComm_t communicator) const;
  /// Pauses; an error if another rank has given up, or the timeout has passed since `begin`.
  Status stillWaits(const char *call, std::chrono::steady_clock::time_point begin) const;

  /// A communicator that `call` makes and `from` (null: none) is split for. A thread of NCCL writes it, even after this
  /// has given up waiting: then nobody owns its place.
  template <typename Call> Result<ncclComm_t> make(const char *name, ncclComm_t from, Call call) const {
    auto made = std::make_unique<ncclComm_t>(nullptr);
    ncclResult_t begun = call(made.get());
    Status status = begun == ncclSuccess || begun == ncclInProgress ? Status::ok() : ncclFailure(name, begun, from);
    if (status.isOk() && from && begun == ncclInProgress)
      status = settle(name, from);
    if (status.isOk() && *made)
      status = settle(name, *made);
    if (status.isOk())
      return *made;
    if (*made)
      ncclCommAbort(*made);
    static_cast<void>(made.release());
    return status;
  }

private:
  Communicator &control;
  const double timeout;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_NCCLCALLS_H
