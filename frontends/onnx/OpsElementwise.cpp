//===- OpsElementwise.cpp - arithmetic, comparison and activation ops -----===//

#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Proto.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
LogicalResult needFloat(Node &n, int i = 0) {
  if (n.isFloat(i))
    return success();
  return n.fail("input " + Twine(i) + " is not floating point");
}

// --- Unary ---

template <typename Op> LogicalResult unary(Node &n) {
  if (failed(needFloat(n)))
    return failure();
  return n.set(n.b.unary<Op>(n.input(0)));
}

template <typename Op> LogicalResult numericUnary(Node &n) {
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  return n.set(n.b.unary<Op>(n.input(0)));
}

Value sigmoid(Build &b, Value x) {
  // 0.5 * tanh(0.5 x) + 0.5 neither overflows nor divides.
  return b.add(b.scale(b.unary<TanhOp>(b.scale(x, 0.5)), 0.5), b.splatLike(x, 0.5));
}

/// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)).
Value softplus(Build &b, Value x) {
  Value tail = b.unary<LogOp>(b.add(b.exp(b.neg(b.unary<AbsOp>(x))), b.splatLike(x, 1.0)));
  return b.add(b.max(x, b.splatLike(x, 0.0)), tail);
}

Value minimum(Build &b, Value x, Value y) {
  if (tensorType(x).getElementType().isInteger(1))
    return b.mul(x, y);
  return b.neg(b.max(b.neg(x), b.neg(y)));
}

Value positive(Build &b, Value x) { return b.compare(CompareDirection::Gt, x, b.splatLike(x, 0.0)); }

/// `function(builder, node, x)` of a floating-point input.
template <Value (*function)(Build &, Node &, Value)> LogicalResult activation(Node &n) {
  if (failed(needFloat(n)))
    return failure();
  return n.set(function(n.b, n, n.input(0)));
}

Value opSigmoid(Build &b, Node &, Value x) { return sigmoid(b, x); }
Value opSoftplus(Build &b, Node &, Value x) { return softplus(b, x); }
Value opReciprocal(Build &b, Node &, Value x) { return b.div(b.splatLike(x, 1.0), x); }
Value opCeil(Build &b, Node &, Value x) { return b.neg(b.unary<FloorOp>(b.neg(x))); }
Value opMish(Build &b, Node &, Value x) { return b.mul(x, b.unary<TanhOp>(softplus(b, x))); }
Value opSoftsign(Build &b, Node &, Value x) { return b.div(x, b.add(b.unary<AbsOp>(x), b.splatLike(x, 1.0))); }
Value opTan(Build &b, Node &, Value x) { return b.div(b.unary<SinOp>(x), b.unary<CosOp>(x)); }
Value opSinh(Build &b, Node &, Value x) { return b.scale(b.sub(b.exp(x), b.exp(b.neg(x))), 0.5); }
Value opCosh(Build &b, Node &, Value x) { return b.scale(b.add(b.exp(x), b.exp(b.neg(x))), 0.5); }
Value opLeakyRelu(Build &b, Node &n, Value x) {
  return b.select(positive(b, x), x, b.scale(x, n.attrFloat("alpha", 0.01)));
}
/// alpha * (exp(x) - 1) below 0; the exponential sees only the negative part, so neither branch overflows.
Value expBelowZero(Build &b, Value x, double alpha, double gamma, double inner) {
  Value below = b.scale(minimum(b, x, b.splatLike(x, 0.0)), inner);
  Value curve = b.scale(b.sub(b.exp(below), b.splatLike(x, 1.0)), alpha * gamma);
  return b.select(positive(b, x), gamma == 1.0 ? x : b.scale(x, gamma), curve);
}
Value opElu(Build &b, Node &n, Value x) { return expBelowZero(b, x, n.attrFloat("alpha", 1.0), 1.0, 1.0); }
Value opSelu(Build &b, Node &n, Value x) {
  return expBelowZero(b, x, n.attrFloat("alpha", 1.67326319217681884765625),
                      n.attrFloat("gamma", 1.05070102214813232421875), 1.0);
}
Value opCelu(Build &b, Node &n, Value x) {
  const double alpha = n.attrFloat("alpha", 1.0);
  return expBelowZero(b, x, alpha, 1.0, 1.0 / alpha);
}
Value opThresholdedRelu(Build &b, Node &n, Value x) {
  Value above = b.compare(CompareDirection::Gt, x, b.splatLike(x, n.attrFloat("alpha", 1.0)));
  return b.select(above, x, b.splatLike(x, 0.0));
}
Value clamp01(Build &b, Value x) { return minimum(b, b.max(x, b.splatLike(x, 0.0)), b.splatLike(x, 1.0)); }
Value hardSigmoid(Build &b, Value x, double alpha, double beta) {
  return clamp01(b, b.add(b.scale(x, alpha), b.splatLike(x, beta)));
}
Value opHardSigmoid(Build &b, Node &n, Value x) {
  return hardSigmoid(b, x, n.attrFloat("alpha", 0.2), n.attrFloat("beta", 0.5));
}
Value opHardSwish(Build &b, Node &, Value x) { return b.mul(x, hardSigmoid(b, x, 1.0 / 6.0, 0.5)); }
Value geluErf(Build &b, Value x) {
  Value erf = b.unary<ErfOp>(b.scale(x, std::sqrt(0.5)));
  return b.mul(b.scale(x, 0.5), b.add(erf, b.splatLike(x, 1.0)));
}
Value geluTanh(Build &b, Value x) {
  Value cube = b.mul(b.mul(x, x), x);
  Value inner = b.scale(b.add(x, b.scale(cube, 0.044715)), std::sqrt(2.0 / M_PI));
  return b.mul(b.scale(x, 0.5), b.add(b.unary<TanhOp>(inner), b.splatLike(x, 1.0)));
}
LogicalResult opGelu(Node &n) {
  if (failed(needFloat(n)))
    return failure();
  const std::string form = n.attrString("approximate", "none");
  if (form != "none" && form != "tanh")
    return n.fail("approximate is '" + form + "', expected 'none' or 'tanh'");
  return n.set(form == "tanh" ? geluTanh(n.b, n.input(0)) : geluErf(n.b, n.input(0)));
}

