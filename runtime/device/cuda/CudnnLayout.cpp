//===- CudnnLayout.cpp - tensors as cuDNN's graphs see them --------------===//

#include "runtime/device/cuda/CudnnLayout.h"

#include <cstdint>
#include <utility>

namespace tessera::cuda {

int64_t cudnnAlignment(const TensorView &view, int64_t strideBits) {
  auto width = static_cast<int64_t>(byteWidth(view.dtype));
  uint64_t bits = reinterpret_cast<uintptr_t>(view.data) | static_cast<uint64_t>(strideBits) | 16;
  for (size_t dim = 0; dim + 1 < view.shape.size(); ++dim)
    if (view.shape[dim] != 1)
      bits |= static_cast<uint64_t>(view.strides[dim] * width);
  return static_cast<int64_t>(bits & (~bits + 1));
}

CudnnTensor cudnnTensor(const TensorView &view, int64_t strideBits) {
  return {view.shape, view.strides, view.dtype, cudnnAlignment(view, strideBits)};
}

CudnnTensor denseTensor(std::vector<int64_t> dims, artifact::DataType dtype) {
  CudnnTensor made{std::move(dims), {}, dtype};
  made.strides.assign(made.dims.size(), 1);
  for (size_t dim = made.dims.size(); dim-- > 1;)
    made.strides[dim - 1] = made.strides[dim] * made.dims[dim];
  return made;
}

CudnnTensor transposed(CudnnTensor tensor) {
  size_t rank = tensor.dims.size();
  std::swap(tensor.dims[rank - 1], tensor.dims[rank - 2]);
  std::swap(tensor.strides[rank - 1], tensor.strides[rank - 2]);
  return tensor;
}

size_t scratchBytes(const CudnnTensor &tensor) {
  size_t bytes = byteWidth(tensor.dtype);
  for (int64_t size : tensor.dims)
    bytes *= static_cast<size_t>(size);
  return (bytes + 255) / 256 * 256;
}

} // namespace tessera::cuda
