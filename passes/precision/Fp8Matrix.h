//===- Fp8Matrix.h - operands of products as matrices -----------*- C++ -*-===//

#ifndef TESSERA_PASSES_PRECISION_FP8MATRIX_H
#define TESSERA_PASSES_PRECISION_FP8MATRIX_H

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Fp8Policy.h"

namespace tessera::precision {

/// The dimensions of an operand in the order in which its matrix has them.
struct Order {
  llvm::SmallVector<int64_t> kept, contracted;

  /// Of an activation or a gradient.
  llvm::ArrayRef<int64_t> tokens(train::Fp8Product product) const {
    return product == train::Fp8Product::WeightGrad ? contracted : kept;
  }
};

/// An operand of a product as a matrix.
struct Matrix {
  mlir::Value value;
  int64_t contracted;                             ///< its dimension that is contracted; the other one is kept
  llvm::SmallVector<int64_t> keptDims, keptShape; ///< what is kept: places in the operand, in the matrix's order

  int64_t kept() const { return 1 - contracted; }
  int64_t size(int64_t dim) const { return train::shapeOf(value)[dim]; }
};

/// The product of the sizes of these dimensions.
int64_t countElements(mlir::Value value, llvm::ArrayRef<int64_t> dims);

/// Kept and contracted dimensions as one each, in the order in which the operand holds them where that can be.
Matrix toMatrix(train::Build &b, mlir::Value operand, const Order &order);

/// The operand with its samples as a dimension of their own, and that as the first of its tokens: so each rank has
/// consecutive ones, and those of a sample are neighbours, in whatever order the model holds them. `layout`: where its
/// samples are.
mlir::Value putSamplesFirst(train::Build &b, mlir::Value operand, const dist::Layout &layout, int64_t numSamples,
                            train::Fp8Product product, Order &order);

/// The product of two matrices with what is kept of both as the operands had it.
mlir::Value joinKept(train::Build &b, mlir::Value product, const Matrix &lhs, const Matrix &rhs);

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FP8MATRIX_H
