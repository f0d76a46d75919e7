//===- CudaAttentionKernels.h - launches of our own attention kernels ----===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTIONKERNELS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTIONKERNELS_H

#include "runtime/artifact/GpuAttention.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/device/cuda/AttentionLayout.h"
#include "runtime/device/cuda/Cuda.h"

#include <map>
#include <string>

namespace tessera::cuda {

/// Of AttentionBody.h, for all that attentionLayout makes, and of TensorAttention.h, for what tensorRefusal has nothing
/// against.
class AttentionKernels {
public:
  AttentionKernels() = default;
  AttentionKernels(const AttentionKernels &) = delete;
  AttentionKernels &operator=(const AttentionKernels &) = delete;
  ~AttentionKernels();

  /// What `start` needs, once; does nothing after that.
  Status load(const AttentionLayout &layout, artifact::DataType dtype, AttentionUnits units);
  /// Of operands of type `dtype`, by our own `units`, which have been loaded. A backward pass needs `layout.delta`.
  Status start(const AttentionLayout &layout, artifact::DataType dtype, AttentionUnits units, bool isBackward,
               CUstream stream) const;

private:
  Status loadFunction(CUlibrary library, const std::string &symbol, int sharedBytes);
  Status launch(const std::string &symbol, int64_t blocks, int64_t sections, int threads, int sharedBytes,
                const AttentionLayout &layout, CUstream stream) const;
  Status startTensor(const AttentionLayout &layout, const std::string &type, bool isBackward, CUstream stream) const;

  std::map<const char *, CUlibrary> libraries; ///< by their PTX
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTIONKERNELS_H
