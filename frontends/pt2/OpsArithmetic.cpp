//===- OpsArithmetic.cpp - sums, products, quotients, powers ----------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Operands.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::compareWith;

bool isBoolean(Call &c) { return !c.resultElement() || c.resultElement().isInteger(1); }
bool isFloating(Call &c) { return isa_and_nonnull<FloatType>(c.resultElement()); }

/// Whether both operands have dimensions, and nothing scales one: what is rounded once then, whatever it is computed
/// in.
bool isPlain(Call &c) {
  return c.isTensor("self") && c.isTensor("other") && c.rank("self") > 0 && c.rank("other") > 0 &&
         c.numberOr("alpha", 1) == 1;
}

/// In the type of the result; `alpha` scales the operand `scaled`.
template <typename Make> LogicalResult arithmetic(Call &c, Make make, StringRef scaled = "other") {
  Type element = c.resultElement();
  auto both = operands(c, element && !isPlain(c) ? computedIn(element) : element, {"self", "other"});
  if (failed(both))
    return failure();
  if (std::optional<double> alpha = c.number("alpha"); alpha && *alpha != 1) {
    Value &y = (*both)[scaled == "other" ? 1 : 0];
    auto factor = c.splat(tensorType(y).getElementType(), *alpha);
    if (failed(factor))
      return failure();
    y = c.b.mul(y, c.b.broadcastTo(*factor, shapeOf(y)));
  } else if (c.has("alpha") && !alpha) {
    return c.fail("alpha is no number that a double holds");
  }
  return c.set(c.b.convert(make(c.b, (*both)[0], (*both)[1]), element));
}

/// Of booleans: or.
LogicalResult opAdd(Call &c) {
  return arithmetic(c, [&](Build &b, Value x, Value y) { return isBoolean(c) ? b.max(x, y) : b.add(x, y); });
}
/// Of booleans: and.
LogicalResult opMul(Call &c) {
  return arithmetic(c, [](Build &b, Value x, Value y) { return b.mul(x, y); });
}
LogicalResult opSub(Call &c) {
  if (isBoolean(c))
    return c.fail("boolean operands");
  return arithmetic(c, [](Build &b, Value x, Value y) { return b.sub(x, y); });
}
/// other - alpha * self
LogicalResult opRsub(Call &c) {
  if (isBoolean(c))
    return c.fail("boolean operands");
  return arithmetic(
      c, [](Build &b, Value x, Value y) { return b.sub(y, x); }, "self");
}

// --- Quotients and what they leave ---

/// Quotients of narrower floats are rounded right when they are made of f64: the quotient of two is not near a whole
/// number unless it is one. f64 itself would need a division without rounding.
LogicalResult inF64(Call &c, llvm::function_ref<Value(Build &, Value, Value)> make) {
  if (c.resultElement().isF64())
    return c.fail("whole quotients of f64, and what they leave, are not supported");
  // A number is rounded to the type of the result first, as PyTorch does.
  return binaryIn(c, computedIn(c.resultElement()), [&](Build &b, Value x, Value y) {
    Type wide = b.builder.getF64Type();
    return b.convert(make(b, b.convert(x, wide), b.convert(y, wide)), computedIn(c.resultElement()));
  });
}

LogicalResult divide(Call &c, StringRef mode) {
  if (isBoolean(c) || (mode.empty() && !isFloating(c)))
    return c.fail("the result is not a number of the kind that the quotient is");
  if (mode.empty())
    return arithmetic(c, [](Build &b, Value x, Value y) { return b.div(x, y); });
  const bool isFloor = mode == "floor";
  if (!isFloating(c))
    return arithmetic(
        c, [&](Build &b, Value x, Value y) { return isFloor ? frontend::floorDivide(b, x, y) : b.div(x, y); });
  if (isFloor)
    return inF64(c, [](Build &b, Value x, Value y) { return b.unary<FloorOp>(b.div(x, y)); });
  return binaryIn(c, computedIn(c.resultElement()),
                  [](Build &b, Value x, Value y) { return frontend::truncate(b, b.div(x, y)); });
}
LogicalResult opDiv(Call &c) {
  const std::string mode = c.text("rounding_mode", "");
  if (!mode.empty() && mode != "floor" && mode != "trunc")
    return c.fail("rounding_mode is '" + mode + "'");
  return divide(c, mode);
}
LogicalResult opFloorDivide(Call &c) { return divide(c, "floor"); }

