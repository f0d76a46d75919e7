//===- Gelu.h - the GELU of epilogues ---------------------------*- C++ -*-===//
//
// The tanh approximation and its derivative as the interpreter computes them and the compiler recognises them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_EXEC_GELU_H
#define TESSERA_COMPILER_DIALECT_EXEC_GELU_H

#include <cmath>
#include <numbers>

namespace tessera::exec {

inline double geluTanh(double x) {
  return std::tanh(std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x));
}

inline double gelu(double x) { return 0.5 * x * (1 + geluTanh(x)); }

inline double geluDerivative(double x) {
  double t = geluTanh(x);
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (1 + 3 * 0.044715 * x * x);
}

} // namespace tessera::exec

#endif // TESSERA_COMPILER_DIALECT_EXEC_GELU_H
