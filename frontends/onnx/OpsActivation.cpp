//===- OpsActivation.cpp - functions of one number -------------------------===//
//
// Activations and the functions of mathematics, in forms that neither overflow
// nor cancel. Where a function has a corner its slope is PyTorch's: one side of
// a `select` takes all of the gradient (docs/differentiate.md has the table).
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// `function(builder, node, x)` of a floating-point input.
template <Value (*function)(Build &, Node &, Value)> LogicalResult ofFloat(Node &n) {
  if (!n.isFloat(0))
    return n.fail("input 0 is not floating point");
  return n.set(function(n.b, n, n.input(0)));
}

template <typename Op> Value simple(Build &b, Node &, Value x) { return b.unary<Op>(x); }

Value compareWith(Build &b, CompareDirection direction, Value x, double number) {
  return b.compare(direction, x, b.splatLike(x, number));
}
Value positive(Build &b, Value x) { return compareWith(b, CompareDirection::Gt, x, 0.0); }
Value plus(Build &b, Value x, double number) { return b.add(x, b.splatLike(x, number)); }

// --- Activations ---

LogicalResult opRelu(Node &n) {
  Value x = n.input(0);
  return n.set(n.isFloat(0) ? atLeast(n.b, x, 0.0) : n.b.max(x, n.b.splatLike(x, 0)));
}

Value opMish(Build &b, Node &, Value x) { return b.mul(x, b.unary<TanhOp>(b.unary<SoftplusOp>(x))); }
Value opSoftsign(Build &b, Node &, Value x) { return b.div(x, plus(b, b.unary<AbsOp>(x), 1.0)); }

Value opLeakyRelu(Build &b, Node &n, Value x) {
  return b.select(positive(b, x), x, b.scale(x, n.attrFloat("alpha", 0.01)));
}

/// gamma * alpha * (exp(x * inner) - 1) up to 0, whose slope counts there, and gamma * x above. The exponential sees
/// only numbers up to 0, so that neither branch overflows.
Value exponentialUnit(Build &b, Value x, double alpha, double gamma, double inner) {
  Value below = compareWith(b, CompareDirection::Le, x, 0.0);
  Value safe = b.select(below, x, b.splatLike(x, 0.0));
  Value curve = b.scale(b.unary<Expm1Op>(inner == 1.0 ? safe : b.scale(safe, inner)), alpha * gamma);
  return b.select(below, curve, gamma == 1.0 ? x : b.scale(x, gamma));
}
Value opElu(Build &b, Node &n, Value x) { return exponentialUnit(b, x, n.attrFloat("alpha", 1.0), 1.0, 1.0); }
Value opSelu(Build &b, Node &n, Value x) {
  return exponentialUnit(b, x, n.attrFloat("alpha", 1.67326319217681884765625),
                         n.attrFloat("gamma", 1.05070102214813232421875), 1.0);
}
Value opCelu(Build &b, Node &n, Value x) {
  const double alpha = n.attrFloat("alpha", 1.0);
  return exponentialUnit(b, x, alpha, 1.0, 1.0 / alpha);
}

Value opThresholdedRelu(Build &b, Node &n, Value x) {
  return b.select(compareWith(b, CompareDirection::Gt, x, n.attrFloat("alpha", 1.0)), x, b.splatLike(x, 0.0));
}

Value hardSigmoid(Build &b, Value x, double alpha, double beta) {
  return atMost(b, atLeast(b, plus(b, b.scale(x, alpha), beta), 0.0), 1.0);
}
Value opHardSigmoid(Build &b, Node &n, Value x) {
  return hardSigmoid(b, x, n.attrFloat("alpha", 0.2), n.attrFloat("beta", 0.5));
}
Value opHardSwish(Build &b, Node &, Value x) { return b.mul(x, hardSigmoid(b, x, 1.0 / 6.0, 0.5)); }

LogicalResult opGelu(Node &n) {
  if (!n.isFloat(0))
    return n.fail("input 0 is not floating point");
  const std::string form = n.attrString("approximate", "none");
  if (form != "none" && form != "tanh")
    return n.fail("approximate is '" + form + "', expected 'none' or 'tanh'");
  return n.set(n.b.gelu(form == "tanh" ? GeluForm::Tanh : GeluForm::Exact, n.input(0)));
}

