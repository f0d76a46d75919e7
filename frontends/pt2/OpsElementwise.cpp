//===- OpsElementwise.cpp - arithmetic, comparisons, activations, conversion -===//

#include "frontends/pt2/Call.h"
#include "frontends/pt2/Promote.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Unary ---

/// Of floats; integers and booleans become the result's type first, as PyTorch does.
template <typename Make> LogicalResult unary(Call &c, Make make) {
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail("the result is not floating point");
  return c.set(make(c.b, c.b.convert(c.value("self"), element)));
}
template <typename Op> LogicalResult simple(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.unary<Op>(x); });
}
/// Keeps the type.
template <typename Op> LogicalResult numeric(Call &c) {
  if (c.element("self").isInteger(1))
    return c.fail("boolean input");
  return c.set(c.b.unary<Op>(c.value("self")));
}

Value whole(Build &b, Value x, double value) { return b.splatLike(x, value); }
/// `x` within bounds; its slope is 0 where it reaches one.
Value atLeast(Build &b, Value x, double bound) {
  return b.select(b.compare(CompareDirection::Le, x, whole(b, x, bound)), whole(b, x, bound), x);
}
Value atMost(Build &b, Value x, double bound) {
  return b.select(b.compare(CompareDirection::Ge, x, whole(b, x, bound)), whole(b, x, bound), x);
}
Value minimum(Build &b, Value x, Value y) { return b.neg(b.max(b.neg(x), b.neg(y))); }

