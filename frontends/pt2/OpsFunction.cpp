//===- OpsFunction.cpp - functions of mathematics, rounding, limits ---------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Gamma.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::compareWith;

/// Of floats; integers and booleans become the result's type first, as PyTorch does.
LogicalResult ofFloat(Call &c, llvm::function_ref<Value(Build &, Value)> make) {
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail("the result is not floating point");
  return c.set(c.b.convert(make(c.b, c.b.convert(c.value("self"), computedIn(element))), element));
}
template <typename Op> LogicalResult simple(Call &c) {
  return ofFloat(c, [](Build &b, Value x) { return b.unary<Op>(x); });
}
template <Value (*function)(Build &, Value)> LogicalResult shared(Call &c) { return ofFloat(c, function); }
/// Computed in f64, and as exact as narrower types are.
template <Value (*function)(Build &, Value)> LogicalResult widened(Call &c) {
  Type element = c.resultElement(), wide = c.b.builder.getF64Type();
  if (!isa_and_nonnull<FloatType>(element) || element == wide)
    return c.fail("it is not supported in f64, to whose last places it is not exact: convert what it reads to "
                  "torch.float32");
  return c.set(c.b.convert(function(c.b, c.b.convert(c.value("self"), wide)), element));
}
Value logarithm2(Build &b, Value x) { return b.scale(b.unary<LogOp>(x), 1 / std::log(2.0)); }
Value logarithm10(Build &b, Value x) { return b.scale(b.unary<LogOp>(x), 1 / std::log(10.0)); }
Value exponential2(Build &b, Value x) { return b.exp(b.scale(x, std::log(2.0))); }
Value complementaryErf(Build &b, Value x) { return b.sub(b.splatLike(x, 1), b.unary<ErfOp>(x)); }
Value fraction(Build &b, Value x) { return b.sub(x, frontend::truncate(b, x)); }
Value reciprocal(Build &b, Value x) { return b.div(b.splatLike(x, 1), x); }

Value radians(Build &b, Value x) { return b.scale(x, std::acos(-1.0) / 180); }
Value degrees(Build &b, Value x) { return b.scale(x, 180 / std::acos(-1.0)); }
/// sin(pi x) / (pi x), and 1 at 0, where its slope is 0.
Value sinc(Build &b, Value x) {
  Value isZero = compareWith(b, CompareDirection::Eq, x, 0), one = b.splatLike(x, 1);
  Value safe = b.scale(b.select(isZero, one, x), std::acos(-1.0));
  return b.select(isZero, one, b.div(b.unary<SinOp>(safe), safe));
}

/// log(x / (1 - x)), of x no nearer to 0 and 1 than eps if there is one; at that distance x has the slope.
LogicalResult opLogit(Call &c) {
  auto eps = c.number("eps");
  if (c.has("eps") && !eps)
    return c.fail("eps is not known");
  return ofFloat(c, [&](Build &b, Value x) {
    if (eps) {
      Value isLow = compareWith(b, CompareDirection::Lt, x, *eps),
            isHigh = compareWith(b, CompareDirection::Gt, x, 1 - *eps);
      x = b.select(isLow, b.splatLike(x, *eps), b.select(isHigh, b.splatLike(x, 1 - *eps), x));
    }
    return b.unary<LogOp>(b.div(x, b.sub(b.splatLike(x, 1), x)));
  });
}

// --- Which keep the type ---

template <typename Op> LogicalResult numeric(Call &c) {
  if (c.element("self").isInteger(1))
    return c.fail("boolean input");
  return c.set(c.b.unary<Op>(c.value("self")));
}
/// Integers stay as they are.
template <Value (*function)(Build &, Value)> LogicalResult rounding(Call &c) {
  return c.set(c.isFloat("self") ? function(c.b, c.value("self")) : c.value("self"));
}
Value floor(Build &b, Value x) { return b.unary<FloorOp>(x); }
Value round(Build &b, Value x) { return b.unary<RoundOp>(x); }

LogicalResult opSign(Call &c) {
  return c.set(c.element("self").isInteger(1) ? c.value("self") : frontend::sign(c.b, c.value("self")));
}
LogicalResult opSquare(Call &c) {
  Value x = c.b.convert(c.value("self"), c.resultElement() ? c.resultElement() : c.element("self"));
  return c.set(c.b.mul(x, x));
}

// --- Which say something of each element ---