LogicalResult opRelu(Node &n) { return n.set(n.b.max(n.input(0), n.b.splatLike(n.input(0), 0.0))); }

LogicalResult opSign(Node &n) {
  if (failed(needFloat(n)))
    return failure();
  Value x = n.input(0), zero = n.b.splatLike(x, 0.0);
  Value negative = n.b.select(n.b.compare(CompareDirection::Lt, x, zero), n.b.splatLike(x, -1.0), zero);
  return n.set(n.b.select(positive(n.b, x), n.b.splatLike(x, 1.0), negative));
}

LogicalResult opNot(Node &n) {
  if (!n.element(0).isInteger(1))
    return n.fail("input is not boolean");
  return n.set(n.b.compare(CompareDirection::Eq, n.input(0), n.b.splatLike(n.input(0), 0.0)));
}

LogicalResult opIsNaN(Node &n) {
  if (failed(needFloat(n)))
    return failure();
  return n.set(n.b.compare(CompareDirection::Ne, n.input(0), n.input(0)));
}

LogicalResult opPRelu(Node &n) {
  auto shape = Node::broadcastShape(n.shape(0), n.shape(1));
  if (!shape || ArrayRef<int64_t>(*shape) != n.shape(0) || !n.isFloat(0) || n.element(0) != n.element(1))
    return n.fail("slope does not broadcast to the input");
  Value x = n.input(0);
  return n.set(n.b.select(positive(n.b, x), x, n.b.mul(x, n.inputTo(1, *shape))));
}

// --- Binary ---

/// Broadcasts inputs 0 and 1 to their common shape.
LogicalResult both(Node &n, Value &x, Value &y) {
  if (n.element(0) != n.element(1))
    return n.fail("inputs have different element types");
  auto shape = Node::broadcastShape(n.shape(0), n.shape(1));
  if (!shape)
    return n.fail("shapes " + Node::shapeText(n.shape(0)) + " and " + Node::shapeText(n.shape(1)) +
                  " do not broadcast");
  x = n.inputTo(0, *shape);
  y = n.inputTo(1, *shape);
  return success();
}

template <Value (Build::*make)(Value, Value)> LogicalResult binary(Node &n) {
  Value x, y;
  if (failed(both(n, x, y)))
    return failure();
  if (n.element(0).isInteger(1))
    return n.fail("boolean inputs");
  return n.set((n.b.*make)(x, y));
}

template <CompareDirection direction> LogicalResult comparison(Node &n) {
  Value x, y;
  if (failed(both(n, x, y)))
    return failure();
  return n.set(n.b.compare(direction, x, y));
}

enum class Logic { And, Or, Xor };
template <Logic logic> LogicalResult logical(Node &n) {
  Value x, y;
  if (failed(both(n, x, y)))
    return failure();
  if (!n.element(0).isInteger(1))
    return n.fail("inputs are not boolean");
  if (logic == Logic::Xor)
    return n.set(n.b.compare(CompareDirection::Ne, x, y));
  return n.set(logic == Logic::And ? n.b.mul(x, y) : n.b.max(x, y));
}

