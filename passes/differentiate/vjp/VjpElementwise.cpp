//===- VjpElementwise.cpp - gradient rules of elementwise ops -------------===//
//
// Where operand and result would both do, a rule uses the result, so that the
// operand need not live until the backward pass.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/vjp/Vjp.h"

#include "compiler/dialect/train/Constants.h"

#include "mlir/IR/Matchers.h"

#include <numbers>
#include <optional>

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

LogicalResult convertRule(ConvertOp op, Vjp &vjp) {
  vjp.set(0, vjp.convert(vjp.cotangent(), tensorType(op.getOperand()).getElementType()));
  return success();
}

LogicalResult negRule(NegOp, Vjp &vjp) {
  vjp.set(0, vjp.neg(vjp.cotangent()));
  return success();
}

LogicalResult absRule(AbsOp op, Vjp &vjp) {
  Value x = op.getOperand(), g = vjp.cotangent(), zero = vjp.splatLike(x, 0.0);
  Value negative = vjp.select(vjp.compare(CompareDirection::Lt, x, zero), vjp.neg(g), zero);
  vjp.set(0, vjp.select(vjp.compare(CompareDirection::Gt, x, zero), g, negative));
  return success();
}

LogicalResult expRule(ExpOp op, Vjp &vjp) {
  vjp.set(0, vjp.mul(vjp.cotangent(), op.getResult()));
  return success();
}

LogicalResult logRule(LogOp op, Vjp &vjp) {
  vjp.set(0, vjp.div(vjp.cotangent(), op.getOperand()));
  return success();
}

/// Whether a value is what norms take roots of: a sum over a dimension of squares, other powers or magnitudes, scaled,
/// or a product of two of them (the norms of both vectors of a cosine).
bool isSumOfPowers(Value value, int depth = 0) {
  auto isPower = [](Value term) {
    if (auto product = term.getDefiningOp<MulOp>())
      return product.getLhs() == product.getRhs();
    if (auto power = term.getDefiningOp<PowOp>())
      return splatOf(power.getRhs()).value_or(0.0) > 0.0;
    return static_cast<bool>(term.getDefiningOp<AbsOp>());
  };
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8)
    return false;
  if (auto sum = dyn_cast<ReduceOp>(op))
    return sum.getKind() == ReduceKind::Sum &&
           (isPower(sum.getOperand()) || isSumOfPowers(sum.getOperand(), depth + 1));
  if (isa<ReshapeOp, BroadcastOp, TransposeOp, SliceOp, ConvertOp>(op))
    return isSumOfPowers(op->getOperand(0), depth + 1);
  if (auto scaled = dyn_cast<DivOp>(op))
    return matchPattern(scaled.getRhs(), m_Constant()) && isSumOfPowers(scaled.getLhs(), depth + 1);
  if (auto product = dyn_cast<MulOp>(op))
    return llvm::all_of(product->getOperands(), [&](Value factor) {
      return matchPattern(factor, m_Constant()) || isSumOfPowers(factor, depth + 1);
    });
  return false;
}

/// The slope at 0 is infinite, but 0 where the root is a norm: PyTorch's subgradient of norms of zero vectors.
Value rootSlope(Value operand, Value root, Value slope, Vjp &vjp) {
  if (!isSumOfPowers(operand))
    return slope;
  Value zero = vjp.splatLike(root, 0.0);
  return vjp.select(vjp.compare(CompareDirection::Eq, root, zero), zero, slope);
}

LogicalResult sqrtRule(SqrtOp op, Vjp &vjp) {
  Value root = op.getResult();
  vjp.set(0, rootSlope(op.getOperand(), root, vjp.div(vjp.scale(vjp.cotangent(), 0.5), root), vjp));
  return success();
}

LogicalResult rsqrtRule(RsqrtOp op, Vjp &vjp) {
  Value y = op.getResult();
  vjp.set(0, vjp.mul(vjp.scale(vjp.cotangent(), -0.5), vjp.mul(y, vjp.mul(y, y))));
  return success();
}

LogicalResult tanhRule(TanhOp op, Vjp &vjp) {
  Value y = op.getResult();
  vjp.set(0, vjp.mul(vjp.cotangent(), vjp.sub(vjp.splatLike(y, 1.0), vjp.mul(y, y))));
  return success();
}

LogicalResult erfRule(ErfOp op, Vjp &vjp) {
  Value x = op.getOperand();
  Value density = vjp.scale(vjp.exp(vjp.neg(vjp.mul(x, x))), 2.0 * std::numbers::inv_sqrtpi);
  vjp.set(0, vjp.mul(vjp.cotangent(), density));
  return success();
}

