//===- Polynomial.cpp - elementwise ops as a polynomial -------------------===//
//
// See Polynomial.h.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Polynomial.h"

#include "passes/simplify/Match.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

static constexpr int kMaxDegree = 3;
static constexpr unsigned kDeepestPolynomial = 10;
/// A coefficient is a product of a few constants, each rounded to f32.
static constexpr double kEqualTerms = 1e-6;

Polynomial Polynomial::plus(const Polynomial &other, double factor) const {
  Terms sum = terms;
  for (const auto &[powers, coefficient] : other.terms)
    sum[powers] += factor * coefficient;
  std::erase_if(sum, [](const auto &term) { return term.second == 0; });
  return Polynomial(std::move(sum));
}

std::optional<Polynomial> Polynomial::times(const Polynomial &other) const {
  Terms product;
  for (const auto &[powers, coefficient] : terms)
    for (const auto &[otherPowers, otherCoefficient] : other.terms) {
      const std::pair both(powers.first + otherPowers.first, powers.second + otherPowers.second);
      if (both.first + both.second > kMaxDegree)
        return std::nullopt;
      product[both] += coefficient * otherCoefficient;
    }
  std::erase_if(product, [](const auto &term) { return term.second == 0; });
  return Polynomial(std::move(product));
}

std::optional<double> Polynomial::number() const {
  if (terms.empty())
    return 0.0;
  if (terms.size() > 1 || terms.begin()->first != std::pair(0, 0))
    return std::nullopt;
  return terms.begin()->second;
}

std::optional<Polynomial> Polynomial::visit(Value value, Value x, Value t, unsigned depth) {
  if (value == x)
    return Polynomial({{{1, 0}, 1.0}});
  if (value == t)
    return Polynomial({{{0, 1}, 1.0}});
  if (std::optional<double> number = uniformConstant(value))
    return Polynomial({{{0, 0}, *number}});
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp>(op) || depth == 0)
    return std::nullopt;
  std::optional<Polynomial> a = visit(op->getOperand(0), x, t, depth - 1);
  if (!a)
    return std::nullopt;
  if (isa<NegOp>(op))
    return a->times(Polynomial({{{0, 0}, -1.0}}));
  std::optional<Polynomial> b = visit(op->getOperand(1), x, t, depth - 1);
  if (!b)
    return std::nullopt;
  if (isa<AddOp, SubOp>(op))
    return a->plus(*b, isa<AddOp>(op) ? 1.0 : -1.0);
  if (isa<MulOp>(op))
    return a->times(*b);
  std::optional<double> number = b->number();
  if (!number)
    return std::nullopt;
  if (isa<DivOp>(op))
    return *number != 0 ? a->times(Polynomial({{{0, 0}, 1 / *number}})) : std::nullopt;
  if (*number != 2 && *number != 3)
    return std::nullopt;
  std::optional<Polynomial> power = a->times(*a);
  return power && *number == 3 ? power->times(*a) : power;
}

std::optional<Polynomial> Polynomial::of(Value value, Value x, Value t) {
  return visit(value, x, t, kDeepestPolynomial);
}

bool Polynomial::is(std::initializer_list<std::pair<std::pair<int, int>, double>> expected) const {
  return terms.size() == expected.size() && llvm::all_of(expected, [&](const auto &term) {
           auto it = terms.find(term.first);
           return it != terms.end() && std::abs(it->second - term.second) <= kEqualTerms * std::abs(term.second);
         });
}

} // namespace tessera::simplify
