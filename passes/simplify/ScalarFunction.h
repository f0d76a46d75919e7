//===- ScalarFunction.h - elementwise ops of one number ---------*- C++ -*-===//
//
// What a group of smooth elementwise ops computes of one value, number by number.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_SCALARFUNCTION_H
#define TESSERA_PASSES_SIMPLIFY_SCALARFUNCTION_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace tessera::simplify {

/// Whether an op is smooth: add, sub, mul, div, neg, pow, exp, sigmoid, tanh or erf. Two smooth functions that agree on
/// a dense grid are one.
bool isSmooth(mlir::Operation *op);

/// A tensor, each element of which is a smooth function of the element at the same place of another, its argument.
class ScalarFunction {
public:
  /// None if `value` depends on anything but `argument` and constants, through another op than a smooth one, or on too
  /// many ops.
  static std::optional<ScalarFunction> of(mlir::Value value, mlir::Value argument);

  /// Computed in f64, without rounding in between.
  double at(double number) const;
  /// Whether it is `other` at 193 points in [-6, 6], to what constants in f32 allow.
  bool agreesWith(llvm::function_ref<double(double)> other) const;

private:
  bool visit(mlir::Value value);

  mlir::Value result, argument;
  /// In an order in which they can be evaluated.
  llvm::SetVector<mlir::Operation *> ops;
};

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_SCALARFUNCTION_H
