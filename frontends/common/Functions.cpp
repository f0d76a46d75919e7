//===- Functions.cpp - functions of mathematics -----------------------------===//

#include "frontends/common/Functions.h"

#include <cmath>
#include <limits>

#include <numbers>

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

/// Of the quotient whose magnitude is at most 1, so that nothing overflows.
Value atan2(Build &b, Value y, Value x) {
  constexpr double pi = std::numbers::pi;
  Value zero = b.splatLike(x, 0.0), one = b.splatLike(x, 1.0);
  Value isFlat = b.compare(CompareDirection::Le, b.unary<AbsOp>(y), b.unary<AbsOp>(x));
  Value flat = b.unary<AtanOp>(b.div(y, b.select(b.mul(isFlat, b.compare(CompareDirection::Ne, x, zero)), x, one)));
  Value steep = b.unary<AtanOp>(b.div(x, b.select(isFlat, one, y)));
  // The reciprocal tells -0 from 0.
  auto isNegative = [&](Value value) {
    return b.max(compareWith(b, CompareDirection::Lt, value, 0.0),
                 compareWith(b, CompareDirection::Lt, b.div(one, value), 0.0));
  };
  Value turned = b.add(flat, b.select(isNegative(y), b.splatLike(x, -pi), b.splatLike(x, pi)));
  Value beside = b.select(isNegative(x), turned, flat);
  Value quarter =
      b.select(compareWith(b, CompareDirection::Lt, y, 0.0), b.splatLike(x, -pi / 2), b.splatLike(x, pi / 2));
  Value angle = b.select(isFlat, beside, b.sub(quarter, steep));
  Value isOrigin = b.mul(b.compare(CompareDirection::Eq, x, zero), b.compare(CompareDirection::Eq, y, zero));
  return b.select(isOrigin, StopGradientOp::create(b.builder, b.loc, angle), angle); // where PyTorch has the gradient 0
}

Value scaleOf(Build &b, Value x, Value y) {
  Value largest = StopGradientOp::create(b.builder, b.loc, b.max(b.unary<AbsOp>(x), b.unary<AbsOp>(y)));
  Value isPlain =
      b.compare(CompareDirection::Lt, largest, b.splatLike(largest, std::numeric_limits<double>::infinity()));
  return b.select(b.mul(isPlain, compareWith(b, CompareDirection::Gt, largest, 0.0)), largest, b.splatLike(x, 1.0));
}

Value hypot(Build &b, Value x, Value y) {
  Value scale = scaleOf(b, x, y);
  Value across = b.div(x, scale), up = b.div(y, scale);
  return b.mul(scale, b.unary<SqrtOp>(b.add(b.mul(across, across), b.mul(up, up))));
}

/// The larger one and the softplus of how far the other is below it; of two that are equal (infinite, perhaps) their
/// mean and log(2).
Value logAddExp(Build &b, Value x, Value y) {
  Value isSame = b.compare(CompareDirection::Eq, x, y), zero = b.splatLike(x, 0.0);
  Value isFirst = b.compare(CompareDirection::Gt, x, y);
  Value larger = b.select(isFirst, x, y), smaller = b.select(isFirst, y, x);
  Value difference = b.sub(b.select(isSame, zero, smaller), b.select(isSame, zero, larger));
  Value same = plus(b, b.scale(b.add(x, y), 0.5), std::log(2.0));
  return b.select(isSame, same, b.add(larger, b.unary<SoftplusOp>(difference)));
}

Value xLogY(Build &b, Value x, Value y) {
  Value isNothing = b.mul(compareWith(b, CompareDirection::Eq, x, 0.0), compareWith(b, CompareDirection::Le, y, 0.0));
  return b.mul(x, b.unary<LogOp>(b.select(isNothing, b.splatLike(y, 1.0), y)));
}

Value truncate(Build &b, Value x) {
  return b.select(compareWith(b, CompareDirection::Lt, x, 0.0), ceil(b, x), b.unary<FloorOp>(x));
}

Value constantOf(Build &b, Value x, double number) {
  Value splat = b.splatLike(x, number);
  if (!isa<FloatType>(tensorType(x).getElementType()))
    return splat;
  Value zero = b.splatLike(x, 0.0);
  Value still = b.unary<FloorOp>(b.select(b.compare(CompareDirection::Eq, x, zero), x, zero)); // 0 or -0
  return b.add(splat, b.mul(still, still));
}

Value sign(Build &b, Value x) {
  Value zero = b.splatLike(x, 0.0), below = constantOf(b, x, 0.0);
  if (!tensorType(x).getElementType().isUnsignedInteger())
    below = b.select(b.compare(CompareDirection::Lt, x, zero), b.splatLike(x, -1.0), below);
  return b.select(b.compare(CompareDirection::Gt, x, zero), b.splatLike(x, 1.0), below);
}

Value isNaN(Build &b, Value x) { return b.compare(CompareDirection::Ne, x, x); }
Value isInfinite(Build &b, Value x) {
  return compareWith(b, CompareDirection::Eq, b.unary<AbsOp>(x), std::numeric_limits<double>::infinity());
}

} // namespace tessera::frontend
