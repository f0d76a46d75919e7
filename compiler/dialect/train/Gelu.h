//===- Gelu.h - the two functions called GELU -------------------*- C++ -*-===//
//
// Values and derivatives of both forms, as the interpreter computes them and the compiler recognises them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_GELU_H
#define TESSERA_COMPILER_DIALECT_TRAIN_GELU_H

#include "compiler/dialect/train/Train.h"

#include <cmath>
#include <numbers>

namespace tessera::train {

/// Of the tanh form: 0.5 x (1 + tanh(kGeluSlope (x + kGeluCubic x^3))).
inline constexpr double kGeluSlope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kGeluCubic = 0.044715;

/// The number that says how much of `x` passes: from -1, none of it, to 1, all.
inline double geluInner(GeluForm form, double x) {
  return form == GeluForm::Exact ? std::erf(x / std::numbers::sqrt2)
                                 : std::tanh(kGeluSlope * (x + kGeluCubic * x * x * x));
}

inline double gelu(GeluForm form, double x) { return 0.5 * x * (1 + geluInner(form, x)); }
inline double geluExact(double x) { return gelu(GeluForm::Exact, x); }
inline double geluTanh(double x) { return gelu(GeluForm::Tanh, x); }

inline double geluDerivative(GeluForm form, double x) {
  const double inner = geluInner(form, x);
  const double slope = form == GeluForm::Exact
                           ? 2 * std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-x * x / 2)
                           : (1 - inner * inner) * kGeluSlope * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + inner) + 0.5 * x * slope;
}

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_GELU_H
