//===- ScalarFunction.cpp - elementwise ops as a function of a number -----===//
//
// See ScalarFunction.h.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/ScalarFunction.h"

#include "passes/simplify/Match.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

/// What is recognised has about ten ops.
static constexpr size_t kMaxOps = 32;
/// Allows for constants in f32; with constants in bf16 it is another function.
static constexpr double kEqualValues = 2e-6;

bool isSmooth(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp, ExpOp, SigmoidOp, TanhOp, ErfOp>(op);
}

bool ScalarFunction::visit(Value value) {
  if (value == argument || uniformConstant(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !isSmooth(op))
    return false;
  if (ops.contains(op))
    return true;
  for (Value operand : op->getOperands())
    if (!visit(operand))
      return false;
  ops.insert(op);
  return ops.size() <= kMaxOps;
}

std::optional<ScalarFunction> ScalarFunction::of(Value value, Value argument) {
  ScalarFunction function;
  function.result = value;
  function.argument = argument;
  if (!function.visit(value))
    return std::nullopt;
  return function;
}

double ScalarFunction::at(double number) const {
  llvm::DenseMap<Value, double> known;
  known[argument] = number;
  auto numberOf = [&](Value value) {
    auto it = known.find(value);
    return it != known.end() ? it->second : *uniformConstant(value);
  };
  for (Operation *op : ops) {
    double x = numberOf(op->getOperand(0)), y = op->getNumOperands() > 1 ? numberOf(op->getOperand(1)) : 0;
    known[op->getResult(0)] = llvm::TypeSwitch<Operation *, double>(op)
                                  .Case([&](AddOp) { return x + y; })
                                  .Case([&](SubOp) { return x - y; })
                                  .Case([&](MulOp) { return x * y; })
                                  .Case([&](DivOp) { return x / y; })
                                  .Case([&](NegOp) { return -x; })
                                  .Case([&](PowOp) { return std::pow(x, y); })
                                  .Case([&](ExpOp) { return std::exp(x); })
                                  .Case([&](SigmoidOp) { return 1 / (1 + std::exp(-x)); })
                                  .Case([&](TanhOp) { return std::tanh(x); })
                                  .Case([&](ErfOp) { return std::erf(x); });
  }
  return numberOf(result);
}

bool ScalarFunction::agreesWith(llvm::function_ref<double(double)> other) const {
  for (int step = -96; step <= 96; ++step) {
    const double x = step / 16.0, wanted = other(x);
    if (!(std::abs(at(x) - wanted) <= kEqualValues * std::max(1.0, std::abs(wanted))))
      return false;
  }
  return true;
}

} // namespace tessera::simplify
