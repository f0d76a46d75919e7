//===- Cuda.h - calls of the driver with their errors in words --------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDA_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDA_H

#include "runtime/base/Status.h"

#include <cuda.h>

#include <string>

namespace tessera::cuda {

/// "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
inline Status driverError(const char *call, CUresult result) {
  const char *name = nullptr, *words = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &words);
  return Status(result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::Exhausted : StatusCode::IoError,
                std::string(call) + ": " + (words ? words : "unknown error") + " (" +
                    (name ? name : std::to_string(static_cast<int>(result))) + ")");
}

inline CUdeviceptr deviceAddress(const void *address) { return reinterpret_cast<CUdeviceptr>(address); }

} // namespace tessera::cuda

/// `TESSERA_CU(cuStreamCreate(&stream, 0));`
#define TESSERA_CU(call)                                                                                               \
  do {                                                                                                                 \
    if (CUresult tesseraResult_ = (call); tesseraResult_ != CUDA_SUCCESS)                                              \
      return ::tessera::cuda::driverError(std::string(#call).substr(0, std::string(#call).find('(')).c_str(),          \
                                          tesseraResult_);                                                             \
  } while (false)

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDA_H
