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
  /// `workspace` holds partial sums; whoever else uses it does so on the stream of `start`.
  Status load(CUdeviceptr workspace, size_t workspaceBytes);

  /// Does what follows the product in `operands.c`, which is done.
  Status start(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const;

private:
  Status apply(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const;
  /// output[i] = the sum of row i of `matrix` (i counts its dimension `kept`). Long sums are cut by the shape alone, so
  /// that they are the same in each run.
  Status sum(const TensorView &matrix, size_t kept, const void *source, artifact::DataType dtype, void *output,
             CUstream stream) const;
  Result<CUfunction> find(const std::string &name) const;

  /// Sums parts of the rows of a matrix into the workspace, vector by vector, and says how many parts there are; 0 if
  /// the matrix is short or its rows are not of whole vectors.
  Result<int64_t> sumParts(const TensorView &matrix, size_t kept, const void *source, CUstream stream) const;

  CUlibrary library = nullptr;
  CUdeviceptr workspace = 0;
  size_t workspaceBytes = 0;
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAEPILOGUE_H
