//===- GemmLayout.h - a strided product as cuBLASLt sees it -----------------===//
//
// cuBLASLt takes column-major matrices: c = a @ b in rows is cᵀ = bᵀ @ aᵀ in columns, so that b comes first. Pure
// logic, built and tested without CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_GEMMLAYOUT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_GEMMLAYOUT_H

#include "runtime/artifact/Epilogue.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <vector>

namespace tessera::cuda {

/// A column-major matrix as it lies in memory.
struct MatrixLayout {
  int64_t rows = 1, columns = 1, leading = 1; ///< elements
  bool isTransposed = false;                  ///< the product takes its transpose
  int64_t batchStride = 0;                    ///< elements; 0: the same for the whole batch
};

/// A loop around the library's call; strides in elements.
struct GemmLoop {
  int64_t size = 1, a = 0, b = 0, c = 0;
};

struct GemmLayout {
  MatrixLayout first, second, target; ///< bᵀ, aᵀ and cᵀ
  int64_t batch = 1;
  std::vector<GemmLoop> loops; ///< major first
};

/// The layout of c = a @ b over [batch…, m, k] x [batch…, k, n]; a batch dimension of size 1 is repeated. Fails if an
/// operand has no stride of 1 among its two innermost.
Result<GemmLayout> gemmLayout(const TensorView &a, const TensorView &b, const TensorView &c);

/// What cuBLASLt is told of an epilogue: in terms of its own column-major matrices, whose rows are our columns.
struct EpilogueLayout {
  int64_t biasElements = 0; ///< of a bias (one for each of its rows) or of a bias gradient
  int64_t auxLeading = 0;   ///< elements from one column of the pre-activation to the next
  enum class Sum { None, First, Second } sum = Sum::None; ///< operand that is summed over what is contracted
};

/// Fails if the library has no such epilogue for the product.
Result<EpilogueLayout> epilogueLayout(artifact::Epilogue epilogue, const GemmLayout &product);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_GEMMLAYOUT_H