template <Value (*function)(Build &, Value), bool otherwise> LogicalResult check(Call &c) {
  Value x = c.value("self");
  if (c.isFloat("self"))
    return c.set(function(c.b, x));
  return c.set(c.b.splat(RankedTensorType::get(c.shape("self"), c.b.builder.getI1Type()), otherwise ? 1 : 0));
}
Value isFinite(Build &b, Value x) {
  return compareWith(b, CompareDirection::Lt, b.unary<AbsOp>(x), std::numeric_limits<double>::infinity());
}

template <bool isUp> Value isInfiniteTo(Build &b, Value x) {
  return compareWith(b, CompareDirection::Eq, x, isUp ? HUGE_VAL : -HUGE_VAL);
}

LogicalResult opLogicalNot(Call &c) {
  return c.set(c.b.compare(CompareDirection::Eq, c.value("self"), c.b.splatLike(c.value("self"), 0)));
}
/// Of integers -1 - x, which has all bits turned.
LogicalResult opBitwiseNot(Call &c) {
  if (c.element("self").isInteger(1))
    return opLogicalNot(c);
  if (c.isFloat("self"))
    return c.fail("expected integers or booleans");
  Value x = c.value("self");
  return c.set(c.b.sub(c.b.splatLike(x, c.element("self").isUnsignedInteger() ? 255 : -1), x));
}

// --- Limits ---

/// By limits that are tensors; one of two that are equal takes all of the slope, else ties share it.
LogicalResult clampByTensors(Call &c, Type element) {
  SmallVector<int64_t> shape(c.shape("self"));
  for (StringRef name : {"min", "max"}) {
    auto common = c.isTensor(name) ? broadcastShape(shape, c.shape(name)) : std::optional(shape);
    if (!common)
      return c.fail("shapes do not broadcast");
    shape = *common;
  }
  Build &b = c.b;
  auto wide = [&](StringRef name) {
    return c.isTensor(name) ? b.broadcastTo(b.convert(c.value(name), element), shape) : Value();
  };
  Value x = wide("self"), least = wide("min"), most = wide("max");
  if (!least || !most)
    return c.set(least ? b.max(x, least) : frontend::minimum(b, x, most));
  Value isOne = b.compare(CompareDirection::Eq, least, most),
        isMet = b.mul(isOne, b.compare(CompareDirection::Eq, x, least)),
        isBelow = b.mul(isOne, b.compare(CompareDirection::Le, x, least));
  Value y = b.select(isMet, x, b.max(x, least));
  return c.set(b.select(isBelow, y, frontend::minimum(b, y, most)));
}

LogicalResult opClamp(Call &c) {
  Type element = c.resultElement();
  if (!element || element.isInteger(1))
    return c.fail("booleans are not supported");
  if (c.isTensor("min") || c.isTensor("max"))
    return clampByTensors(c, element);
  Value x = c.b.convert(c.value("self"), element);
  for (auto [name, bounded] : {std::pair("min", &frontend::atLeast), std::pair("max", &frontend::atMost)})
    if (std::optional<double> limit = c.number(name)) {
      if (std::isnan(*limit) || failed(c.splat(element, *limit)))
        return c.reason.empty() ? c.fail("a limit is not a number") : failure();
      x = bounded(c.b, x, *limit);
    } else if (c.has(name)) {
      return c.fail("'" + Twine(name) + "' is no number that a double holds");
    }
  return c.set(x);
}

/// What is not a number becomes `nan`, infinities become `posinf` and `neginf`: the largest numbers of the type.
LogicalResult opNanToNum(Call &c) {
  if (!c.isFloat("self"))
    return c.set(c.value("self"));
  Build &b = c.b;
  Value x = c.value("self");
  const double largest =
      llvm::APFloat::getLargest(cast<FloatType>(c.element("self")).getFloatSemantics()).convertToDouble();
  const double infinity = std::numeric_limits<double>::infinity();
  Value y = b.select(frontend::isNaN(b, x), b.splatLike(x, c.numberOr("nan", 0)), x);
  y = b.select(compareWith(b, CompareDirection::Eq, x, infinity), b.splatLike(x, c.numberOr("posinf", largest)), y);
  return c.set(
      b.select(compareWith(b, CompareDirection::Eq, x, -infinity), b.splatLike(x, c.numberOr("neginf", -largest)), y));
}

