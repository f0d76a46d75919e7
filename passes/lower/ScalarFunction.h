//===- ScalarFunction.h - elementwise ops as a function of numbers *- C++ -*-===//
//
// Recognises what a group of elementwise ops computes by its values, not by its form: gradient rules, canonicalisation
// and precision leave one function in many forms.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_SCALARFUNCTION_H
#define TESSERA_PASSES_LOWER_SCALARFUNCTION_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace tessera {

/// What a value is of without conversions between floating point types and barriers.
mlir::Value withoutConversions(mlir::Value value);

/// A tensor, each element of which is a smooth function (add, sub, mul, div, neg, pow, exp, tanh, erf of constants and)
/// of the elements at the same place of others, its arguments. Rounding in between does not count.
class ScalarFunction {
public:
  /// Follows `value` back to `arguments` and to what no smooth op computes, which become further arguments; none if
  /// there are more arguments than `maxArguments` or too many ops.
  static std::optional<ScalarFunction> of(mlir::Value value, llvm::ArrayRef<mlir::Value> arguments,
                                          unsigned maxArguments);

  double at(llvm::ArrayRef<double> numbers) const;
  llvm::ArrayRef<mlir::Value> getArguments() const { return arguments; }
  /// The ops that compute it, conversions included, in an order in which they can be evaluated.
  const llvm::SetVector<mlir::Operation *> &getOps() const { return ops; }

private:
  bool visit(mlir::Value value, unsigned maxArguments);

  mlir::Value result;
  llvm::SmallVector<mlir::Value> arguments;
  llvm::SetVector<mlir::Operation *> ops;
};

/// Whether a function of one argument is GELU in its tanh approximation, or by the error function.
bool isTanhGelu(const ScalarFunction &function);
bool isErfGelu(const ScalarFunction &function);
/// Whether a function of two arguments is the first, times the derivative of GELU (its tanh approximation) at the
/// second.
bool isTanhGeluGrad(const ScalarFunction &function);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_SCALARFUNCTION_H