LogicalResult geluRule(GeluOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  vjp.set(0, GeluGradOp::create(vjp.builder, vjp.loc, g.getType(), op.getForm(), g, op.getOperand()));
  return success();
}

LogicalResult sinRule(SinOp op, Vjp &vjp) {
  vjp.set(0, vjp.mul(vjp.cotangent(), vjp.unary<CosOp>(op.getOperand())));
  return success();
}

LogicalResult cosRule(CosOp op, Vjp &vjp) {
  vjp.set(0, vjp.neg(vjp.mul(vjp.cotangent(), vjp.unary<SinOp>(op.getOperand()))));
  return success();
}

/// Of the operand: 1 added to a result near -1 would lose all digits.
LogicalResult expm1Rule(Expm1Op op, Vjp &vjp) {
  vjp.set(0, vjp.mul(vjp.cotangent(), vjp.exp(op.getOperand())));
  return success();
}

LogicalResult log1pRule(Log1pOp op, Vjp &vjp) {
  Value x = op.getOperand();
  vjp.set(0, vjp.div(vjp.cotangent(), vjp.add(x, vjp.splatLike(x, 1.0))));
  return success();
}

LogicalResult sigmoidRule(SigmoidOp op, Vjp &vjp) {
  Value y = op.getResult();
  vjp.set(0, vjp.mul(vjp.cotangent(), vjp.mul(vjp.sub(vjp.splatLike(y, 1.0), y), y)));
  return success();
}

LogicalResult softplusRule(SoftplusOp op, Vjp &vjp) {
  vjp.set(0, vjp.mul(vjp.cotangent(), vjp.unary<SigmoidOp>(op.getOperand())));
  return success();
}

LogicalResult atanRule(AtanOp op, Vjp &vjp) {
  Value x = op.getOperand();
  vjp.set(0, vjp.div(vjp.cotangent(), vjp.add(vjp.mul(x, x), vjp.splatLike(x, 1.0))));
  return success();
}

/// 1/sqrt(1 - x²), with (1 - x)(1 + x) for the difference of squares, which does not cancel near ±1.
Value slopeOfAsin(Value x, Vjp &vjp) {
  Value one = vjp.splatLike(x, 1.0);
  return vjp.unary<RsqrtOp>(vjp.mul(vjp.sub(one, x), vjp.add(one, x)));
}

LogicalResult asinRule(AsinOp op, Vjp &vjp) {
  vjp.set(0, vjp.mul(vjp.cotangent(), slopeOfAsin(op.getOperand(), vjp)));
  return success();
}

LogicalResult acosRule(AcosOp op, Vjp &vjp) {
  vjp.set(0, vjp.neg(vjp.mul(vjp.cotangent(), slopeOfAsin(op.getOperand(), vjp))));
  return success();
}

/// Zero almost everywhere, which takes no op; it is a gradient, as in PyTorch.
LogicalResult roundRule(RoundOp, Vjp &) { return success(); }
LogicalResult floorRule(FloorOp, Vjp &) { return success(); }

LogicalResult addRule(AddOp, Vjp &vjp) {
  for (unsigned operand : {0, 1})
    if (vjp.wants(operand))
      vjp.set(operand, vjp.cotangent());
  return success();
}

LogicalResult subRule(SubOp, Vjp &vjp) {
  if (vjp.wants(0))
    vjp.set(0, vjp.cotangent());
  if (vjp.wants(1))
    vjp.set(1, vjp.neg(vjp.cotangent()));
  return success();
}

LogicalResult mulRule(MulOp op, Vjp &vjp) {
  if (vjp.wants(0))
    vjp.set(0, vjp.mul(vjp.cotangent(), op.getRhs()));
  if (vjp.wants(1))
    vjp.set(1, vjp.mul(vjp.cotangent(), op.getLhs()));
  return success();
}

LogicalResult divRule(DivOp op, Vjp &vjp) {
  Value quotient = vjp.div(vjp.cotangent(), op.getRhs());
  if (vjp.wants(0))
    vjp.set(0, quotient);
  if (vjp.wants(1))
    vjp.set(1, vjp.neg(vjp.mul(quotient, op.getResult())));
  return success();
}

