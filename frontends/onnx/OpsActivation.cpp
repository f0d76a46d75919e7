//===- OpsActivation.cpp - functions of one number -------------------------===//
//
// Activations and the functions of mathematics, in forms that neither overflow
// nor cancel. Where a function has a corner its slope is PyTorch's: one side of
// a `select` takes all of the gradient (docs/differentiate.md has the table).
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
using frontend::compareWith;
using frontend::exponentialUnit;
using frontend::plus;

/// `function(builder, node, x)` of a floating-point input.
template <Value (*function)(Build &, Node &, Value)> LogicalResult ofFloat(Node &n) {
  if (!n.isFloat(0))
    return n.fail("input 0 is not floating point");
  return n.set(function(n.b, n, n.input(0)));
}

template <typename Op> Value simple(Build &b, Node &, Value x) { return b.unary<Op>(x); }
template <Value (*function)(Build &, Value)> Value shared(Build &b, Node &, Value x) { return function(b, x); }

Value positive(Build &b, Value x) { return compareWith(b, CompareDirection::Gt, x, 0.0); }

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
Value opIsInf(Build &b, Node &n, Value x) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool up = n.attr("detect_positive", 1) != 0, down = n.attr("detect_negative", 1) != 0;
  if (up && down)
    return frontend::isInfinite(b, x);
  if (!up && !down)
    return b.compare(CompareDirection::Lt, x, x);
  return compareWith(b, CompareDirection::Eq, x, up ? infinity : -infinity);
}

LogicalResult opSign(Node &n) {
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  return n.set(frontend::sign(n.b, n.input(0)));
}

const OpRow kActivationOps[] = {
    {"", "Acos", kAny, kNew, 1, ofFloat<simple<AcosOp>>},
    {"", "Acosh", kAny, kNew, 1, ofFloat<shared<frontend::acosh>>},
    {"", "Asin", kAny, kNew, 1, ofFloat<simple<AsinOp>>},
    {"", "Asinh", kAny, kNew, 1, ofFloat<shared<frontend::asinh>>},
    {"", "Atan", kAny, kNew, 1, ofFloat<simple<AtanOp>>},
    {"", "Atanh", kAny, kNew, 1, ofFloat<shared<frontend::atanh>>},
    {"", "Ceil", kAny, kNew, 1, ofFloat<shared<frontend::ceil>>},
    {"", "Celu", 12, kNew, 1, ofFloat<opCelu>},
    {"", "Cos", kAny, kNew, 1, ofFloat<simple<CosOp>>},
    {"", "Cosh", kAny, kNew, 1, ofFloat<shared<frontend::cosh>>},
    {"", "Elu", kAny, kNew, 1, ofFloat<opElu>},
    {"", "Erf", kAny, kNew, 1, ofFloat<simple<ErfOp>>},
    {"", "Exp", kAny, kNew, 1, ofFloat<simple<ExpOp>>},
    {"", "Floor", kAny, kNew, 1, ofFloat<simple<FloorOp>>},
    {"", "Gelu", 20, kNew, 1, opGelu},
    {"", "HardSigmoid", kAny, kNew, 1, ofFloat<opHardSigmoid>},
    {"", "HardSwish", 14, kNew, 1, ofFloat<opHardSwish>},
    {"", "IsInf", kAny, kNew, 1, ofFloat<opIsInf>},
    {"", "IsNaN", kAny, kNew, 1, ofFloat<shared<frontend::isNaN>>},
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
    {"", "Sinh", kAny, kNew, 1, ofFloat<shared<frontend::sinh>>},
    {"", "Softplus", kAny, kNew, 1, ofFloat<simple<SoftplusOp>>},
    {"", "Softsign", kAny, kNew, 1, ofFloat<opSoftsign>},
    {"", "Sqrt", kAny, kNew, 1, ofFloat<simple<SqrtOp>>},
    {"", "Tan", kAny, kNew, 1, ofFloat<shared<frontend::tan>>},
    {"", "Tanh", kAny, kNew, 1, ofFloat<simple<TanhOp>>},
    {"", "ThresholdedRelu", kAny, kNew, 1, ofFloat<opThresholdedRelu>},
};
} // namespace

ArrayRef<OpRow> activationOps() { return kActivationOps; }

} // namespace tessera::onnx_import
