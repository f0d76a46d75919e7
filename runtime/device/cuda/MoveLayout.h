//===- MoveLayout.h - a strided copy or fill, with the fewest dimensions ----===//
//
// Pure logic, built and tested without CUDA; the structure is also the argument of the kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_MOVELAYOUT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_MOVELAYOUT_H

#include <cstdint>

namespace tessera::cuda {

struct MoveLayout {
  static constexpr int maxDims = 8;
  int64_t elements = 1;
  int64_t sizes[maxDims];                                 ///< minor first
  int64_t sourceStrides[maxDims], targetStrides[maxDims]; ///< elements
  int dims = 0;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_MOVELAYOUT_H