LogicalResult opMod(Node &n) {
  Value x, y;
  if (failed(both(n, x, y)))
    return failure();
  Build &b = n.b;
  if (n.element(0).isInteger(1))
    return n.fail("boolean inputs");
  if (n.isFloat(0)) {
    if (n.attr("fmod", 0) == 0)
      return n.fail("floating-point inputs need fmod = 1");
    Value quotient = b.div(x, y), zero = b.splatLike(x, 0.0);
    Value truncated = b.select(b.compare(CompareDirection::Lt, quotient, zero),
                               b.neg(b.unary<FloorOp>(b.neg(quotient))), b.unary<FloorOp>(quotient));
    return n.set(b.sub(x, b.mul(truncated, y)));
  }
  Value remainder = b.sub(x, b.mul(b.div(x, y), y)), zero = b.splatLike(x, 0.0);
  if (n.attr("fmod", 0) != 0 || n.element(0).isUnsignedInteger())
    return n.set(remainder);
  // The sign follows the divisor.
  Value differs = b.compare(CompareDirection::Ne, b.compare(CompareDirection::Lt, remainder, zero),
                            b.compare(CompareDirection::Lt, y, zero));
  Value adjust = b.mul(differs, b.compare(CompareDirection::Ne, remainder, zero));
  return n.set(b.select(adjust, b.add(remainder, y), remainder));
}

LogicalResult opPow(Node &n) {
  auto shape = Node::broadcastShape(n.shape(0), n.shape(1));
  if (!shape)
    return n.fail("shapes " + Node::shapeText(n.shape(0)) + " and " + Node::shapeText(n.shape(1)) +
                  " do not broadcast");
  Value x = n.inputTo(0, *shape);
  std::optional<double> exponent = n.constant(1) ? n.constant(1)->uniform() : std::nullopt;
  if (exponent == 2.0)
    return n.set(n.b.mul(x, x));
  if (exponent == 3.0)
    return n.set(n.b.mul(n.b.mul(x, x), x));
  if (exponent == 1.0)
    return n.set(x);
  if (failed(needFloat(n)))
    return failure();
  if (exponent == 0.5)
    return n.set(n.b.unary<SqrtOp>(x));
  return n.set(n.b.pow(x, n.b.convert(n.inputTo(1, *shape), n.element(0))));
}

enum class Fold { Max, Min, Sum, Mean };
template <Fold kind> LogicalResult variadic(Node &n) {
  SmallVector<int64_t> shape(n.shape(0));
  for (int i = 1; i < n.inputCount(); ++i) {
    if (!n.has(i) || n.element(i) != n.element(0))
      return n.fail("inputs have different element types");
    auto common = Node::broadcastShape(shape, n.shape(i));
    if (!common)
      return n.fail("shapes do not broadcast");
    shape = *common;
  }
  if (kind == Fold::Mean && failed(needFloat(n)))
    return failure();
  Value result = n.inputTo(0, shape);
  for (int i = 1; i < n.inputCount(); ++i) {
    Value next = n.inputTo(i, shape);
    result = kind == Fold::Max   ? n.b.max(result, next)
             : kind == Fold::Min ? minimum(n.b, result, next)
                                 : n.b.add(result, next);
  }
  return n.set(kind == Fold::Mean ? n.b.scale(result, 1.0 / n.inputCount()) : result);
}

LogicalResult opClip(Node &n) {
  Value x = n.input(0);
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  for (int i : {1, 2}) {
    if (!n.has(i))
      continue;
    if (n.type(i).getNumElements() != 1 || n.element(i) != n.element(0))
      return n.fail("bound is not a scalar of the input's element type");
    Value bound = n.constant(i) ? n.b.splatLike(x, n.constant(i)->number(0))
                                : n.b.broadcastTo(n.b.reshape(n.input(i), {}), n.shape(0));
    x = i == 1 ? n.b.max(x, bound) : minimum(n.b, x, bound);
  }
  return n.set(x);
}

LogicalResult opWhere(Node &n) {
  if (!n.element(0).isInteger(1) || n.element(1) != n.element(2))
    return n.fail("expected a boolean condition and two values of one element type");
  auto shape = Node::broadcastShape(n.shape(1), n.shape(2));
  if (shape)
    shape = Node::broadcastShape(*shape, n.shape(0));
  if (!shape)
    return n.fail("shapes do not broadcast");
  return n.set(n.b.select(n.inputTo(0, *shape), n.inputTo(1, *shape), n.inputTo(2, *shape)));
}

// --- Conversion ---

LogicalResult opCast(Node &n) {
  Type type = elementType(n.b.builder.getContext(), static_cast<int32_t>(n.attr("to", 0)));
  if (!type)
    return n.fail("casts to " + dataTypeName(static_cast<int32_t>(n.attr("to", 0))) + ", which is not supported");
  return n.set(n.b.convert(n.input(0), type));
}

LogicalResult opCastLike(Node &n) { return n.set(n.b.convert(n.input(0), n.element(1))); }

LogicalResult opIdentity(Node &n) { return n.set(n.inputs[0]); }

