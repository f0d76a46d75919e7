//===- Match.h - small matchers on train IR ---------------------*- C++ -*-===//
//
// What the recognising passes have in common: seeing through broadcasts,
// unit dimensions and the ways to write a constant factor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_MATCH_H
#define TESSERA_PASSES_SIMPLIFY_MATCH_H

#include "compiler/dialect/train/Builders.h"

#include <optional>

namespace tessera::simplify {

/// The number that all elements of a constant have, seen through broadcasts, reshapes and converts.
std::optional<double> uniformConstant(mlir::Value value);

/// If `value` is another value times a constant (or divided by one), that value and the factor.
std::optional<std::pair<mlir::Value, double>> scaledBy(mlir::Value value);

/// If `value` is the square of another value, that value.
mlir::Value squareOf(mlir::Value value);

/// The value of one number per row (all dimensions but `dim`) that `value` repeats along `dim`: sees through a
/// broadcast along `dim` and through reshapes that add or remove that dimension with size 1. `value` itself if it is
/// not repeated.
mlir::Value unrepeated(mlir::Value value, int64_t dim, llvm::ArrayRef<int64_t> fullShape);

/// The vector that `value` repeats along all dimensions but the last, or null.
mlir::Value repeatedVector(mlir::Value value);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_MATCH_H
