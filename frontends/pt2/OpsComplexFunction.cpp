//===- OpsComplexFunction.cpp - functions of complex numbers ----------------===//
//
// Rows of functions of each element. At 0, where some have no slope, it is PyTorch's: 0 for abs, angle and sgn.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/pt2/Complex.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::compareWith;
using frontend::joinParts;

/// Sets the pairs that `function` makes of the parts of `self`.
template <Value (*function)(Build &, Value, Value)> LogicalResult toPairs(Call &c) {
  return ofParts(c, [&](Build &b, Value x, Value y) { return c.setComplex(function(b, x, y)); });
}

/// `function` of what is not 0, else 0, which has the gradient 0.
template <typename Function> Value butAtZero(Build &b, Value x, Value y, Function function) {
  Value isZero = b.mul(compareWith(b, CompareDirection::Eq, x, 0), compareWith(b, CompareDirection::Eq, y, 0));
  Value made = function(b.select(isZero, b.splatLike(x, 1), x), y);
  return b.select(isZero, b.splatLike(x, 0), made);
}

Value magnitude(Build &b, Value x, Value y) {
  return butAtZero(b, x, y, [&](Value x, Value y) { return frontend::hypot(b, x, y); });
}
Value angle(Build &b, Value x, Value y) { return frontend::atan2(b, y, x); }
template <Value (*function)(Build &, Value, Value)> LogicalResult toReal(Call &c) {
  return ofParts(c, [&](Build &b, Value x, Value y) { return c.set(function(b, x, y)); });
}

Value magnitudeOf(Build &b, Value pairs) {
  return magnitude(b, frontend::partOf(b, pairs, 0), frontend::partOf(b, pairs, 1));
}

/// Norms are those of the magnitudes.
LogicalResult opComplexNorm(Call &c) {
  auto real = callReal(c, [&](int i) { return c.inputs[i].isComplex ? magnitudeOf(c.b, c.input(i)) : Value(); });
  if (failed(real))
    return failure();
  c.outputs = std::move(real->outputs);
  return success();
}

/// The loss between the magnitudes of the difference and zeros.
LogicalResult opComplexL1(Call &c) {
  if (!c.isComplex("self") || !c.isComplex("target") || c.shape("self") != c.shape("target"))
    return c.fail("expected complex tensors of one shape");
  Value size = magnitudeOf(c.b, c.b.sub(c.value("self"), c.value("target")));
  auto real = callReal(c, [&](int i) { return i == c.at("self") ? size : c.b.splatLike(size, 0); });
  if (failed(real))
    return failure();
  c.outputs = std::move(real->outputs);
  return success();
}

Value exponential(Build &b, Value x, Value y) { return frontend::fromPolar(b, b.exp(x), y); }
Value logarithm(Build &b, Value x, Value y) {
  return joinParts(b, b.unary<LogOp>(frontend::hypot(b, x, y)), frontend::atan2(b, y, x));
}

/// The point of the unit circle at the same angle.
Value sgn(Build &b, Value x, Value y) {
  auto along = [&](bool isFirst) {
    return butAtZero(b, x, y, [&](Value x, Value y) { return b.div(isFirst ? x : y, frontend::hypot(b, x, y)); });
  };
  return joinParts(b, along(true), along(false));
}

/// The root whose real part is not below 0. Its larger part is the root of (|z| + |x|) / 2, which does not cancel; the
/// other is half of y by that. That of 0 is 0, with an infinite slope.
Value squareRoot(Build &b, Value x, Value y) {
  auto half = [&](Value part) { return b.scale(part, 0.5); };
  Value large = b.unary<SqrtOp>(b.add(half(magnitude(b, x, y)), half(b.unary<AbsOp>(x))));
  Value isZero = compareWith(b, CompareDirection::Eq, large, 0);
  Value small = b.div(half(y), b.select(isZero, b.splatLike(large, 1), large));
  // The reciprocal tells -0 from 0.
  Value one = b.splatLike(y, 1);
  Value isBelow =
      b.max(compareWith(b, CompareDirection::Lt, y, 0), compareWith(b, CompareDirection::Lt, b.div(one, y), 0));
  Value isLeft = compareWith(b, CompareDirection::Lt, x, 0);
  auto turned = [&](Value part) { return b.select(isBelow, b.neg(part), part); };
  return joinParts(b, b.select(isLeft, turned(small), large), b.select(isLeft, turned(large), small));
}