/// Two equal operands receive half each.
LogicalResult maxRule(MaxOp op, Vjp &vjp) {
  Value g = vjp.cotangent(), zero = vjp.splatLike(g, 0.0);
  auto share = [&](Value mine, Value other) {
    Value tie = vjp.select(vjp.compare(CompareDirection::Eq, mine, other), vjp.scale(g, 0.5), zero);
    return vjp.select(vjp.compare(CompareDirection::Gt, mine, other), g, tie);
  };
  if (vjp.wants(0))
    vjp.set(0, share(op.getLhs(), op.getRhs()));
  if (vjp.wants(1))
    vjp.set(1, share(op.getRhs(), op.getLhs()));
  return success();
}

/// Gradient of a power with respect to its base. An exponent of 0 has gradient 0 at a base of 0 too, where the formula
/// would be 0 · inf.
Value powBase(PowOp op, Vjp &vjp) {
  Value base = op.getLhs(), exponent = op.getRhs(), g = vjp.cotangent();
  if (std::optional<double> constant = splatOf(exponent)) {
    if (*constant == 0.0)
      return Value();
    if (*constant == 1.0)
      return g;
    if (*constant == 2.0)
      return vjp.mul(g, vjp.scale(base, 2.0));
    if (*constant == 0.5)
      return rootSlope(base, op.getResult(), vjp.div(vjp.scale(g, 0.5), op.getResult()), vjp);
    Value slope = vjp.mul(g, vjp.scale(vjp.pow(base, vjp.splatLike(base, *constant - 1.0)), *constant));
    return *constant < 1.0 && *constant > 0.0 ? rootSlope(base, op.getResult(), slope, vjp) : slope;
  }
  Value slope = vjp.mul(exponent, vjp.pow(base, vjp.sub(exponent, vjp.splatLike(exponent, 1.0))));
  Value zero = vjp.splatLike(base, 0.0);
  return vjp.select(vjp.compare(CompareDirection::Eq, exponent, zero), zero, vjp.mul(g, slope));
}

LogicalResult powRule(PowOp op, Vjp &vjp) {
  if (vjp.wants(0))
    vjp.set(0, powBase(op, vjp));
  if (vjp.wants(1)) {
    // 0^b is constantly 0 for b > 0, though log 0 is not finite.
    Value base = op.getLhs(), zero = vjp.splatLike(base, 0.0);
    Value flat =
        vjp.mul(vjp.compare(CompareDirection::Eq, base, zero), vjp.compare(CompareDirection::Ge, op.getRhs(), zero));
    Value slope = vjp.mul(op.getResult(), vjp.unary<LogOp>(base));
    vjp.set(1, vjp.select(flat, zero, vjp.mul(vjp.cotangent(), slope)));
  }
  return success();
}

LogicalResult selectRule(SelectOp op, Vjp &vjp) {
  Value g = vjp.cotangent(), zero = vjp.splatLike(g, 0.0);
  if (vjp.wants(1))
    vjp.set(1, vjp.select(op.getPredicate(), g, zero));
  if (vjp.wants(2))
    vjp.set(2, vjp.select(op.getPredicate(), zero, g));
  return success();
}

} // namespace

void attachElementwise(MLIRContext *context) {
  attachVjp<ConvertOp, convertRule>(context);
  attachVjp<NegOp, negRule>(context);
  attachVjp<AbsOp, absRule>(context);
  attachVjp<ExpOp, expRule>(context);
  attachVjp<LogOp, logRule>(context);
  attachVjp<SqrtOp, sqrtRule>(context);
  attachVjp<RsqrtOp, rsqrtRule>(context);
  attachVjp<TanhOp, tanhRule>(context);
  attachVjp<ErfOp, erfRule>(context);
  attachVjp<GeluOp, geluRule>(context);
  attachVjp<SinOp, sinRule>(context);
  attachVjp<CosOp, cosRule>(context);
  attachVjp<Expm1Op, expm1Rule>(context);
  attachVjp<Log1pOp, log1pRule>(context);
  attachVjp<SigmoidOp, sigmoidRule>(context);
  attachVjp<SoftplusOp, softplusRule>(context);
  attachVjp<AtanOp, atanRule>(context);
  attachVjp<AsinOp, asinRule>(context);
  attachVjp<AcosOp, acosRule>(context);
  attachVjp<RoundOp, roundRule>(context);
  attachVjp<FloorOp, floorRule>(context);
  attachVjp<AddOp, addRule>(context);
  attachVjp<SubOp, subRule>(context);
  attachVjp<MulOp, mulRule>(context);
  attachVjp<DivOp, divRule>(context);
  attachVjp<MaxOp, maxRule>(context);
  attachVjp<PowOp, powRule>(context);
  attachVjp<SelectOp, selectRule>(context);
}

} // namespace tessera::vjp
