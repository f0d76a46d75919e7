//===- Cudnn.h - cuDNN for one rank --------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNN_H

#include "runtime/device/cuda/CudnnGraph.h"

namespace tessera::cuda {

/// The library is initialised by the first instruction that needs it.
class Cudnn {
public:
  Cudnn() = default;
  Cudnn(const Cudnn &) = delete;
  Cudnn &operator=(const Cudnn &) = delete;
  ~Cudnn() {
    if (opened)
      cudnnDestroy(opened);
  }
  Result<cudnnHandle_t> handle() {
    if (!opened)
      TESSERA_RETURN_IF_ERROR(cudnnCheck("cannot be initialised", cudnnCreate(&opened)));
    return opened;
  }

private:
  cudnnHandle_t opened = nullptr;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNN_H