LogicalResult opRelu(Call &c) {
  if (c.element("self").isInteger(1))
    return c.fail("boolean input");
  return c.set(atLeast(c.b, c.value("self"), 0));
}
LogicalResult opSilu(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.mul(x, b.unary<SigmoidOp>(x)); });
}
LogicalResult opReciprocal(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.div(whole(b, x, 1), x); });
}
LogicalResult opLogSigmoid(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.neg(b.unary<SoftplusOp>(b.neg(x))); });
}
LogicalResult opMish(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.mul(x, b.unary<TanhOp>(b.unary<SoftplusOp>(x))); });
}
LogicalResult opSoftplus(Call &c) {
  // Above the threshold PyTorch takes beta * x itself, which softplus is by then: to the last bit from 20 on in f32.
  const double beta = c.numberOr("beta", 1), threshold = c.numberOr("threshold", 20);
  if (beta == 0 || threshold < 20)
    return c.fail("beta is 0, or the threshold below 20");
  return unary(c, [&](Build &b, Value x) { return b.scale(b.unary<SoftplusOp>(b.scale(x, beta)), 1 / beta); });
}
LogicalResult opGelu(Call &c) {
  const std::string form = c.text("approximate", "none");
  if (form != "none" && form != "tanh")
    return c.fail("approximate is '" + form + "', expected 'none' or 'tanh'");
  return unary(c, [&](Build &b, Value x) { return b.gelu(form == "tanh" ? GeluForm::Tanh : GeluForm::Exact, x); });
}
LogicalResult opLeakyRelu(Call &c) {
  const double slope = c.numberOr("negative_slope", 0.01);
  return unary(c, [&](Build &b, Value x) {
    return b.select(b.compare(CompareDirection::Gt, x, whole(b, x, 0)), x, b.scale(x, slope));
  });
}
/// scale * (x above 0, else alpha * (exp(input * x) - 1)); at 0 it has the slope from below.
LogicalResult exponential(Call &c, double alpha, double scale, double input) {
  return unary(c, [&](Build &b, Value x) {
    Value isAbove = b.compare(CompareDirection::Gt, x, whole(b, x, 0));
    Value below = b.scale(b.unary<Expm1Op>(b.scale(b.select(isAbove, whole(b, x, 0), x), input)), alpha);
    return b.scale(b.select(isAbove, x, below), scale);
  });
}
LogicalResult opElu(Call &c) {
  return exponential(c, c.numberOr("alpha", 1), c.numberOr("scale", 1), c.numberOr("input_scale", 1));
}
LogicalResult opSelu(Call &c) { return exponential(c, 1.6732632423543772848, 1.0507009873554804934, 1); }
LogicalResult opCelu(Call &c) {
  const double alpha = c.numberOr("alpha", 1);
  return alpha == 0 ? c.fail("alpha is 0") : exponential(c, alpha, 1, 1 / alpha);
}
LogicalResult opHardtanh(Call &c) {
  const double least = c.numberOr("min_val", -1), most = c.numberOr("max_val", 1);
  return unary(c, [&](Build &b, Value x) { return atMost(b, atLeast(b, x, least), most); });
}
LogicalResult opRelu6(Call &c) {
  return unary(c, [](Build &b, Value x) { return atMost(b, atLeast(b, x, 0), 6); });
}
LogicalResult opThreshold(Call &c) {
  const double threshold = c.numberOr("threshold", 0), value = c.numberOr("value", 0);
  return unary(c, [&](Build &b, Value x) {
    return b.select(b.compare(CompareDirection::Le, x, whole(b, x, threshold)), whole(b, x, value), x);
  });
}
LogicalResult opHardshrink(Call &c) {
  const double width = c.numberOr("lambd", 0.5);
  return unary(c, [&](Build &b, Value x) {
    Value isSmall = b.compare(CompareDirection::Le, b.unary<AbsOp>(x), whole(b, x, width));
    return b.select(isSmall, whole(b, x, 0), x);
  });
}
LogicalResult opSoftshrink(Call &c) {
  const double width = c.numberOr("lambd", 0.5);
  return unary(c, [&](Build &b, Value x) {
    Value above =
        b.select(b.compare(CompareDirection::Gt, x, whole(b, x, width)), b.sub(x, whole(b, x, width)), whole(b, x, 0));
    return b.select(b.compare(CompareDirection::Lt, x, whole(b, x, -width)), b.add(x, whole(b, x, width)), above);
  });
}
/// One slope, or one for each channel.
LogicalResult opPrelu(Call &c) {
  ArrayRef<int64_t> shape = c.shape("self"), slopes = c.shape("weight");
  const int64_t count = c.type("weight").getNumElements();
  if (c.element("self") != c.element("weight") || slopes.size() > 1 || !c.isFloat("self") ||
      (count != 1 && (shape.size() < 2 || count != shape[1])))
    return c.fail("the slopes do not fit");
  Build &b = c.b;
  Value x = c.value("self");
  Value slope =
      count == 1 ? b.broadcastTo(b.reshape(c.value("weight"), {}), shape) : b.broadcast(c.value("weight"), shape, {1});
  return c.set(b.select(b.compare(CompareDirection::Gt, x, whole(b, x, 0)), x, b.mul(x, slope)));
}
LogicalResult opHardsigmoid(Call &c) {
  return unary(
      c, [](Build &b, Value x) { return atMost(b, atLeast(b, b.scale(b.add(x, whole(b, x, 3)), 1.0 / 6), 0), 1); });
}
LogicalResult opHardswish(Call &c) {
  return unary(c, [](Build &b, Value x) {
    Value gate = atMost(b, atLeast(b, b.add(x, whole(b, x, 3)), 0), 6);
    return b.mul(x, b.scale(gate, 1.0 / 6));
  });
}
LogicalResult opLogicalNot(Call &c) {
  return c.set(c.b.compare(CompareDirection::Eq, c.value("self"), c.b.splatLike(c.value("self"), 0)));
}
LogicalResult opClamp(Call &c) {
  Type element = c.resultElement();
  if (!element || c.isTensor("min") || c.isTensor("max"))
    return c.fail("limits that are tensors are not supported");
  Value x = c.b.convert(c.value("self"), element);
  // A gradient passes where the value is within the limits, these among them.
  if (std::optional<double> least = c.number("min"))
    x = c.b.select(c.b.compare(CompareDirection::Lt, x, whole(c.b, x, *least)), whole(c.b, x, *least), x);
  if (std::optional<double> most = c.number("max"))
    x = c.b.select(c.b.compare(CompareDirection::Gt, x, whole(c.b, x, *most)), whole(c.b, x, *most), x);
  return c.set(x);
}

// --- Binary ---

/// Both operands in an element type and their common shape.
LogicalResult both(Call &c, Type element, Value &x, Value &y) {
  if (!element)
    return c.fail("the operands have no common type that is supported");
  Value operands[2];
  for (auto [place, name] : {std::pair(0, "self"), std::pair(1, "other")}) {
    if (c.isTensor(name))
      operands[place] = c.b.convert(c.value(name), element);
    else if (std::optional<double> value = c.number(name))
      operands[place] = c.b.splat(RankedTensorType::get({}, element), *value);
    else
      return c.fail("'" + Twine(name) + "' is neither a tensor nor a number");
  }
  auto shape = broadcastShape(shapeOf(operands[0]), shapeOf(operands[1]));
  if (!shape)
    return c.fail("shapes " + shapeText(shapeOf(operands[0])) + " and " + shapeText(shapeOf(operands[1])) +
                  " do not broadcast");
  x = c.b.broadcastTo(operands[0], *shape);
  y = c.b.broadcastTo(operands[1], *shape);
  return success();
}