LogicalResult opPRelu(Node &n) {
  auto shape = broadcastShape(n.shape(0), n.shape(1));
  if (!shape || ArrayRef<int64_t>(*shape) != n.shape(0) || !n.isFloat(0) || n.element(0) != n.element(1))
    return n.fail("slope does not broadcast to the input");
  Value x = n.input(0);
  return n.set(n.b.select(positive(n.b, x), x, n.b.mul(x, n.inputTo(1, *shape))));
}

// --- Functions of mathematics ---

Value opReciprocal(Build &b, Node &, Value x) { return b.div(b.splatLike(x, 1.0), x); }
Value opCeil(Build &b, Node &, Value x) { return b.neg(b.unary<FloorOp>(b.neg(x))); }
Value opTan(Build &b, Node &, Value x) { return b.div(b.unary<SinOp>(x), b.unary<CosOp>(x)); }

/// (expm1(x) - expm1(-x)) / 2: the terms have opposite signs.
Value sinh(Build &b, Value x) { return b.scale(b.sub(b.unary<Expm1Op>(x), b.unary<Expm1Op>(b.neg(x))), 0.5); }
Value opSinh(Build &b, Node &, Value x) { return sinh(b, x); }
/// 1 + 2 sinh(x/2)^2 near 0, whose slope does not cancel; (exp(x) + exp(-x)) / 2 elsewhere, whose slope does not
/// overflow before the result does.
Value opCosh(Build &b, Node &, Value x) {
  Value zero = b.splatLike(x, 0.0), near = compareWith(b, CompareDirection::Lt, b.unary<AbsOp>(x), 1.0);
  Value half = sinh(b, b.scale(b.select(near, x, zero), 0.5));
  Value inner = plus(b, b.scale(b.mul(half, half), 2.0), 1.0);
  Value outer = b.select(near, zero, x);
  outer = b.scale(b.add(b.exp(outer), b.exp(b.neg(outer))), 0.5);
  return b.select(near, inner, outer);
}

/// From here on a square would overflow, and 1 beside it does not count.
constexpr double kHuge = 1e10;

/// log(2 x) of what is huge, `function(x)` of the rest.
template <typename Function> Value unlessHuge(Build &b, Value x, Function function) {
  Value huge = compareWith(b, CompareDirection::Gt, x, kHuge), one = b.splatLike(x, 1.0);
  Value logarithm = plus(b, b.unary<LogOp>(b.select(huge, x, one)), std::log(2.0));
  return b.select(huge, logarithm, function(b.select(huge, one, x)));
}

/// Of the magnitude y: log1p(y + y^2 / (1 + sqrt(1 + y^2))), with the sign of x.
Value opAsinh(Build &b, Node &, Value x) {
  Value negative = compareWith(b, CompareDirection::Lt, x, 0.0);
  Value result = unlessHuge(b, b.select(negative, b.neg(x), x), [&](Value y) {
    Value square = b.mul(y, y);
    Value root = b.unary<SqrtOp>(plus(b, square, 1.0));
    return b.unary<Log1pOp>(b.add(y, b.div(square, plus(b, root, 1.0))));
  });
  return b.select(negative, b.neg(result), result);
}

/// With t = x - 1: log1p(t + sqrt(t) sqrt(t + 2)).
Value opAcosh(Build &b, Node &, Value x) {
  return unlessHuge(b, x, [&](Value y) {
    Value t = plus(b, y, -1.0);
    return b.unary<Log1pOp>(b.add(t, b.mul(b.unary<SqrtOp>(t), b.unary<SqrtOp>(plus(b, t, 2.0)))));
  });
}

/// (log1p(x) - log1p(-x)) / 2: the terms have opposite signs.
Value opAtanh(Build &b, Node &, Value x) {
  return b.scale(b.sub(b.unary<Log1pOp>(x), b.unary<Log1pOp>(b.neg(x))), 0.5);
}

Value opIsNaN(Build &b, Node &, Value x) { return b.compare(CompareDirection::Ne, x, x); }

