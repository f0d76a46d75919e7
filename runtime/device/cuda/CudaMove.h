//===- CudaMove.h - copies, fills and sums on a GPU -------------------------===//

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
  /// Adds the inputs, at most 64, in their order; the target may be one of them.
  Status sum(void *target, const std::vector<const void *> &inputs, artifact::DataType dtype, int64_t elements,
             CUstream stream) const;
  static bool canSum(artifact::DataType dtype);

private:
  Status launch(const std::string &name, int64_t elements, void **arguments, CUstream stream) const;

  CUlibrary library = nullptr;
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAMOVE_H