Value one(Build &b, Value pairs) {
  Value real = frontend::partOf(b, pairs, 0);
  return joinParts(b, b.splatLike(real, 1), b.splatLike(real, 0));
}
Value inverseOf(Build &b, Value pairs) { return frontend::dividePairs(b, one(b, pairs), pairs); }
Value inverse(Build &b, Value x, Value y) { return inverseOf(b, joinParts(b, x, y)); }
Value inverseRoot(Build &b, Value x, Value y) { return inverseOf(b, squareRoot(b, x, y)); }

/// sin(x + iy) and cos(x + iy).
Value sine(Build &b, Value x, Value y) {
  return joinParts(b, b.mul(b.unary<SinOp>(x), frontend::cosh(b, y)), b.mul(b.unary<CosOp>(x), frontend::sinh(b, y)));
}
Value cosine(Build &b, Value x, Value y) {
  return joinParts(b, b.mul(b.unary<CosOp>(x), frontend::cosh(b, y)),
                   b.neg(b.mul(b.unary<SinOp>(x), frontend::sinh(b, y))));
}

/// By repeated squaring.
Value power(Build &b, Value pairs, int64_t exponent) {
  Value made;
  for (Value square = pairs; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1)
      made = made ? frontend::multiplyPairs(b, made, square) : square;
    if (exponent > 1)
      square = frontend::multiplyPairs(b, square, square);
  }
  return made;
}

/// Products for whole exponents; roots for halves.
LogicalResult opComplexPow(Call &c) {
  constexpr double kMost = 16;
  auto exponent = c.number("exponent");
  if (!c.isComplex("self") || !exponent)
    return c.fail("powers of complex numbers are supported only for known real exponents");
  if (std::abs(*exponent) == 0.5)
    return *exponent > 0 ? toPairs<squareRoot>(c) : toPairs<inverseRoot>(c);
  if (*exponent == 0 || *exponent != std::floor(*exponent) || std::abs(*exponent) > kMost)
    return c.fail("powers of complex numbers are supported for whole exponents other than 0 up to 16, and 0.5");
  Value made = power(c.b, c.value("self"), static_cast<int64_t>(std::abs(*exponent)));
  return c.setComplex(*exponent > 0 ? made : inverseOf(c.b, made));
}
LogicalResult opComplexSquare(Call &c) {
  return c.isComplex("self") ? c.setComplex(power(c.b, c.value("self"), 2)) : c.fail(kNoComplex);
}

const OpRow kComplexFunctionOps[] = {
    {"aten.abs.default", toReal<magnitude>},
    {"aten.angle.default", toReal<angle>},
    {"aten.cos.default", toPairs<cosine>},
    {"aten.exp.default", toPairs<exponential>},
    {"aten.l1_loss.default", opComplexL1, "self,target"},
    {"aten.linalg_norm.default", opComplexNorm},
    {"aten.linalg_vector_norm.default", opComplexNorm},
    {"aten.log.default", toPairs<logarithm>},
    {"aten.norm.Scalar", opComplexNorm},
    {"aten.norm.ScalarOpt_dim", opComplexNorm},
    {"aten.pow.Tensor_Scalar", opComplexPow},
    {"aten.reciprocal.default", toPairs<inverse>},
    {"aten.rsqrt.default", toPairs<inverseRoot>},
    {"aten.sgn.default", toPairs<sgn>},
    {"aten.sin.default", toPairs<sine>},
    {"aten.sqrt.default", toPairs<squareRoot>},
    {"aten.square.default", opComplexSquare},
};
} // namespace

llvm::ArrayRef<OpRow> complexFunctionOps() { return kComplexFunctionOps; }

} // namespace tessera::pt2
