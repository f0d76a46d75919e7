//===- OpsElementwise.cpp - arithmetic, comparison, selection, conversion -===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Proto.h"

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

template <typename Op> LogicalResult numericUnary(Node &n) {
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  return n.set(n.b.unary<Op>(n.input(0)));
}

LogicalResult opNot(Node &n) {
  if (!n.element(0).isInteger(1))
    return n.fail("input is not boolean");
  return n.set(n.b.compare(CompareDirection::Eq, n.input(0), n.b.splatLike(n.input(0), 0.0)));
}

// --- Binary ---

/// Broadcasts inputs 0 and 1 to their common shape.
LogicalResult both(Node &n, Value &x, Value &y) {
  if (n.element(0) != n.element(1))
    return n.fail("inputs have different element types");
  auto shape = broadcastShape(n.shape(0), n.shape(1));
  if (!shape)
    return n.fail("shapes " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(1)) + " do not broadcast");
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

int64_t bits(Logic logic, int64_t x, int64_t y) {
  return logic == Logic::And ? x & y : logic == Logic::Or ? x | y : x ^ y;
}

/// Of booleans, or of integers that are known at import.
template <Logic logic> LogicalResult bitwise(Node &n) {
  if (n.element(0).isInteger(1))
    return logical<logic>(n);
  const HostTensor *x = n.constant(0), *y = n.constant(1);
  if (!x || !y || n.isFloat(0) || n.element(0) != n.element(1) || (x->shape() != y->shape() && y->size() != 1))
    return n.fail("expected booleans, or integers of one type and shape that are known at import");
  HostTensor result = *x;
  for (size_t i = 0; i < result.ints.size(); ++i)
    result.ints[i] = bits(logic, x->ints[i], y->ints[y->size() == 1 ? 0 : i]);
  return n.set(std::move(result));
}

LogicalResult opBitwiseNot(Node &n) {
  if (n.element(0).isInteger(1))
    return opNot(n);
  const HostTensor *x = n.constant(0);
  if (!x || n.isFloat(0))
    return n.fail("expected booleans, or integers that are known at import");
  HostTensor result = *x;
  for (int64_t &value : result.ints)
    value = wrapTo(n.element(0), ~value);
  return n.set(std::move(result));
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
  if (n.attr("fmod", 0) != 0 || n.element(0).isUnsignedInteger())
    return n.set(b.sub(x, b.mul(b.div(x, y), y)));
  return n.set(floorRemainder(b, x, y));
}

LogicalResult opPow(Node &n) {
  auto shape = broadcastShape(n.shape(0), n.shape(1));
  if (!shape)
    return n.fail("shapes " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(1)) + " do not broadcast");
  Value x = n.inputTo(0, *shape);
  // Not a number where the exponent is not one constant, and then equal to none of these.
  const double exponent =
      (n.constant(1) ? n.constant(1)->uniform() : std::nullopt).value_or(std::numeric_limits<double>::quiet_NaN());
  if (exponent == 1.0)
    return n.set(x);
  if (exponent == 2.0)
    return n.set(n.b.mul(x, x));
  if (exponent == 3.0)
    return n.set(n.b.mul(n.b.mul(x, x), x));
  if (exponent == 0.0)
    return n.set(frontend::constantOf(n.b, x, 1.0));
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
    auto common = broadcastShape(shape, n.shape(i));
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
  Build &b = n.b;
  Value x = n.input(0);
  if (n.element(0).isInteger(1))
    return n.fail("boolean input");
  for (int i : {1, 2}) {
    if (!n.has(i))
      continue;
    if (n.type(i).getNumElements() != 1 || n.element(i) != n.element(0))
      return n.fail("bound is not a scalar of the input's element type");
    const HostTensor *known = n.constant(i);
    Value bound = known ? b.splatLike(x, known->number(0)) : b.broadcastTo(b.reshape(n.input(i), {}), n.shape(0));
    // Where a number is reached the input has the slope 0.
    if (known && n.isFloat(0))
      x = b.select(b.compare(i == 1 ? CompareDirection::Le : CompareDirection::Ge, x, bound), bound, x);
    else
      x = i == 1 ? b.max(x, bound) : minimum(b, x, bound);
  }
  return n.set(x);
}