/// What a quotient leaves that is rounded towards 0; it has the sign of x.
Value remainderOfFloats(Build &b, Value x, Value y) {
  Value quotient = frontend::truncate(b, b.div(x, y));
  // An infinite divisor leaves all.
  return b.select(compareWith(b, CompareDirection::Eq, quotient, 0), x, b.sub(x, b.mul(quotient, y)));
}

LogicalResult opFmod(Call &c) {
  if (isBoolean(c))
    return c.fail("boolean operands");
  if (isFloating(c))
    return inF64(c, remainderOfFloats);
  return binaryIn(c, c.resultElement(), [](Build &b, Value x, Value y) { return b.sub(x, b.mul(b.div(x, y), y)); });
}

/// With the sign of the divisor.
LogicalResult opRemainder(Call &c) {
  if (isBoolean(c))
    return c.fail("boolean operands");
  if (!isFloating(c))
    return binaryIn(c, c.resultElement(), frontend::floorRemainder);
  return inF64(c, [](Build &b, Value x, Value y) {
    Value rest = remainderOfFloats(b, x, y);
    Value isOther = b.compare(CompareDirection::Ne, compareWith(b, CompareDirection::Lt, rest, 0),
                              compareWith(b, CompareDirection::Lt, y, 0));
    return b.select(b.mul(isOther, compareWith(b, CompareDirection::Ne, rest, 0)), b.add(rest, y), rest);
  });
}

// --- Powers ---

/// x to a whole number above 0, by squares.
Value wholePower(Build &b, Value x, int64_t exponent) {
  Value result, square = x;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1)
      result = result ? b.mul(result, square) : square;
    if (exponent > 1)
      square = b.mul(square, square);
  }
  return result;
}

/// By an exponent that is a number.
LogicalResult powerOf(Call &c, double exponent) {
  Build &b = c.b;
  Type element = c.resultElement(), computed = computedIn(element);
  Value x = b.convert(c.value("self"), computed), result;
  const bool isWhole = exponent >= 0 && exponent <= 64 && exponent == static_cast<double>(static_cast<int>(exponent));
  if (!isa<FloatType>(element) && (element.isInteger(1) || !isWhole))
    return c.fail("powers of integers by what is not a whole number up to 64 are not supported");
  if (exponent == 0)
    result = frontend::constantOf(b, x, 1);
  else if (isWhole && (exponent <= 3 || !isa<FloatType>(element)))
    result = wholePower(b, x, static_cast<int64_t>(exponent));
  else if (exponent == 0.5)
    result = b.unary<SqrtOp>(x);
  else if (exponent == -0.5)
    result = b.unary<RsqrtOp>(x);
  else
    result = b.pow(x, b.splatLike(x, exponent));
  return c.set(b.convert(result, element));
}

LogicalResult opPow(Call &c) {
  if (!c.resultElement())
    return c.fail("the result's element type is not supported");
  if (std::optional<double> exponent = c.number("exponent"); exponent && c.isTensor("self"))
    return powerOf(c, *exponent);
  if (!isFloating(c))
    return c.fail("powers of integers by a tensor are not supported");
  auto both = operands(c, computedIn(c.resultElement()), {"self", "exponent"});
  if (failed(both))
    return failure();
  return c.set(c.b.convert(c.b.pow((*both)[0], (*both)[1]), c.resultElement()));
}

// --- Of several operands ---

