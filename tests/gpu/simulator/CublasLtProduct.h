//===- CublasLtProduct.h - what a call of cuBLASLt multiplies ------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_CUBLASLTPRODUCT_H
#define TESSERA_TESTS_GPU_SIMULATOR_CUBLASLTPRODUCT_H

#include "Simulator.h"

#include <cublasLt.h>

#include <array>
#include <string>

namespace tessera::sim {

struct Matrix {
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, leading = 0, batchStride = 0;
  int32_t batch = 1;
  bool isRowMajor = false;

  size_t width() const;
  int64_t place(int64_t row, int64_t column) const {
    return isRowMajor ? row * leading + column : row + column * leading;
  }
  int64_t elements() const {
    return rows == 0 || columns == 0 ? 0 : place(rows - 1, columns - 1) + 1 + (batch - 1) * batchStride;
  }
};

/// How an operand of 8-bit floats is scaled.
struct Scales {
  int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  uint64_t address = 0; ///< 0: by 1
};

struct Product {
  Matrix a, b, c, d;
  Scales aScales, bScales;
  bool isATransposed = false, isBTransposed = false;
  int64_t m = 0, n = 0, k = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  uint64_t bias = 0, aux = 0;
  int64_t biasStride = 0, auxLeading = 0, auxStride = 0;
  cudaDataType biasType = CUDA_R_32F, auxType = CUDA_R_32F;
  bool accumulatesFast = false;
  int32_t multiprocessors = 0; ///< that it may count on; 0: all
};

inline constexpr uint32_t hasBias = 4, isRelu = 2, isGelu = 32, hasAux = 128, givesBiasGrad = 16, isReluGrad = 8,
                          isGeluGrad = 64;

inline bool isFloat8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
inline bool isKnownType(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F || isFloat8(type);
}
inline size_t widthOf(cudaDataType type) { return type == CUDA_R_32F ? 4 : isFloat8(type) ? 1 : 2; }
inline size_t Matrix::width() const { return widthOf(type); }

/// Empty, or why a library on a GPU of this capability (90: Hopper) would not multiply these 8-bit floats.
std::string problemOfFloat8(const Product &product, int capability);

struct Addresses {
  uint64_t a, b, c, d;
};

inline std::array<uint64_t, 4> addressesOf(const Addresses &at) { return {at.a, at.b, at.c, at.d}; }

/// In f32, with NVIDIA's epilogues and scales.
void evaluate(const Product &product, const Addresses &at, float alpha, float beta, const Gpu &gpu);

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_CUBLASLTPRODUCT_H