const OpRow kFunctionOps[] = {
    {"aten.abs.default", numeric<AbsOp>},
    {"aten.absolute.default", numeric<AbsOp>},
    {"aten.acos.default", simple<AcosOp>},
    {"aten.acosh.default", shared<frontend::acosh>},
    {"aten.arccos.default", simple<AcosOp>},
    {"aten.arccosh.default", shared<frontend::acosh>},
    {"aten.arcsin.default", simple<AsinOp>},
    {"aten.arcsinh.default", shared<frontend::asinh>},
    {"aten.arctan.default", simple<AtanOp>},
    {"aten.arctanh.default", shared<frontend::atanh>},
    {"aten.asin.default", simple<AsinOp>},
    {"aten.asinh.default", shared<frontend::asinh>},
    {"aten.atan.default", simple<AtanOp>},
    {"aten.atanh.default", shared<frontend::atanh>},
    {"aten.bitwise_not.default", opBitwiseNot},
    {"aten.ceil.default", rounding<frontend::ceil>},
    {"aten.clamp.Tensor", opClamp},
    {"aten.clamp.default", opClamp},
    {"aten.clamp_max.Tensor", opClamp},
    {"aten.clamp_max.default", opClamp},
    {"aten.clamp_min.Tensor", opClamp},
    {"aten.clamp_min.default", opClamp},
    {"aten.clip.Tensor", opClamp},
    {"aten.clip.default", opClamp},
    {"aten.cos.default", simple<CosOp>},
    {"aten.cosh.default", shared<frontend::cosh>},
    {"aten.deg2rad.default", shared<radians>},
    {"aten.digamma.default", widened<frontend::digamma>},
    {"aten.erf.default", simple<ErfOp>},
    {"aten.erfc.default", shared<complementaryErf>},
    {"aten.exp.default", simple<ExpOp>},
    {"aten.exp2.default", shared<exponential2>},
    {"aten.expm1.default", simple<Expm1Op>},
    {"aten.fix.default", rounding<frontend::truncate>},
    {"aten.floor.default", rounding<floor>},
    {"aten.frac.default", shared<fraction>},
    {"aten.isfinite.default", check<isFinite, true>},
    {"aten.isinf.default", check<frontend::isInfinite, false>},
    {"aten.isnan.default", check<frontend::isNaN, false>},
    {"aten.isneginf.default", check<isInfiniteTo<false>, false>},
    {"aten.isposinf.default", check<isInfiniteTo<true>, false>},
    {"aten.lgamma.default", widened<frontend::logGamma>},
    {"aten.log.default", simple<LogOp>},
    {"aten.log10.default", shared<logarithm10>},
    {"aten.log1p.default", simple<Log1pOp>},
    {"aten.log2.default", shared<logarithm2>},
    {"aten.logical_not.default", opLogicalNot},
    {"aten.logit.default", opLogit},
    {"aten.nan_to_num.default", opNanToNum},
    {"aten.neg.default", numeric<NegOp>},
    {"aten.negative.default", numeric<NegOp>},
    {"aten.rad2deg.default", shared<degrees>},
    {"aten.reciprocal.default", shared<reciprocal>},
    {"aten.round.default", rounding<round>},
    {"aten.rsqrt.default", simple<RsqrtOp>},
    {"aten.sgn.default", opSign},
    {"aten.sigmoid.default", simple<SigmoidOp>},
    {"aten.sign.default", opSign},
    {"aten.sin.default", simple<SinOp>},
    {"aten.sinc.default", shared<sinc>},
    {"aten.sinh.default", shared<frontend::sinh>},
    {"aten.special_digamma.default", widened<frontend::digamma>},
    {"aten.special_erf.default", simple<ErfOp>},
    {"aten.special_erfc.default", shared<complementaryErf>},
    {"aten.special_exp2.default", shared<exponential2>},
    {"aten.special_expit.default", simple<SigmoidOp>},
    {"aten.special_expm1.default", simple<Expm1Op>},
    {"aten.special_gammaln.default", widened<frontend::logGamma>},
    {"aten.special_log1p.default", simple<Log1pOp>},
    {"aten.special_logit.default", opLogit},
    {"aten.special_psi.default", widened<frontend::digamma>},
    {"aten.special_sinc.default", shared<sinc>},
    {"aten.sqrt.default", simple<SqrtOp>},
    {"aten.square.default", opSquare},
    {"aten.tan.default", shared<frontend::tan>},
    {"aten.tanh.default", simple<TanhOp>},
    {"aten.trunc.default", rounding<frontend::truncate>},
};
} // namespace

llvm::ArrayRef<OpRow> functionOps() { return kFunctionOps; }

} // namespace tessera::pt2
