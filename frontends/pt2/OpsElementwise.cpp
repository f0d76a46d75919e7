//===- OpsElementwise.cpp - arithmetic, comparisons, selection, conversion -----===//

#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Binary ---

/// A number as a tensor without dimensions.
LogicalResult asTensor(Call &c, StringRef name, Type element, Value &made) {
  std::optional<double> value = c.number(name);
  if (!value)
    return c.fail("'" + name + "' is neither a tensor nor a number that a double holds");
  auto tensor = c.splat(element, *value);
  if (failed(tensor))
    return failure();
  made = *tensor;
  return success();
}

/// Both operands in an element type and their common shape.
LogicalResult both(Call &c, Type element, Value &x, Value &y) {
  if (!element)
    return c.fail("the operands have no common type that is supported");
  Value operands[2];
  for (auto [place, name] : {std::pair(0, "self"), std::pair(1, "other")}) {
    if (c.isTensor(name))
      operands[place] = c.b.convert(c.value(name), element);
    else if (failed(asTensor(c, name, element, operands[place])))
      return failure();
  }
  auto shape = broadcastShape(shapeOf(operands[0]), shapeOf(operands[1]));
  if (!shape)
    return c.fail("shapes " + shapeText(shapeOf(operands[0])) + " and " + shapeText(shapeOf(operands[1])) +
                  " do not broadcast");
  x = c.b.broadcastTo(operands[0], *shape);
  y = c.b.broadcastTo(operands[1], *shape);
  return success();
}

/// Whether both operands have dimensions, and nothing scales one: what is rounded once then, whatever it is computed
/// in.
bool isPlain(Call &c) {
  return c.isTensor("self") && c.isTensor("other") && c.rank("self") > 0 && c.rank("other") > 0 &&
         c.numberOr("alpha", 1) == 1;
}

/// In the type of the result; `alpha` scales the second operand.
template <typename Make> LogicalResult arithmetic(Call &c, Make make) {
  Type element = c.resultElement();
  Value x, y;
  if (failed(both(c, element && !isPlain(c) ? computedIn(element) : element, x, y)))
    return failure();
  if (std::optional<double> alpha = c.number("alpha"); alpha && *alpha != 1) {
    auto factor = c.splat(tensorType(y).getElementType(), *alpha);
    if (failed(factor))
      return failure();
    y = c.b.mul(y, c.b.broadcastTo(*factor, shapeOf(y)));
  }
  return c.set(c.b.convert(make(c.b, x, y), element));
}

template <Value (Build::*make)(Value, Value)> LogicalResult binary(Call &c) {
  if (!c.resultElement() || c.resultElement().isInteger(1))
    return c.fail("boolean operands");
  return arithmetic(c, [](Build &b, Value x, Value y) { return (b.*make)(x, y); });
}

/// Of booleans: and.
LogicalResult opMul(Call &c) {
  return arithmetic(c, [](Build &b, Value x, Value y) { return b.mul(x, y); });
}

/// other - alpha * self
LogicalResult opRsub(Call &c) {
  if (!c.resultElement() || c.resultElement().isInteger(1) || c.numberOr("alpha", 1) != 1)
    return c.fail("boolean operands, or alpha is not 1");
  return arithmetic(c, [](Build &b, Value x, Value y) { return b.sub(y, x); });
}

