//===- Pairs.h - complex numbers as pairs of real ones ----------*- C++ -*-===//
//
// A tensor of complex numbers is one of floats with a last dimension of size 2, the real and the imaginary part.
// Gradients are those of the two parts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_PAIRS_H
#define TESSERA_FRONTENDS_COMMON_PAIRS_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

/// The real part (0) or the imaginary part (1) of pairs.
mlir::Value partOf(train::Build &b, mlir::Value pairs, int64_t part);
/// Pairs of parts of one shape.
mlir::Value joinParts(train::Build &b, mlir::Value real, mlir::Value imaginary);
/// length * exp(i angle), of tensors of one shape.
mlir::Value fromPolar(train::Build &b, mlir::Value length, mlir::Value angle);
/// x * y, of pairs of one shape.
mlir::Value multiplyPairs(train::Build &b, mlir::Value x, mlir::Value y);
/// x / y, of pairs of one shape, scaled by the larger part of y, so that squares do not overflow.
mlir::Value dividePairs(train::Build &b, mlir::Value x, mlir::Value y);
mlir::Value conjugate(train::Build &b, mlir::Value pairs);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_PAIRS_H
