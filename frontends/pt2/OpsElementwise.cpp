//===- OpsElementwise.cpp - comparisons, logic, selection, conversion -----===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Operands.h"
#include "frontends/pt2/Promote.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Extremes, angles, lengths ---

template <bool isMax> LogicalResult opExtreme(Call &c) {
  return binaryIn(c, c.resultElement(),
                  [](Build &b, Value x, Value y) { return isMax ? b.max(x, y) : frontend::minimum(b, x, y); });
}

/// Of a number and what is none, the number; equal ones share the slope.
template <bool isMax> LogicalResult opExtremeNumber(Call &c) {
  return binaryIn(c, c.resultElement(), [](Build &b, Value x, Value y) {
    Value takesFirst = b.compare(isMax ? CompareDirection::Ge : CompareDirection::Le, x, y);
    if (isa<FloatType>(tensorType(x).getElementType()))
      takesFirst = b.max(takesFirst, frontend::isNaN(b, y));
    return b.select(b.compare(CompareDirection::Eq, x, y), b.max(x, y), b.select(takesFirst, x, y));
  });
}

/// log2(2^x + 2^y).
Value logAddExp2(Build &b, Value x, Value y) {
  const double log2 = std::log(2.0);
  return b.scale(frontend::logAddExp(b, b.scale(x, log2), b.scale(y, log2)), 1 / log2);
}

/// `function` of floats.
template <Value (*function)(Build &, Value, Value)> LogicalResult ofFloats(Call &c) {
  if (!isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail("the result is not floating point");
  return binaryIn(c, computedIn(c.resultElement()), function);
}

// --- Comparisons and logic ---

template <CompareDirection direction> LogicalResult comparison(Call &c) {
  return binaryIn(c, promoted(c, "self", "other"),
                  [](Build &b, Value x, Value y) { return b.compare(direction, x, y); });
}

enum class Logic { And, Or, Xor };
template <Logic logic> Value combined(Build &b, Value x, Value y) {
  if (logic == Logic::Xor)
    return b.compare(CompareDirection::Ne, x, y);
  return logic == Logic::And ? b.mul(x, y) : b.max(x, y);
}

/// Of numbers: what is not 0 is true.
template <Logic logic> LogicalResult logical(Call &c) {
  auto isTrue = [&](StringRef name) {
    Value x = c.value(name);
    return c.element(name).isInteger(1) ? x : c.b.compare(CompareDirection::Ne, x, c.b.splatLike(x, 0));
  };
  Value x = isTrue("self"), y = isTrue("other");
  auto shape = broadcastShape(shapeOf(x), shapeOf(y));
  if (!shape)
    return c.fail("shapes do not broadcast");
  return c.set(combined<logic>(c.b, c.b.broadcastTo(x, *shape), c.b.broadcastTo(y, *shape)));
}

/// Of a known tensor or number the integers, of `shape`.
std::optional<std::vector<int64_t>> knownInts(Call &c, StringRef name, ArrayRef<int64_t> shape) {
  const int64_t count = *countElements(shape);
  if (!c.isTensor(name)) {
    auto value = c.integer(name);
    return value ? std::optional(std::vector<int64_t>(count, *value)) : std::nullopt;
  }
  const HostTensor *known = c.known(name);
  if (!known || known->isFloat())
    return std::nullopt;
  std::vector<int64_t> made(count);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, at = 0, stride = 1;
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1, inner = known->type.getRank() - 1; dim >= 0;
         --dim, --inner) {
      const int64_t size = inner < 0 ? 1 : known->shape()[inner];
      at += size == 1 ? 0 : rest % shape[dim] * stride;
      stride *= size;
      rest /= shape[dim];
    }
    made[flat] = known->ints[at];
  }
  return made;
}

template <Logic logic> int64_t bitsOf(int64_t a, int64_t b) {
  return logic == Logic::And ? (a & b) : logic == Logic::Or ? (a | b) : (a ^ b);
}

/// Of a boolean, whose bits are those of 0 or 1, and known integers.
template <Logic logic> LogicalResult bitsOfBoolean(Call &c, StringRef boolean, StringRef integers) {
  Type element = c.resultElement();
  const SmallVector<int64_t> shape(c.isTensor(integers) ? c.shape(integers) : ArrayRef<int64_t>());
  auto known = knownInts(c, integers, shape);
  auto both = broadcastShape(c.shape(boolean), shape);
  if (!known || !both)
    return c.fail("the integers are not known, or shapes do not broadcast");
  Value results[2];
  for (int64_t bit : {0, 1}) {
    HostTensor made = HostTensor::splat(RankedTensorType::get(shape, element), 0);
    for (auto [value, integer] : llvm::zip_equal(made.ints, *known))
      value = frontend::wrapTo(element, bitsOf<logic>(bit, integer));
    results[bit] = c.b.broadcastTo(c.b.constant(made.toAttr()), *both);
  }
  return c.set(c.b.select(c.b.broadcastTo(c.value(boolean), *both), results[1], results[0]));
}

