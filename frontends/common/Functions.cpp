//===- Functions.cpp - functions of mathematics -----------------------------===//

#include "frontends/common/Functions.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

Value compareWith(Build &b, CompareDirection direction, Value x, double number) {
  return b.compare(direction, x, b.splatLike(x, number));
}
Value plus(Build &b, Value x, double number) { return b.add(x, b.splatLike(x, number)); }

/// The exponential sees only numbers up to 0, so that neither branch overflows.
Value exponentialUnit(Build &b, Value x, double alpha, double gamma, double inner) {
  Value below = compareWith(b, CompareDirection::Le, x, 0.0);
  Value safe = b.select(below, x, b.splatLike(x, 0.0));
  Value curve = b.scale(b.unary<Expm1Op>(inner == 1.0 ? safe : b.scale(safe, inner)), alpha * gamma);
  return b.select(below, curve, gamma == 1.0 ? x : b.scale(x, gamma));
}

Value ceil(Build &b, Value x) { return b.neg(b.unary<FloorOp>(b.neg(x))); }
Value tan(Build &b, Value x) { return b.div(b.unary<SinOp>(x), b.unary<CosOp>(x)); }

/// (expm1(x) - expm1(-x)) / 2: the terms have opposite signs.
Value sinh(Build &b, Value x) { return b.scale(b.sub(b.unary<Expm1Op>(x), b.unary<Expm1Op>(b.neg(x))), 0.5); }
/// 1 + 2 sinh(x/2)^2 near 0, whose slope does not cancel; (exp(x) + exp(-x)) / 2 elsewhere, whose slope does not
/// overflow before the result does.
Value cosh(Build &b, Value x) {
  Value zero = b.splatLike(x, 0.0), near = compareWith(b, CompareDirection::Lt, b.unary<AbsOp>(x), 1.0);
  Value half = sinh(b, b.scale(b.select(near, x, zero), 0.5));
  Value inner = plus(b, b.scale(b.mul(half, half), 2.0), 1.0);
  Value outer = b.select(near, zero, x);
  outer = b.scale(b.add(b.exp(outer), b.exp(b.neg(outer))), 0.5);
  return b.select(near, inner, outer);
}

namespace {
/// From here on a square would overflow, and 1 beside it does not count.
constexpr double kHuge = 1e10;

/// log(2 x) of what is huge, `function(x)` of the rest.
template <typename Function> Value unlessHuge(Build &b, Value x, Function function) {
  Value huge = compareWith(b, CompareDirection::Gt, x, kHuge), one = b.splatLike(x, 1.0);
  Value logarithm = plus(b, b.unary<LogOp>(b.select(huge, x, one)), std::log(2.0));
  return b.select(huge, logarithm, function(b.select(huge, one, x)));
}
} // namespace

/// Of the magnitude y: log1p(y + y^2 / (1 + sqrt(1 + y^2))), with the sign of x.
Value asinh(Build &b, Value x) {
  Value negative = compareWith(b, CompareDirection::Lt, x, 0.0);
  Value result = unlessHuge(b, b.select(negative, b.neg(x), x), [&](Value y) {
    Value square = b.mul(y, y);
    Value root = b.unary<SqrtOp>(plus(b, square, 1.0));
    return b.unary<Log1pOp>(b.add(y, b.div(square, plus(b, root, 1.0))));
  });
  return b.select(negative, b.neg(result), result);
}

/// With t = x - 1: log1p(t + sqrt(t) sqrt(t + 2)).
Value acosh(Build &b, Value x) {
  return unlessHuge(b, x, [&](Value y) {
    Value t = plus(b, y, -1.0);
    return b.unary<Log1pOp>(b.add(t, b.mul(b.unary<SqrtOp>(t), b.unary<SqrtOp>(plus(b, t, 2.0)))));
  });
}

/// (log1p(x) - log1p(-x)) / 2: the terms have opposite signs.
Value atanh(Build &b, Value x) { return b.scale(b.sub(b.unary<Log1pOp>(x), b.unary<Log1pOp>(b.neg(x))), 0.5); }

Value truncate(Build &b, Value x) {
  return b.select(compareWith(b, CompareDirection::Lt, x, 0.0), ceil(b, x), b.unary<FloorOp>(x));
}

Value sign(Build &b, Value x) {
  Value zero = b.splatLike(x, 0.0), below = zero;
  if (!tensorType(x).getElementType().isUnsignedInteger())
    below = b.select(b.compare(CompareDirection::Lt, x, zero), b.splatLike(x, -1.0), zero);
  return b.select(b.compare(CompareDirection::Gt, x, zero), b.splatLike(x, 1.0), below);
}

Value isNaN(Build &b, Value x) { return b.compare(CompareDirection::Ne, x, x); }
Value isInfinite(Build &b, Value x) {
  return compareWith(b, CompareDirection::Eq, b.unary<AbsOp>(x), std::numeric_limits<double>::infinity());
}

} // namespace tessera::frontend