/// self + value * tensor1 * tensor2, or tensor1 / tensor2.
template <bool divides> LogicalResult opAddProduct(Call &c) {
  if (isBoolean(c) || (divides && !isFloating(c)))
    return c.fail("booleans, and quotients of integers, are not supported");
  auto all = operands(c, computedIn(c.resultElement()), {"self", "tensor1", "tensor2"});
  if (failed(all))
    return failure();
  Build &b = c.b;
  Value product = divides ? b.div((*all)[1], (*all)[2]) : b.mul((*all)[1], (*all)[2]);
  if (c.numberOr("value", 1) != 1 && failed(c.splat(computedIn(c.resultElement()), c.numberOr("value", 1))))
    return failure();
  return c.set(b.convert(b.add((*all)[0], b.scale(product, c.numberOr("value", 1))), c.resultElement()));
}

/// Between self (weight 0) and end (1), from the nearer one, as PyTorch computes it.
LogicalResult opLerp(Call &c) {
  if (!isFloating(c))
    return c.fail("expected floating point");
  auto all = operands(c, computedIn(c.resultElement()), {"self", "end", "weight"});
  if (failed(all))
    return failure();
  Build &b = c.b;
  Value x = (*all)[0], y = (*all)[1], weight = (*all)[2], way = b.sub(y, x);
  Value isNear = compareWith(b, CompareDirection::Lt, b.unary<AbsOp>(weight), 0.5);
  Value fromEnd = b.sub(y, b.mul(way, b.sub(b.splatLike(weight, 1), weight)));
  return c.set(b.convert(b.select(isNear, b.add(x, b.mul(weight, way)), fromEnd), c.resultElement()));
}

const OpRow kArithmeticOps[] = {
    {"aten.add.Scalar", opAdd},
    {"aten.add.Tensor", opAdd},
    {"aten.addcdiv.default", opAddProduct<true>, "self,tensor1,tensor2"},
    {"aten.addcmul.default", opAddProduct<false>, "self,tensor1,tensor2"},
    {"aten.div.Scalar", opDiv},
    {"aten.div.Scalar_mode", opDiv},
    {"aten.div.Tensor", opDiv},
    {"aten.div.Tensor_mode", opDiv},
    {"aten.divide.Scalar", opDiv},
    {"aten.divide.Scalar_mode", opDiv},
    {"aten.divide.Tensor", opDiv},
    {"aten.divide.Tensor_mode", opDiv},
    {"aten.floor_divide.Scalar", opFloorDivide},
    {"aten.floor_divide.default", opFloorDivide},
    {"aten.fmod.Scalar", opFmod},
    {"aten.fmod.Tensor", opFmod, "self,other"},
    {"aten.lerp.Scalar", opLerp, "self,end"},
    {"aten.lerp.Tensor", opLerp, "self,end,weight"},
    {"aten.mul.Scalar", opMul},
    {"aten.mul.Tensor", opMul},
    {"aten.multiply.Scalar", opMul},
    {"aten.multiply.Tensor", opMul},
    {"aten.pow.Scalar", opPow, "exponent"},
    {"aten.pow.Tensor_Scalar", opPow},
    {"aten.pow.Tensor_Tensor", opPow, "self,exponent"},
    {"aten.remainder.Scalar", opRemainder},
    {"aten.remainder.Scalar_Tensor", opRemainder, "other"},
    {"aten.remainder.Tensor", opRemainder, "self,other"},
    {"aten.rsub.Scalar", opRsub},
    {"aten.rsub.Tensor", opRsub},
    {"aten.sub.Scalar", opSub},
    {"aten.sub.Tensor", opSub},
    {"aten.subtract.Scalar", opSub},
    {"aten.subtract.Tensor", opSub},
    {"aten.true_divide.Scalar", opDiv},
    {"aten.true_divide.Tensor", opDiv},
};
} // namespace

llvm::ArrayRef<OpRow> arithmeticOps() { return kArithmeticOps; }

} // namespace tessera::pt2