LogicalResult opWhere(Node &n) {
  if (!n.element(0).isInteger(1) || n.element(1) != n.element(2))
    return n.fail("expected a boolean condition and two values of one element type");
  auto shape = broadcastShape(n.shape(1), n.shape(2));
  if (shape)
    shape = broadcastShape(*shape, n.shape(0));
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

/// What is known stays known, whatever it is cast like.
LogicalResult opCastLike(Node &n) {
  const HostTensor *x = n.constant(0);
  if (!x || !n.isFloat(1))
    return n.set(n.b.convert(n.input(0), n.element(1)));
  std::vector<double> numbers(x->size());
  for (int64_t i = 0; i < x->size(); ++i)
    numbers[i] = roundTo(n.element(1), x->number(i));
  return n.set(HostTensor::ofFloats(RankedTensorType::get(x->shape(), n.element(1)), std::move(numbers)));
}

LogicalResult opIdentity(Node &n) { return n.set(n.inputs[0]); }

/// What python -m tessera export writes for a detach: the value, and no gradient.
LogicalResult opStopGradient(Node &n) {
  if (!isa<FloatType>(n.element(0)))
    return n.set(n.inputs[0]);
  return n.set(StopGradientOp::create(n.b.builder, n.b.loc, n.input(0)));
}

const OpRow kElementwiseOps[] = {
    {"", "Abs", kAny, kNew, 1, numericUnary<AbsOp>},
    {"", "Add", kAny, kNew, 2, binary<&Build::add>},
    {"", "And", kAny, kNew, 2, logical<Logic::And>},
    {"", "BitwiseAnd", 18, kNew, 2, bitwise<Logic::And>},
    {"", "BitwiseNot", 18, kNew, 1, opBitwiseNot},
    {"", "BitwiseOr", 18, kNew, 2, bitwise<Logic::Or>},
    {"", "BitwiseXor", 18, kNew, 2, bitwise<Logic::Xor>},
    {"", "Cast", kAny, kNew, 1, opCast},
    {"", "CastLike", 15, kNew, 2, opCastLike},
    {"", "Clip", kAny, kNew, 1, opClip},
    {"", "Div", kAny, kNew, 2, binary<&Build::div>},
    {"", "Equal", kAny, kNew, 2, comparison<CompareDirection::Eq>},
    {"", "Greater", kAny, kNew, 2, comparison<CompareDirection::Gt>},
    {"", "GreaterOrEqual", 12, kNew, 2, comparison<CompareDirection::Ge>},
    {"", "Identity", kAny, kNew, 1, opIdentity},
    {"", "Less", kAny, kNew, 2, comparison<CompareDirection::Lt>},
    {"", "LessOrEqual", 12, kNew, 2, comparison<CompareDirection::Le>},
    {"", "Max", kAny, kNew, 1, variadic<Fold::Max>},
    {"", "Mean", kAny, kNew, 1, variadic<Fold::Mean>},
    {"", "Min", kAny, kNew, 1, variadic<Fold::Min>},
    {"", "Mod", kAny, kNew, 2, opMod},
    {"", "Mul", kAny, kNew, 2, binary<&Build::mul>},
    {"", "Neg", kAny, kNew, 1, numericUnary<NegOp>},
    {"", "Not", kAny, kNew, 1, opNot},
    {"", "Or", kAny, kNew, 2, logical<Logic::Or>},
    {"", "Pow", kAny, kNew, 2, opPow},
    {"", "Sub", kAny, kNew, 2, binary<&Build::sub>},
    {"", "Sum", kAny, kNew, 1, variadic<Fold::Sum>},
    {"", "Where", kAny, kNew, 3, opWhere},
    {"", "Xor", kAny, kNew, 2, logical<Logic::Xor>},
    {"tessera", "StopGradient", 1, 1, 1, opStopGradient},
};
} // namespace

ArrayRef<OpRow> elementwiseOps() { return kElementwiseOps; }

} // namespace tessera::onnx_import
