//===- RecognizeFunctions.cpp - forms that cancel to functions that do not -===//
//
// 1 - sigmoid(x) and its like lose all digits where the two terms are nearly
// equal, and a logarithm of the result is infinite. Each form is the same
// function as one op that is exact to rounding everywhere.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_RECOGNIZEFUNCTIONS
#include "passes/simplify/Passes.h.inc"

namespace {
Value negated(Build &b, Value x) {
  if (auto neg = x.getDefiningOp<NegOp>())
    return neg.getOperand();
  return b.neg(x);
}

/// The other operand of a sum with a number, or null.
Value besides(AddOp add, double number) {
  for (auto [x, y] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (simplify::uniformConstant(y) == number)
      return x;
  return {};
}

/// The value of which `value` is `Op`, or null.
template <typename Op> Value operandOf(Value value) {
  auto op = value ? value.getDefiningOp<Op>() : Op();
  return op ? op.getOperand() : Value();
}

/// log(sigmoid(x)), log(exp(x) + exp(y)), log(1 + exp(x)), log(1 + x), log(1 - x).
Value ofLogarithm(LogOp log, Build &b) {
  Value x = log.getOperand();
  if (Value y = operandOf<SigmoidOp>(x))
    return b.neg(b.unary<SoftplusOp>(negated(b, y)));
  if (auto add = x.getDefiningOp<AddOp>()) {
    Value first = operandOf<ExpOp>(add.getLhs()), second = operandOf<ExpOp>(add.getRhs());
    if (first && second) {
      // The larger one, and what the smaller one adds: either may be minus infinity.
      Value distance = b.unary<AbsOp>(b.sub(first, second));
      return b.add(b.max(first, second), b.unary<SoftplusOp>(b.neg(distance)));
    }
    Value term = besides(add, 1.0);
    if (Value y = operandOf<ExpOp>(term))
      return b.unary<SoftplusOp>(y);
    return term ? b.unary<Log1pOp>(term) : Value();
  }
  auto sub = x.getDefiningOp<SubOp>();
  return sub && simplify::uniformConstant(sub.getLhs()) == 1.0 ? b.unary<Log1pOp>(b.neg(sub.getRhs())) : Value();
}

/// 1 - sigmoid(x), exp(x) - 1, 1 - exp(x).
Value ofDifference(SubOp sub, Build &b) {
  if (simplify::uniformConstant(sub.getLhs()) == 1.0) {
    if (Value y = operandOf<SigmoidOp>(sub.getRhs()))
      return b.unary<SigmoidOp>(negated(b, y));
    if (Value y = operandOf<ExpOp>(sub.getRhs()))
      return b.neg(b.unary<Expm1Op>(y));
  }
  if (Value y = operandOf<ExpOp>(sub.getLhs()); y && simplify::uniformConstant(sub.getRhs()) == 1.0)
    return b.unary<Expm1Op>(y);
  return {};
}

/// exp(x) + -1, 1 + -sigmoid(x).
Value ofSum(AddOp add, Build &b) {
  if (Value y = operandOf<ExpOp>(besides(add, -1.0)))
    return b.unary<Expm1Op>(y);
  Value y = operandOf<SigmoidOp>(operandOf<NegOp>(besides(add, 1.0)));
  return y ? b.unary<SigmoidOp>(negated(b, y)) : Value();
}

/// 1 / (1 + exp(x)).
Value ofQuotient(DivOp div, Build &b) {
  auto add = div.getRhs().getDefiningOp<AddOp>();
  Value y = add && simplify::uniformConstant(div.getLhs()) == 1.0 ? operandOf<ExpOp>(besides(add, 1.0)) : Value();
  return y ? b.unary<SigmoidOp>(negated(b, y)) : Value();
}

struct RecognizeFunctions : impl::RecognizeFunctionsBase<RecognizeFunctions> {
  void runOnOperation() override {
    // In the order of the ops, so that a logarithm sees what its operand became.
    getOperation().walk([](Operation *op) {
      OpBuilder builder(op);
      Build b(builder, op->getLoc());
      Value made = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case([&](LogOp log) { return ofLogarithm(log, b); })
                       .Case([&](SubOp sub) { return ofDifference(sub, b); })
                       .Case([&](AddOp add) { return ofSum(add, b); })
                       .Case([&](DivOp div) { return ofQuotient(div, b); })
                       .Default(Value());
      if (!made)
        return;
      op->getResult(0).replaceAllUsesWith(made);
      op->erase();
    });
  }
};
} // namespace
} // namespace tessera