Value opIsInf(Build &b, Node &n, Value x) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool up = n.attr("detect_positive", 1) != 0, down = n.attr("detect_negative", 1) != 0;
  if (up && down)
    return compareWith(b, CompareDirection::Eq, b.unary<AbsOp>(x), infinity);
  if (!up && !down)
    return b.compare(CompareDirection::Lt, x, x);
  return compareWith(b, CompareDirection::Eq, x, up ? infinity : -infinity);
}

LogicalResult opSign(Node &n) {
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  Build &b = n.b;
  Value x = n.input(0), zero = b.splatLike(x, 0.0);
  if (n.element(0).isUnsignedInteger())
    return n.set(b.select(positive(b, x), b.splatLike(x, 1.0), zero));
  Value negative = b.select(b.compare(CompareDirection::Lt, x, zero), b.splatLike(x, -1.0), zero);
  return n.set(b.select(positive(b, x), b.splatLike(x, 1.0), negative));
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "Acos", kAny, kNew, 1, ofFloat<simple<AcosOp>>},
    {"", "Acosh", kAny, kNew, 1, ofFloat<opAcosh>},
    {"", "Asin", kAny, kNew, 1, ofFloat<simple<AsinOp>>},
    {"", "Asinh", kAny, kNew, 1, ofFloat<opAsinh>},
    {"", "Atan", kAny, kNew, 1, ofFloat<simple<AtanOp>>},
    {"", "Atanh", kAny, kNew, 1, ofFloat<opAtanh>},
    {"", "Ceil", kAny, kNew, 1, ofFloat<opCeil>},
    {"", "Celu", 12, kNew, 1, ofFloat<opCelu>},
    {"", "Cos", kAny, kNew, 1, ofFloat<simple<CosOp>>},
    {"", "Cosh", kAny, kNew, 1, ofFloat<opCosh>},
    {"", "Elu", kAny, kNew, 1, ofFloat<opElu>},
    {"", "Erf", kAny, kNew, 1, ofFloat<simple<ErfOp>>},
    {"", "Exp", kAny, kNew, 1, ofFloat<simple<ExpOp>>},
    {"", "Floor", kAny, kNew, 1, ofFloat<simple<FloorOp>>},
    {"", "Gelu", 20, kNew, 1, opGelu},
    {"", "HardSigmoid", kAny, kNew, 1, ofFloat<opHardSigmoid>},
    {"", "HardSwish", 14, kNew, 1, ofFloat<opHardSwish>},
    {"", "IsInf", kAny, kNew, 1, ofFloat<opIsInf>},
    {"", "IsNaN", kAny, kNew, 1, ofFloat<opIsNaN>},
    {"", "LeakyRelu", kAny, kNew, 1, ofFloat<opLeakyRelu>},
    {"", "Log", kAny, kNew, 1, ofFloat<simple<LogOp>>},
    {"", "Mish", 18, kNew, 1, ofFloat<opMish>},
    {"", "PRelu", kAny, kNew, 2, opPRelu},
    {"", "Reciprocal", kAny, kNew, 1, ofFloat<opReciprocal>},
    {"", "Relu", kAny, kNew, 1, opRelu},
    {"", "Round", kAny, kNew, 1, ofFloat<simple<RoundOp>>},
    {"", "Selu", kAny, kNew, 1, ofFloat<opSelu>},
    {"", "Sigmoid", kAny, kNew, 1, ofFloat<simple<SigmoidOp>>},
    {"", "Sign", kAny, kNew, 1, opSign},
    {"", "Sin", kAny, kNew, 1, ofFloat<simple<SinOp>>},
    {"", "Sinh", kAny, kNew, 1, ofFloat<opSinh>},
    {"", "Softplus", kAny, kNew, 1, ofFloat<simple<SoftplusOp>>},
    {"", "Softsign", kAny, kNew, 1, ofFloat<opSoftsign>},
    {"", "Sqrt", kAny, kNew, 1, ofFloat<simple<SqrtOp>>},
    {"", "Tan", kAny, kNew, 1, ofFloat<opTan>},
    {"", "Tanh", kAny, kNew, 1, ofFloat<simple<TanhOp>>},
    {"", "ThresholdedRelu", kAny, kNew, 1, ofFloat<opThresholdedRelu>},
};
} // namespace

ArrayRef<OpRow> activationOps() { return kRows; }

} // namespace tessera::onnx_import