/// In the type of the result; `alpha` scales the second operand.
template <Value (Build::*make)(Value, Value)> LogicalResult binary(Call &c) {
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  if (c.resultElement().isInteger(1))
    return c.fail("boolean operands");
  if (std::optional<double> alpha = c.number("alpha"); alpha && *alpha != 1)
    y = c.b.mul(y, c.b.splatLike(y, *alpha));
  return c.set((c.b.*make)(x, y));
}

LogicalResult opMul(Call &c) {
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  return c.set(c.b.mul(x, y)); // of booleans: and
}

LogicalResult opRsub(Call &c) {
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  if (std::optional<double> alpha = c.number("alpha"); alpha && *alpha != 1)
    x = c.b.mul(x, c.b.splatLike(x, *alpha));
  return c.set(c.b.sub(y, x));
}

LogicalResult opDiv(Call &c) {
  const std::string mode = c.text("rounding_mode", "");
  if (!mode.empty() && mode != "floor" && mode != "trunc")
    return c.fail("rounding_mode is '" + mode + "'");
  if (!mode.empty() && isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("rounded quotients of floats are not supported");
  if (mode.empty() && !isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("the result is not floating point");
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  Value quotient = c.b.div(x, y);
  if (mode != "floor")
    return c.set(quotient);
  // Division of integers goes towards 0: one less where there is a rest and signs differ.
  Value zero = whole(c.b, x, 0), rest = c.b.sub(x, c.b.mul(quotient, y));
  Value differs = c.b.mul(c.b.compare(CompareDirection::Ne, c.b.compare(CompareDirection::Lt, rest, zero),
                                      c.b.compare(CompareDirection::Lt, y, zero)),
                          c.b.compare(CompareDirection::Ne, rest, zero));
  return c.set(c.b.select(differs, c.b.sub(quotient, whole(c.b, x, 1)), quotient));
}

LogicalResult opRemainder(Call &c) {
  Value x, y;
  if (isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("remainders of floats are not supported");
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  Build &b = c.b;
  Value rest = b.sub(x, b.mul(b.div(x, y), y)), zero = whole(b, x, 0);
  Value differs = b.mul(b.compare(CompareDirection::Ne, b.compare(CompareDirection::Lt, rest, zero),
                                  b.compare(CompareDirection::Lt, y, zero)),
                        b.compare(CompareDirection::Ne, rest, zero));
  return c.set(b.select(differs, b.add(rest, y), rest));
}

LogicalResult opMinimum(Call &c) {
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  return c.set(minimum(c.b, x, y));
}

LogicalResult opPow(Call &c) {
  Type element = c.resultElement();
  std::optional<double> exponent = c.number("exponent");
  if (!isa_and_nonnull<FloatType>(element) || !c.isTensor("self"))
    return c.fail("expected a floating-point tensor");
  Value x = c.b.convert(c.value("self"), element);
  if (exponent && *exponent == 2)
    return c.set(c.b.mul(x, x));
  if (exponent && *exponent == 3)
    return c.set(c.b.mul(c.b.mul(x, x), x));
  if (exponent && *exponent == 0.5)
    return c.set(c.b.unary<SqrtOp>(x));
  if (exponent && *exponent == -0.5)
    return c.set(c.b.unary<RsqrtOp>(x));
  Value y = exponent ? c.b.splatLike(x, *exponent) : c.b.convert(c.value("exponent"), element);
  auto shape = broadcastShape(shapeOf(x), shapeOf(y));
  if (!shape)
    return c.fail("shapes do not broadcast");
  return c.set(c.b.pow(c.b.broadcastTo(x, *shape), c.b.broadcastTo(y, *shape)));
}

template <CompareDirection direction> LogicalResult comparison(Call &c) {
  Value x, y;
  if (failed(both(c, promoted(c, "self", "other"), x, y)))
    return failure();
  return c.set(c.b.compare(direction, x, y));
}

enum class Logic { And, Or, Xor };
template <Logic logic> LogicalResult logical(Call &c) {
  Value x, y;
  if (!c.isTensor("other") || !c.element("self").isInteger(1) || !c.element("other").isInteger(1))
    return c.fail("operands are not boolean");
  if (failed(both(c, c.element("self"), x, y)))
    return failure();
  if (logic == Logic::Xor)
    return c.set(c.b.compare(CompareDirection::Ne, x, y));
  return c.set(logic == Logic::And ? c.b.mul(x, y) : c.b.max(x, y));
}

LogicalResult opWhere(Call &c) {
  Type element = c.resultElement();
  if (!element || !c.element("condition").isInteger(1))
    return c.fail("the condition is not boolean");
  Value condition = c.value("condition"), sides[2];
  SmallVector<int64_t> shape(shapeOf(condition));
  for (auto [place, name] : {std::pair(0, "self"), std::pair(1, "other")}) {
    if (c.isTensor(name))
      sides[place] = c.b.convert(c.value(name), element);
    else if (std::optional<double> value = c.number(name))
      sides[place] = c.b.splat(RankedTensorType::get({}, element), *value);
    else
      return c.fail("'" + Twine(name) + "' is neither a tensor nor a number");
    auto common = broadcastShape(shape, shapeOf(sides[place]));
    if (!common)
      return c.fail("shapes do not broadcast");
    shape = *common;
  }
  return c.set(c.b.select(c.b.broadcastTo(condition, shape), c.b.broadcastTo(sides[0], shape),
                          c.b.broadcastTo(sides[1], shape)));
}

LogicalResult opMaskedFill(Call &c) {
  Value x = c.value("self"), mask = c.value("mask");
  auto shape = broadcastShape(shapeOf(x), shapeOf(mask));
  if (!shape || !c.element("mask").isInteger(1))
    return c.fail("the mask is not boolean, or does not broadcast");
  Value filled;
  if (std::optional<double> value = c.number("value"))
    filled = c.b.splat(RankedTensorType::get(*shape, c.element("self")), *value);
  else if (c.isTensor("value") && c.rank("value") == 0)
    filled = c.b.broadcastTo(c.b.convert(c.value("value"), c.element("self")), *shape);
  else
    return c.fail("the value is not a number");
  return c.set(c.b.select(c.b.broadcastTo(mask, *shape), filled, c.b.broadcastTo(x, *shape)));
}

// --- Conversion ---

LogicalResult opTo(Call &c) {
  Type element = c.resultElement();
  if (!element)
    return c.fail("the result's element type is not supported");
  return c.set(c.b.convert(c.value("self"), element));
}
LogicalResult opTypeAs(Call &c) { return c.set(c.b.convert(c.value("self"), c.element("other"))); }
LogicalResult opSame(Call &c) { return c.set(c.value("self")); }
LogicalResult opDetach(Call &c) {
  Value x = c.value("self");
  return c.set(isa<FloatType>(c.element("self")) ? StopGradientOp::create(c.b.builder, c.b.loc, x).getResult() : x);
}

/// In place: of a constant, as torch.tensor() in a module writes it, nothing changes.
LogicalResult opDetachInPlace(Call &c) {
  return c.constant("self") ? c.set(c.value("self")) : c.fail("operators in place are not supported");
}

const OpRow kRows[] = {
    {"aten.abs.default", numeric<AbsOp>},
    {"aten.add.Scalar", binary<&Build::add>},
    {"aten.add.Tensor", binary<&Build::add>},
    {"aten.alias.default", opSame},
    {"aten.bitwise_and.Tensor", logical<Logic::And>, "self,other"},
    {"aten.bitwise_not.default", opLogicalNot},
    {"aten.bitwise_or.Tensor", logical<Logic::Or>, "self,other"},
    {"aten.celu.default", opCelu},
    {"aten.__and__.Tensor", logical<Logic::And>, "self,other"},
    {"aten.__or__.Tensor", logical<Logic::Or>, "self,other"},
    {"aten.clamp.default", opClamp},
    {"aten.clamp_max.default", opClamp},
    {"aten.clamp_min.default", opClamp},
    {"aten.clone.default", opSame},
    {"aten.contiguous.default", opSame},
    {"aten.cos.default", simple<CosOp>},
    {"aten.detach.default", opDetach},
    {"aten.detach_.default", opDetachInPlace},
    {"aten.div.Scalar", opDiv},
    {"aten.div.Scalar_mode", opDiv},
    {"aten.div.Tensor", opDiv},
    {"aten.div.Tensor_mode", opDiv},
    {"aten.elu.default", opElu},
    {"aten.eq.Scalar", comparison<CompareDirection::Eq>},
    {"aten.eq.Tensor", comparison<CompareDirection::Eq>},
    {"aten.erf.default", simple<ErfOp>},
    {"aten.exp.default", simple<ExpOp>},
    {"aten.expm1.default", simple<Expm1Op>},
    {"aten.floor.default", numeric<FloorOp>},
    {"aten.ge.Scalar", comparison<CompareDirection::Ge>},
    {"aten.ge.Tensor", comparison<CompareDirection::Ge>},
    {"aten.gelu.default", opGelu},
    {"aten.gt.Scalar", comparison<CompareDirection::Gt>},
    {"aten.gt.Tensor", comparison<CompareDirection::Gt>},
    {"aten.hardsigmoid.default", opHardsigmoid},
    {"aten.hardshrink.default", opHardshrink},
    {"aten.hardswish.default", opHardswish},
    {"aten.hardtanh.default", opHardtanh},
    {"aten.le.Scalar", comparison<CompareDirection::Le>},
    {"aten.le.Tensor", comparison<CompareDirection::Le>},
    {"aten.leaky_relu.default", opLeakyRelu},
    {"aten.lift_fresh_copy.default", opSame},
    {"aten.log.default", simple<LogOp>},
    {"aten.log1p.default", simple<Log1pOp>},
    {"aten.log_sigmoid.default", opLogSigmoid},
    {"aten.logical_and.default", logical<Logic::And>, "self,other"},
    {"aten.logical_not.default", opLogicalNot},
    {"aten.logical_or.default", logical<Logic::Or>, "self,other"},
    {"aten.logical_xor.default", logical<Logic::Xor>, "self,other"},
    {"aten.lt.Scalar", comparison<CompareDirection::Lt>},
    {"aten.lt.Tensor", comparison<CompareDirection::Lt>},
    {"aten.masked_fill.Scalar", opMaskedFill, "self,mask"},
    {"aten.masked_fill.Tensor", opMaskedFill, "self,mask"},
    {"aten.maximum.default", binary<&Build::max>, "self,other"},
    {"aten.minimum.default", opMinimum, "self,other"},
    {"aten.mish.default", opMish},
    {"aten.mul.Scalar", opMul},
    {"aten.mul.Tensor", opMul},
    {"aten.ne.Scalar", comparison<CompareDirection::Ne>},
    {"aten.ne.Tensor", comparison<CompareDirection::Ne>},
    {"aten.neg.default", numeric<NegOp>},
    {"aten.pow.Tensor_Scalar", opPow},
    {"aten.pow.Tensor_Tensor", opPow, "self,exponent"},
    {"aten.prelu.default", opPrelu, "self,weight"},
    {"aten.reciprocal.default", opReciprocal},
    {"aten.relu.default", opRelu},
    {"aten.relu6.default", opRelu6},
    {"aten.remainder.Scalar", opRemainder},
    {"aten.remainder.Tensor", opRemainder},
    {"aten.rsqrt.default", simple<RsqrtOp>},
    {"aten.rsub.Scalar", opRsub},
    {"aten.rsub.Tensor", opRsub},
    {"aten.selu.default", opSelu},
    {"aten.sigmoid.default", simple<SigmoidOp>},
    {"aten.silu.default", opSilu},
    {"aten.sin.default", simple<SinOp>},
    {"aten.softplus.default", opSoftplus},
    {"aten.softshrink.default", opSoftshrink},
    {"aten.sqrt.default", simple<SqrtOp>},
    {"aten.sub.Scalar", binary<&Build::sub>},
    {"aten.sub.Tensor", binary<&Build::sub>},
    {"aten.tanh.default", simple<TanhOp>},
    {"aten.threshold.default", opThreshold},
    {"aten.to.device", opTo},
    {"aten.to.dtype", opTo},
    {"aten.to.dtype_layout", opTo},
    {"aten._to_copy.default", opTo},
    {"aten.type_as.default", opTypeAs, "self,other"},
    {"aten.where.ScalarOther", opWhere, "condition,self"},
    {"aten.where.ScalarSelf", opWhere, "condition,other"},
    {"aten.where.self", opWhere, "condition,self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> elementwiseOps() { return kRows; }

} // namespace tessera::pt2
