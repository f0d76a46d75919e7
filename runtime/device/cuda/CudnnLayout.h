//===- CudnnLayout.h - tensors as cuDNN's graphs see them ----------------===//
//
// Pure logic, built and tested without CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNNLAYOUT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNNLAYOUT_H

#include "runtime/artifact/TensorView.h"

#include <compare>
#include <cstdint>
#include <vector>

namespace tessera::cuda {

struct CudnnTensor {
  std::vector<int64_t> dims, strides; ///< strides in elements
  artifact::DataType dtype = artifact::DataType::F32;
  int64_t alignment = 16; ///< bytes

  auto operator<=>(const CudnnTensor &) const = default;
};

/// Bytes to which the addresses of a view are multiples in every iteration, and its rows too; 16 at most.
int64_t cudnnAlignment(const TensorView &view, int64_t strideBits);
/// A view as it is.
CudnnTensor cudnnTensor(const TensorView &view, int64_t strideBits = 0);
/// Row-major, without gaps.
CudnnTensor denseTensor(std::vector<int64_t> dims, artifact::DataType dtype = artifact::DataType::F32);
/// With its last two dimensions exchanged.
CudnnTensor transposed(CudnnTensor tensor);
/// Bytes of a dense tensor, rounded up to what a next one behind it may begin at.
size_t scratchBytes(const CudnnTensor &tensor);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNNLAYOUT_H