/// Of integers that are known when the step is compiled.
template <Logic logic> LogicalResult knownBits(Call &c) {
  Type element = c.resultElement();
  auto shape = c.isTensor("other") ? broadcastShape(c.shape("self"), c.shape("other"))
                                   : std::optional(SmallVector<int64_t>(c.shape("self")));
  if (!shape || !countElements(*shape) || *countElements(*shape) > frontend::kMaxConstantElements)
    return c.fail("shapes do not broadcast, or the result is too large");
  auto x = knownInts(c, "self", *shape), y = knownInts(c, "other", *shape);
  if (!x || !y)
    return c.fail("operands are neither boolean nor known integers");
  HostTensor made = HostTensor::splat(RankedTensorType::get(*shape, element), 0);
  for (size_t i = 0; i < x->size(); ++i) {
    const int64_t a = (*x)[i], b = (*y)[i];
    made.ints[i] = frontend::wrapTo(element, bitsOf<logic>(a, b));
  }
  return c.set(std::move(made));
}

template <Logic logic> LogicalResult bitwise(Call &c) {
  Type element = c.resultElement();
  if (!isa_and_nonnull<IntegerType>(element))
    return c.fail("expected booleans or integers");
  if (element.isInteger(1))
    return binaryIn(c, element, combined<logic>);
  // The last bits of an integer are what a power of 2 leaves.
  const auto mask = c.integer("other");
  if (logic == Logic::And && mask && *mask > 0 && (*mask & (*mask + 1)) == 0 && !c.known("self") &&
      !element.isUnsignedInteger() && *mask < (int64_t{1} << 40) && element.getIntOrFloatBitWidth() == 64) {
    Value x = c.b.convert(c.value("self"), element);
    return c.set(frontend::floorRemainder(c.b, x, c.b.splatLike(x, static_cast<double>(*mask + 1))));
  }
  auto isBoolean = [&](StringRef name) { return c.isTensor(name) && !c.known(name) && c.element(name).isInteger(1); };
  if (isBoolean("self") && (!c.isTensor("other") || c.known("other")))
    return bitsOfBoolean<logic>(c, "self", "other");
  if (isBoolean("other") && c.known("self"))
    return bitsOfBoolean<logic>(c, "other", "self");
  return knownBits<logic>(c);
}

// --- Selection ---

LogicalResult opWhere(Call &c) {
  if (!c.resultElement() || !c.element("condition").isInteger(1))
    return c.fail("the condition is not boolean");
  auto sides = operands(c, c.resultElement(), {"self", "other"}, c.shape("condition"));
  if (failed(sides))
    return failure();
  Value x = (*sides)[0], y = (*sides)[1];
  return c.set(c.b.select(c.b.broadcastTo(c.value("condition"), shapeOf(x)), x, y));
}

LogicalResult opMaskedFill(Call &c) {
  if (!c.element("mask").isInteger(1) || (c.isTensor("value") && c.rank("value") != 0))
    return c.fail("the mask is not boolean, or the value not one number");
  auto sides = operands(c, c.element("self"), {"self", "value"}, c.shape("mask"));
  if (failed(sides))
    return failure();
  Value x = (*sides)[0], filled = (*sides)[1];
  return c.set(c.b.select(c.b.broadcastTo(c.value("mask"), shapeOf(x)), filled, x));
}

LogicalResult opFill(Call &c) {
  if (c.isTensor("value") && c.rank("value") != 0)
    return c.fail("the value is not one number");
  auto value = operands(c, c.element("self"), {"value"}, c.shape("self"));
  return failed(value) ? failure() : c.set((*value)[0]);
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
  return c.known("self") ? c.set(c.value("self")) : c.fail("it changes what is no constant");
}