LogicalResult opDiv(Call &c) {
  const std::string mode = c.text("rounding_mode", "");
  if (!mode.empty() && mode != "floor" && mode != "trunc")
    return c.fail("rounding_mode is '" + mode + "'");
  if (!mode.empty() && isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("rounded quotients of floats are not supported");
  if (mode.empty() && !isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("the result is not floating point");
  return arithmetic(
      c, [&](Build &b, Value x, Value y) { return mode == "floor" ? frontend::floorDivide(b, x, y) : b.div(x, y); });
}

LogicalResult opRemainder(Call &c) {
  Value x, y;
  if (!c.resultElement() || isa<FloatType>(c.resultElement()) || c.resultElement().isInteger(1))
    return c.fail("remainders are supported of integers only");
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  return c.set(frontend::floorRemainder(c.b, x, y));
}

LogicalResult opMinimum(Call &c) {
  Value x, y;
  if (failed(both(c, c.resultElement(), x, y)))
    return failure();
  return c.set(frontend::minimum(c.b, x, y));
}

LogicalResult opPow(Call &c) {
  Type element = c.resultElement();
  std::optional<double> exponent = c.number("exponent");
  if (!isa_and_nonnull<FloatType>(element) || !c.isTensor("self"))
    return c.fail("expected a floating-point tensor");
  Build &b = c.b;
  Value x = b.convert(c.value("self"), computedIn(element));
  auto done = [&](Value y) { return c.set(b.convert(y, element)); };
  if (exponent && *exponent == 2)
    return done(b.mul(x, x));
  if (exponent && *exponent == 3)
    return done(b.mul(b.mul(x, x), x));
  if (exponent && *exponent == 0.5)
    return done(b.unary<SqrtOp>(x));
  if (exponent && *exponent == -0.5)
    return done(b.unary<RsqrtOp>(x));
  if (!exponent && !c.isTensor("exponent"))
    return c.fail("the exponent is neither a number nor a tensor");
  Value y = exponent ? b.splatLike(x, *exponent) : b.convert(c.value("exponent"), computedIn(element));
  auto shape = broadcastShape(shapeOf(x), shapeOf(y));
  if (!shape)
    return c.fail("shapes do not broadcast");
  return done(b.pow(b.broadcastTo(x, *shape), b.broadcastTo(y, *shape)));
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
    else if (failed(asTensor(c, name, element, sides[place])))
      return failure();
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
  if (c.isTensor("value") && c.rank("value") == 0)
    filled = c.b.convert(c.value("value"), c.element("self"));
  else if (failed(asTensor(c, "value", c.element("self"), filled)))
    return failure();
  return c.set(c.b.select(c.b.broadcastTo(mask, *shape), c.b.broadcastTo(filled, *shape), c.b.broadcastTo(x, *shape)));
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
/// The second argument in the first one's shape and type.
LogicalResult opCopy(Call &c) {
  auto shape = broadcastShape(c.shape("self"), c.shape("src"));
  if (!shape || ArrayRef<int64_t>(*shape) != c.shape("self"))
    return c.fail("shape " + shapeText(c.shape("src")) + " does not broadcast to " + shapeText(c.shape("self")));
  return c.set(c.b.broadcastTo(c.b.convert(c.value("src"), c.element("self")), c.shape("self")));
}
LogicalResult opDetach(Call &c) {
  Value x = c.value("self");
  return c.set(isa<FloatType>(c.element("self")) ? StopGradientOp::create(c.b.builder, c.b.loc, x).getResult() : x);
}

/// In place: of a constant, as torch.tensor() in a module writes it, nothing changes.
LogicalResult opDetachInPlace(Call &c) {
  return c.known("self") ? c.set(c.value("self")) : c.fail("operators in place are not supported");
}

const OpRow kRows[] = {
    {"aten.add.Scalar", binary<&Build::add>},
    {"aten.add.Tensor", binary<&Build::add>},
    {"aten.alias.default", opSame},
    {"aten.bitwise_and.Tensor", logical<Logic::And>, "self,other"},
    {"aten.bitwise_or.Tensor", logical<Logic::Or>, "self,other"},
    {"aten.__and__.Tensor", logical<Logic::And>, "self,other"},
    {"aten.__or__.Tensor", logical<Logic::Or>, "self,other"},
    {"aten.clone.default", opSame},
    {"aten.contiguous.default", opSame},
    {"aten.copy.default", opCopy, "self,src"},
    {"aten.detach.default", opDetach},
    {"aten.detach_.default", opDetachInPlace},
    {"aten.div.Scalar", opDiv},
    {"aten.div.Scalar_mode", opDiv},
    {"aten.div.Tensor", opDiv},
    {"aten.div.Tensor_mode", opDiv},
    {"aten.eq.Scalar", comparison<CompareDirection::Eq>},
    {"aten.eq.Tensor", comparison<CompareDirection::Eq>},
    {"aten.ge.Scalar", comparison<CompareDirection::Ge>},
    {"aten.ge.Tensor", comparison<CompareDirection::Ge>},
    {"aten.gt.Scalar", comparison<CompareDirection::Gt>},
    {"aten.gt.Tensor", comparison<CompareDirection::Gt>},
    {"aten.le.Scalar", comparison<CompareDirection::Le>},
    {"aten.le.Tensor", comparison<CompareDirection::Le>},
    {"aten.lift_fresh_copy.default", opSame},
    {"aten.logical_and.default", logical<Logic::And>, "self,other"},
    {"aten.logical_or.default", logical<Logic::Or>, "self,other"},
    {"aten.logical_xor.default", logical<Logic::Xor>, "self,other"},
    {"aten.lt.Scalar", comparison<CompareDirection::Lt>},
    {"aten.lt.Tensor", comparison<CompareDirection::Lt>},
    {"aten.masked_fill.Scalar", opMaskedFill, "self,mask"},
    {"aten.masked_fill.Tensor", opMaskedFill, "self,mask"},
    {"aten.maximum.default", binary<&Build::max>, "self,other"},
    {"aten.minimum.default", opMinimum, "self,other"},
    {"aten.mul.Scalar", opMul},
    {"aten.mul.Tensor", opMul},
    {"aten.ne.Scalar", comparison<CompareDirection::Ne>},
    {"aten.ne.Tensor", comparison<CompareDirection::Ne>},
    {"aten.pow.Tensor_Scalar", opPow},
    {"aten.pow.Tensor_Tensor", opPow, "self,exponent"},
    {"aten.remainder.Scalar", opRemainder},
    {"aten.remainder.Tensor", opRemainder},
    {"aten.rsub.Scalar", opRsub},
    {"aten.rsub.Tensor", opRsub},
    {"aten.sub.Scalar", binary<&Build::sub>},
    {"aten.sub.Tensor", binary<&Build::sub>},
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
