//===- ScalarFunction.cpp - elementwise ops as a function of numbers ------===//
//
// See ScalarFunction.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ScalarFunction.h"

#include "compiler/dialect/exec/Gelu.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace tessera {

/// What is recognised has about twenty ops.
static constexpr size_t kMaxOps = 64;

static bool isFloatConversion(Operation *op) {
  auto convert = dyn_cast<train::ConvertOp>(op);
  return convert && isa<FloatType>(train::tensorType(convert.getOperand()).getElementType()) &&
         isa<FloatType>(train::tensorType(convert.getResult()).getElementType());
}

Value withoutConversions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isFloatConversion(op) && !isa<train::BarrierOp>(op))
      break;
    value = op->getOperand(cast<OpResult>(value).getResultNumber());
  }
  return value;
}

/// The number that all elements are, as far as only a broadcast and conversions stand before it.
static std::optional<double> uniformNumber(Value value) {
  if (auto broadcast = value.getDefiningOp<train::BroadcastOp>())
    return uniformNumber(withoutConversions(broadcast.getOperand()));
  return train::splatOf(value);
}

static bool isSmooth(Operation *op) {
  return isa<train::AddOp, train::SubOp, train::MulOp, train::DivOp, train::NegOp, train::PowOp, train::ExpOp,
             train::TanhOp, train::ErfOp>(op);
}

bool ScalarFunction::visit(Value value, unsigned maxArguments) {
  for (Value inner = value; inner != withoutConversions(value); inner = inner.getDefiningOp()->getOperand(0))
    if (isFloatConversion(inner.getDefiningOp()))
      ops.insert(inner.getDefiningOp());
  value = withoutConversions(value);
  if (llvm::is_contained(arguments, value) || uniformNumber(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (op && isSmooth(op)) {
    if (ops.contains(op))
      return true;
    for (Value operand : op->getOperands())
      if (!visit(operand, maxArguments))
        return false;
    ops.insert(op);
    return ops.size() <= kMaxOps;
  }
  arguments.push_back(value);
  return arguments.size() <= maxArguments;
}

std::optional<ScalarFunction> ScalarFunction::of(Value value, ArrayRef<Value> arguments, unsigned maxArguments) {
  ScalarFunction function;
  function.result = withoutConversions(value);
  function.arguments.assign(arguments.begin(), arguments.end());
  if (!function.visit(value, maxArguments))
    return std::nullopt;
  return function;
}

double ScalarFunction::at(ArrayRef<double> numbers) const {
  llvm::DenseMap<Value, double> known;
  for (auto [argument, number] : llvm::zip_equal(arguments, numbers))
    known[argument] = number;
  auto numberOf = [&](Value value) {
    value = withoutConversions(value);
    if (auto it = known.find(value); it != known.end())
      return it->second;
    return *uniformNumber(value);
  };
  for (Operation *op : ops) {
    if (isFloatConversion(op))
      continue;
    double first = numberOf(op->getOperand(0)), second = op->getNumOperands() > 1 ? numberOf(op->getOperand(1)) : 0;
    known[op->getResult(0)] = llvm::TypeSwitch<Operation *, double>(op)
                                  .Case([&](train::AddOp) { return first + second; })
                                  .Case([&](train::SubOp) { return first - second; })
                                  .Case([&](train::MulOp) { return first * second; })
                                  .Case([&](train::DivOp) { return first / second; })
                                  .Case([&](train::NegOp) { return -first; })
                                  .Case([&](train::PowOp) { return std::pow(first, second); })
                                  .Case([&](train::ExpOp) { return std::exp(first); })
                                  .Case([&](train::TanhOp) { return std::tanh(first); })
                                  .Case([&](train::ErfOp) { return std::erf(first); });
  }
  return numberOf(result);
}

/// Allows for constants in f32; with constants in bf16 it is another function.
static constexpr double kTolerance = 2e-6;

static bool agree(llvm::function_ref<double(double)> first, llvm::function_ref<double(double)> second) {
  for (int step = -96; step <= 96; ++step) {
    double x = step / 16.0, a = first(x), b = second(x);
    if (!(std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b))))
      return false;
  }
  return true;
}

bool isTanhGelu(const ScalarFunction &function) {
  return function.getArguments().size() == 1 && agree([&](double x) { return function.at({x}); }, exec::gelu);
}

bool isErfGelu(const ScalarFunction &function) {
  return function.getArguments().size() == 1 &&
         agree([&](double x) { return function.at({x}); },
               [](double x) { return 0.5 * x * (1 + std::erf(x * std::numbers::sqrt2 / 2)); });
}

bool isTanhGeluGrad(const ScalarFunction &function) {
  return function.getArguments().size() == 2 && llvm::all_of(ArrayRef<double>{1.0, -3.0}, [&](double slope) {
           return agree(
               [&](double x) {
                 return function.at({slope, x});
               },
               [&](double x) { return slope * exec::geluDerivative(x); });
         });
}

} // namespace tessera