/// What tools/export_torch.py writes for a detach: the value, and no gradient.
LogicalResult opStopGradient(Node &n) {
  if (!isa<FloatType>(n.element(0)))
    return n.set(n.inputs[0]);
  return n.set(StopGradientOp::create(n.b.builder, n.b.loc, n.input(0)));
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "Abs", kAny, kNew, 1, numericUnary<AbsOp>},
    {"", "Add", kAny, kNew, 2, binary<&Build::add>},
    {"", "And", kAny, kNew, 2, logical<Logic::And>},
    {"", "Cast", kAny, kNew, 1, opCast},
    {"", "CastLike", 15, kNew, 2, opCastLike},
    {"", "Ceil", kAny, kNew, 1, activation<opCeil>},
    {"", "Celu", 12, kNew, 1, activation<opCelu>},
    {"", "Clip", kAny, kNew, 1, opClip},
    {"", "Cos", kAny, kNew, 1, unary<CosOp>},
    {"", "Cosh", kAny, kNew, 1, activation<opCosh>},
    {"", "Div", kAny, kNew, 2, binary<&Build::div>},
    {"", "Elu", kAny, kNew, 1, activation<opElu>},
    {"", "Equal", kAny, kNew, 2, comparison<CompareDirection::Eq>},
    {"", "Erf", kAny, kNew, 1, unary<ErfOp>},
    {"", "Exp", kAny, kNew, 1, unary<ExpOp>},
    {"", "Floor", kAny, kNew, 1, unary<FloorOp>},
    {"", "Gelu", 20, kNew, 1, opGelu},
    {"", "Greater", kAny, kNew, 2, comparison<CompareDirection::Gt>},
    {"", "GreaterOrEqual", 12, kNew, 2, comparison<CompareDirection::Ge>},
    {"", "HardSigmoid", kAny, kNew, 1, activation<opHardSigmoid>},
    {"", "HardSwish", 14, kNew, 1, activation<opHardSwish>},
    {"", "Identity", kAny, kNew, 1, opIdentity},
    {"", "IsNaN", kAny, kNew, 1, opIsNaN},
    {"", "LeakyRelu", kAny, kNew, 1, activation<opLeakyRelu>},
    {"", "Less", kAny, kNew, 2, comparison<CompareDirection::Lt>},
    {"", "LessOrEqual", 12, kNew, 2, comparison<CompareDirection::Le>},
    {"", "Log", kAny, kNew, 1, unary<LogOp>},
    {"", "Max", kAny, kNew, 1, variadic<Fold::Max>},
    {"", "Mean", kAny, kNew, 1, variadic<Fold::Mean>},
    {"", "Min", kAny, kNew, 1, variadic<Fold::Min>},
    {"", "Mish", 18, kNew, 1, activation<opMish>},
    {"", "Mod", kAny, kNew, 2, opMod},
    {"", "Mul", kAny, kNew, 2, binary<&Build::mul>},
    {"", "Neg", kAny, kNew, 1, numericUnary<NegOp>},
    {"", "Not", kAny, kNew, 1, opNot},
    {"", "Or", kAny, kNew, 2, logical<Logic::Or>},
    {"", "PRelu", kAny, kNew, 2, opPRelu},
    {"", "Pow", kAny, kNew, 2, opPow},
    {"", "Reciprocal", kAny, kNew, 1, activation<opReciprocal>},
    {"", "Relu", kAny, kNew, 1, opRelu},
    {"", "Selu", kAny, kNew, 1, activation<opSelu>},
    {"", "Sigmoid", kAny, kNew, 1, activation<opSigmoid>},
    {"", "Sign", kAny, kNew, 1, opSign},
    {"", "Sin", kAny, kNew, 1, unary<SinOp>},
    {"", "Sinh", kAny, kNew, 1, activation<opSinh>},
    {"", "Softplus", kAny, kNew, 1, activation<opSoftplus>},
    {"", "Softsign", kAny, kNew, 1, activation<opSoftsign>},
    {"", "Sqrt", kAny, kNew, 1, unary<SqrtOp>},
    {"", "Sub", kAny, kNew, 2, binary<&Build::sub>},
    {"", "Sum", kAny, kNew, 1, variadic<Fold::Sum>},
    {"", "Tan", kAny, kNew, 1, activation<opTan>},
    {"", "Tanh", kAny, kNew, 1, unary<TanhOp>},
    {"", "ThresholdedRelu", kAny, kNew, 1, activation<opThresholdedRelu>},
    {"", "Where", kAny, kNew, 3, opWhere},
    {"", "Xor", kAny, kNew, 2, logical<Logic::Xor>},
    {"tessera", "StopGradient", 1, 1, 1, opStopGradient},
};
} // namespace

ArrayRef<OpRow> elementwiseOps() { return kRows; }

} // namespace tessera::onnx_import