const OpRow kElementwiseOps[] = {
    {"aten.__and__.Scalar", bitwise<Logic::And>},
    {"aten.__and__.Tensor", bitwise<Logic::And>, "self,other"},
    {"aten.__or__.Scalar", bitwise<Logic::Or>},
    {"aten.__or__.Tensor", bitwise<Logic::Or>, "self,other"},
    {"aten.__xor__.Scalar", bitwise<Logic::Xor>},
    {"aten.__xor__.Tensor", bitwise<Logic::Xor>, "self,other"},
    {"aten._to_copy.default", opTo},
    {"aten.alias.default", opSame},
    {"aten.arctan2.default", ofFloats<frontend::atan2>, "self,other"},
    {"aten.atan2.default", ofFloats<frontend::atan2>, "self,other"},
    {"aten.bitwise_and.Scalar", bitwise<Logic::And>},
    {"aten.bitwise_and.Tensor", bitwise<Logic::And>, "self,other"},
    {"aten.bitwise_or.Scalar", bitwise<Logic::Or>},
    {"aten.bitwise_or.Tensor", bitwise<Logic::Or>, "self,other"},
    {"aten.bitwise_xor.Scalar", bitwise<Logic::Xor>},
    {"aten.bitwise_xor.Tensor", bitwise<Logic::Xor>, "self,other"},
    {"aten.clone.default", opSame},
    {"aten.conj.default", opSame},
    {"aten.conj_physical.default", opSame},
    {"aten.contiguous.default", opSame},
    {"aten.detach.default", opDetach},
    {"aten.detach_.default", opDetachInPlace},
    {"aten.eq.Scalar", comparison<CompareDirection::Eq>},
    {"aten.eq.Tensor", comparison<CompareDirection::Eq>},
    {"aten.fill.Scalar", opFill},
    {"aten.fill.Tensor", opFill, "self,value"},
    {"aten.fmax.default", opExtremeNumber<true>, "self,other"},
    {"aten.fmin.default", opExtremeNumber<false>, "self,other"},
    {"aten.ge.Scalar", comparison<CompareDirection::Ge>},
    {"aten.ge.Tensor", comparison<CompareDirection::Ge>},
    {"aten.greater.Scalar", comparison<CompareDirection::Gt>},
    {"aten.greater.Tensor", comparison<CompareDirection::Gt>},
    {"aten.greater_equal.Scalar", comparison<CompareDirection::Ge>},
    {"aten.greater_equal.Tensor", comparison<CompareDirection::Ge>},
    {"aten.gt.Scalar", comparison<CompareDirection::Gt>},
    {"aten.gt.Tensor", comparison<CompareDirection::Gt>},
    {"aten.hypot.default", ofFloats<frontend::hypot>, "self,other"},
    {"aten.le.Scalar", comparison<CompareDirection::Le>},
    {"aten.le.Tensor", comparison<CompareDirection::Le>},
    {"aten.less.Scalar", comparison<CompareDirection::Lt>},
    {"aten.less.Tensor", comparison<CompareDirection::Lt>},
    {"aten.less_equal.Scalar", comparison<CompareDirection::Le>},
    {"aten.less_equal.Tensor", comparison<CompareDirection::Le>},
    {"aten.lift.default", opSame},
    {"aten.lift_fresh.default", opSame},
    {"aten.lift_fresh_copy.default", opSame},
    {"aten.logaddexp.default", ofFloats<frontend::logAddExp>, "self,other"},
    {"aten.logaddexp2.default", ofFloats<logAddExp2>, "self,other"},
    {"aten.logical_and.default", logical<Logic::And>, "self,other"},
    {"aten.logical_or.default", logical<Logic::Or>, "self,other"},
    {"aten.logical_xor.default", logical<Logic::Xor>, "self,other"},
    {"aten.lt.Scalar", comparison<CompareDirection::Lt>},
    {"aten.lt.Tensor", comparison<CompareDirection::Lt>},
    {"aten.masked_fill.Scalar", opMaskedFill, "self,mask"},
    {"aten.masked_fill.Tensor", opMaskedFill, "self,mask"},
    {"aten.max.other", opExtreme<true>, "self,other"},
    {"aten.maximum.default", opExtreme<true>, "self,other"},
    {"aten.min.other", opExtreme<false>, "self,other"},
    {"aten.minimum.default", opExtreme<false>, "self,other"},
    {"aten.ne.Scalar", comparison<CompareDirection::Ne>},
    {"aten.ne.Tensor", comparison<CompareDirection::Ne>},
    {"aten.not_equal.Scalar", comparison<CompareDirection::Ne>},
    {"aten.not_equal.Tensor", comparison<CompareDirection::Ne>},
    {"aten.positive.default", opSame},
    {"aten.real.default", opSame},
    {"aten.resolve_conj.default", opSame},
    {"aten.resolve_neg.default", opSame},
    {"aten.special_xlogy.default", ofFloats<frontend::xLogY>, "self,other"},
    {"aten.special_xlogy.other_scalar", ofFloats<frontend::xLogY>},
    {"aten.special_xlogy.self_scalar", ofFloats<frontend::xLogY>, "other"},
    {"aten.to.device", opTo},
    {"aten.to.dtype", opTo},
    {"aten.to.dtype_layout", opTo},
    {"aten.to.other", opTo},
    {"aten.type_as.default", opTypeAs, "self,other"},
    {"aten.where.Scalar", opWhere, "condition"},
    {"aten.where.ScalarOther", opWhere, "condition,self"},
    {"aten.where.ScalarSelf", opWhere, "condition,other"},
    {"aten.where.self", opWhere, "condition,self,other"},
    {"aten.xlogy.Scalar_Other", ofFloats<frontend::xLogY>},
    {"aten.xlogy.Scalar_Self", ofFloats<frontend::xLogY>, "other"},
    {"aten.xlogy.Tensor", ofFloats<frontend::xLogY>, "self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> elementwiseOps() { return kElementwiseOps; }

} // namespace tessera::pt2
