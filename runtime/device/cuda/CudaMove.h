//===- CudaMove.h - copies, fills and reductions on a GPU -------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAMOVE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAMOVE_H

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/MovePlan.h"

#include <map>
#include <vector>

namespace tessera::cuda {

/// The kernels of Kernels.cu, loaded.
class Mover {
public:
  ~Mover();
  Status load();

  /// `width`: bytes of an element, a power of two up to 8.
  Status copy(void *target, const void *source, const MoveLayout &layout, size_t width, CUstream stream) const;
  Status fill(void *target, uint64_t bits, const MoveLayout &layout, size_t width, CUstream stream) const;
  /// Adds the inputs, at most 64, in their order, or takes their maximum or minimum (NaN where one is, 0 above -0); the
  /// target may be one of them.
  Status reduce(artifact::ReductionKind kind, void *target, const std::vector<const void *> &inputs,
                artifact::DataType dtype, int64_t elements, CUstream stream) const;
  /// Writes F32 or F64 numbers as signed integers of the same order, each NaN as the largest (for a maximum) or the
  /// smallest; `isBack`: such integers as the numbers. The target may be the source.
  Status order(artifact::ReductionKind kind, void *target, const void *source, artifact::DataType dtype,
               int64_t elements, bool isBack, CUstream stream) const;
  static bool canReduce(artifact::DataType dtype);

private:
  Status launch(const std::string &name, int64_t elements, void **arguments, CUstream stream) const;

  CUlibrary library = nullptr;
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAMOVE_H
