//===- CudaEpilogue.h - epilogues by kernels of our own ---------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAEPILOGUE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAEPILOGUE_H

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudaGemm.h"

#include <map>

namespace tessera::cuda {

/// The kernels of Epilogue.cu. They stand in for epilogues that cuBLASLt has no algorithm for.
class EpilogueKernels {
public:
  ~EpilogueKernels();
  Status load();

  /// Does what follows the product in `operands.c`, which is done.
  Status start(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const;

private:
  Status apply(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const;
  /// output[i] = the sum of row i of `matrix` (i counts its dimension `kept`).
  Status sum(const TensorView &matrix, size_t kept, const void *source, artifact::DataType dtype, void *output,
             CUstream stream) const;
  Result<CUfunction> find(const std::string &name) const;

  CUlibrary library = nullptr;
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAEPILOGUE_H
