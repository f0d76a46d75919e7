//===- CudaCollectives.h - ranks on GPUs exchange buffers -------------------===//
//
// Two ways: NCCL, where each rank has a GPU of its own, and copies and sums on one GPU, where the ranks are threads of
// one process that share it. The runtime's Communicator carries what the ranks must tell each other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDACOLLECTIVES_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDACOLLECTIVES_H

#include "runtime/device/GpuOptions.h"
#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudaMove.h"

#include <memory>

namespace tessera::cuda {

class CudaCollectives {
public:
  virtual ~CudaCollectives() = default;
  virtual std::string_view name() const = 0;
  /// Whether `start` may be called while a stream is captured into a graph.
  virtual bool canBeCaptured() const = 0;
  /// Whether gathers beside computing run on multiprocessors, as sums do.
  virtual bool gathersTakeMultiprocessors() const { return false; }
  /// Gives the collective to the stream; the call's channel and group were prepared.
  virtual Status start(const CollectiveCall &call, CUstream stream) = 0;
  /// The orderly end, when nothing runs any more and no graph has collectives; all ranks call it together, each on its
  /// own thread. What is not left is aborted by the destructor.
  virtual Status leave() { return Status::ok(); }
  /// Whether what was started has failed, without blocking; called by the thread that watches.
  virtual Status poll() = 0;
  /// Ends what is under way on this rank; called by the thread that watches, once. Takes a few seconds at most.
  virtual void abort() = 0;
};

struct CollectiveSetUp {
  RankContext *context = nullptr;
  CUdevice device = 0;
  Mover *mover = nullptr;
  double stallTimeoutSeconds = 60;
  GpuOptions options;
  bool isOneHost = true; ///< of all ranks; joinRanks finds out
};

/// All ranks call it together. The choice follows from where the ranks are; a rank that shares a GPU with one of
/// another process is an error.
Result<std::unique_ptr<CudaCollectives>> joinRanks(const CollectiveSetUp &setUp);

Result<std::unique_ptr<CudaCollectives>> joinByNccl(const CollectiveSetUp &setUp);
Result<std::unique_ptr<CudaCollectives>> joinOnOneGpu(const CollectiveSetUp &setUp);

/// Memory of the current GPU that NCCL can map on the others.
Result<void *> allocateForNccl(size_t bytes);
void freeForNccl(void *memory);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDACOLLECTIVES_H
