//===- CudaGemm.h - matrix products by cuBLASLt -----------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/GemmLayout.h"

#include <cublasLt.h>

#include <memory>

namespace tessera::cuda {

/// A product of fixed shapes, strides and alignments. The algorithm is the library's first choice for them.
class GemmPlan {
public:
  virtual ~GemmPlan() = default;
  virtual Status start(const void *a, const void *b, void *c, CUstream stream) = 0;
};

/// Makes the plans of one rank; they share one workspace, so that they run on one stream.
class GemmPlanner {
public:
  ~GemmPlanner();
  Status open();
  Result<std::unique_ptr<GemmPlan>> plan(const Operand &a, const Operand &b, const Operand &c, float alpha, float beta);
  static constexpr size_t workspaceBytes = size_t{32} << 20;

private:
  cublasLtHandle_t handle = nullptr;
  CUdeviceptr workspace = 0;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H
