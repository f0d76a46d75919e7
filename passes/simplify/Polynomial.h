//===- Polynomial.h - elementwise ops as a polynomial -----------*- C++ -*-===//
//
// What sums, products and powers compute of one value, and of a function of it, whatever their order and however their
// constants are split.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_POLYNOMIAL_H
#define TESSERA_PASSES_SIMPLIFY_POLYNOMIAL_H

#include "mlir/IR/Value.h"

#include <map>
#include <optional>

namespace tessera::simplify {

/// A polynomial in `x` and `t`: the coefficient of x^i t^j at (i, j); none is 0.
class Polynomial {
public:
  /// What `value` is of the variables `x` and `t` (null: of `x` alone); none if it is no polynomial of them, or one of
  /// a degree above 3.
  static std::optional<Polynomial> of(mlir::Value value, mlir::Value x, mlir::Value t = {});

  /// Whether the coefficients are these, to what constants in f32 allow.
  bool is(std::initializer_list<std::pair<std::pair<int, int>, double>> expected) const;

private:
  using Terms = std::map<std::pair<int, int>, double>;

  explicit Polynomial(Terms terms) : terms(std::move(terms)) {}
  static std::optional<Polynomial> visit(mlir::Value value, mlir::Value x, mlir::Value t, unsigned depth);
  Polynomial plus(const Polynomial &other, double factor) const;
  std::optional<Polynomial> times(const Polynomial &other) const;
  /// The number that it is everywhere.
  std::optional<double> number() const;

  Terms terms;
};

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_POLYNOMIAL_H
