//===- Solve.h - determinants, systems of equations, exponentials ---*- C++ -*-===//
//
// Of small square matrices, [batch, n, n] of floats, written out step by step: gradients follow from the steps.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_SOLVE_H
#define TESSERA_FRONTENDS_COMMON_SOLVE_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

/// Of larger matrices the steps would be too many.
inline constexpr int64_t kMostRows = 16;

/// A matrix as a product of a permutation, whose sign is kept, and triangles, of which the upper one is.
struct Eliminated {
  llvm::SmallVector<mlir::Value> rows;  ///< row k of the upper triangle, from column k on: [batch, n - k]
  llvm::SmallVector<mlir::Value> right; ///< of what was carried along: [batch, columns]; empty if nothing was
  mlir::Value sign;                     ///< of the permutation: [batch]
};
/// By Gauss's algorithm, with the largest element of a column as its pivot. `right` is [batch, n, columns] or null.
Eliminated eliminate(train::Build &b, mlir::Value matrix, mlir::Value right);

/// The pivots, [batch, n].
mlir::Value pivotsOf(train::Build &b, const Eliminated &of);
/// What gives `right`, [batch, n, columns], when the matrix multiplies it. Not finite where the matrix is singular.
mlir::Value solve(train::Build &b, mlir::Value matrix, mlir::Value right);
/// The unit matrix as [batch, n, n].
mlir::Value unitLike(train::Build &b, mlir::Value matrix);
/// exp(matrix), by Taylor's polynomial of degree 18 of the matrix halved up to 12 times. NaN where its columns' sums of
/// magnitudes exceed 12,000 (f32) or 4,400 (f64).
mlir::Value matrixExponential(train::Build &b, mlir::Value matrix);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_SOLVE_H
