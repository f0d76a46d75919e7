//===- GpuOnline.cpp - a softmax's maximum and sum in one pass ------------===//
//
// A thread keeps the largest x that it has seen and the sum of exp(x - largest), which it scales when a larger one
// comes (once a vector). In the end all sums are scaled to the row's maximum and added like any others.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/GpuKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Whether two values of a kernel are computed by equal ops from the same inputs.
static bool isSame(Value a, Value b, unsigned depth = 8) {
  if (a == b)
    return true;
  Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
  return depth > 0 && opA && opB && opA->getName() == opB->getName() &&
         opA->getAttrDictionary() == opB->getAttrDictionary() && a.getType() == b.getType() &&
         opA->getNumOperands() == opB->getNumOperands() &&
         llvm::all_of(llvm::zip(opA->getOperands(), opB->getOperands()),
                      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair), depth - 1); });
}

/// The maximum m if `sum` adds up exp(x - m) over the x that m is the maximum of.
static train::ReduceOp topOf(train::ReduceOp sum) {
  if (sum.getKind() != train::ReduceKind::Sum || !tensorType(sum.getOperand()).getElementType().isF32())
    return nullptr;
  auto power = sum.getOperand().getDefiningOp<train::ExpOp>();
  auto difference = power ? power->getOperand(0).getDefiningOp<train::SubOp>() : nullptr;
  if (!difference)
    return nullptr;
  Value subtracted = difference.getRhs();
  while (isa_and_nonnull<train::BroadcastOp, train::ReshapeOp>(subtracted.getDefiningOp()))
    subtracted = subtracted.getDefiningOp()->getOperand(0);
  auto top = subtracted.getDefiningOp<train::ReduceOp>();
  bool isTop = top && top.getKind() == train::ReduceKind::Max && top.getDimensions() == sum.getDimensions() &&
               isSame(top.getOperand(), difference.getLhs());
  return isTop ? top : nullptr;
}

void GpuKernelEmitter::joinPasses() {
  for (Reduction &reduction : arranged.reductions) {
    auto sum = dyn_cast<train::ReduceOp>(reduction.op);
    train::ReduceOp top = sum ? topOf(sum) : nullptr;
    auto *first = llvm::find_if(arranged.reductions, [&](const Reduction &other) { return other.op == top; });
    if (!top || first == arranged.reductions.end() || reduction.pass != first->pass + 1)
      continue;
    // What else needs the maximum needs a pass of its own.
    unsigned pass = reduction.pass;
    auto isOther = [&](const auto &other) { return other.pass == pass; };
    if (llvm::count_if(arranged.reductions, isOther) != 1 || llvm::any_of(arranged.outputs, [&](const Output &output) {
          return output.extent != OutputExtent::Row && isOther(output);
        }))
      continue;
    for (Reduction &later : arranged.reductions)
      later.pass -= later.pass >= pass;
    for (Output &output : arranged.outputs)
      output.pass -= output.pass > pass;
    --arranged.passes;
    online.push_back({top, sum, {}});
  }
}

GpuKernelEmitter::Online *GpuKernelEmitter::onlineOf(const Accumulator &accumulator) {
  Operation *op = accumulator.reduction->op;
  auto *pair = llvm::find_if(online, [&](const Online &pair) { return pair.top == op || pair.sum == op; });
  return pair == online.end() ? nullptr : pair;
}

Value GpuKernelEmitter::operandOf(const Accumulator &accumulator) {
  Value operand = accumulator.reduction->op->getOperand(0);
  Scalar value = evaluator.evaluate(operand, plan.fullIdentity);
  if (evaluator.seen.failed())
    return {};
  return emitConvert(at(value.level), loc, value.value, tensorType(operand).getElementType(), accumulator.types[0]);
}

size_t GpuKernelEmitter::offsetOf(unsigned pass, Operation *reduction) const {
  size_t offset = 0;
  for (const Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->op == reduction)
      break;
    if (accumulator.reduction->pass == pass)
      offset += slots(accumulator) * accumulator.types.size();
  }
  return offset;
}

/// `sum` of exp(x - top) for another maximum. Where there is no x yet there is nothing to scale: -inf less -inf is no
/// number.
Value GpuKernelEmitter::rescaled(Value sum, Value top, Value newTop) {
  OpBuilder &builder = at(depth());
  Value difference = arith::SubFOp::create(builder, loc, top, newTop);
  Value none = emitNeutral(builder, loc, train::ReduceKind::Max, top.getType());
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, top, none);
  difference = arith::SelectOp::create(builder, loc, isNone, none, difference);
  return arith::MulFOp::create(builder, loc, sum, math::ExpOp::create(builder, loc, difference));
}

/// Adds one vector to the pairs of a pass.
void GpuKernelEmitter::emitOnline(unsigned pass, Values &carried) {
  for (Online &pair : online) {
    if (pair.values.empty())
      continue;
    Value &top = carried[offsetOf(pass, pair.top)], &sum = carried[offsetOf(pass, pair.sum)];
    OpBuilder &builder = at(depth());
    Value newTop = top;
    for (Value value : pair.values)
      newTop = emitCombine(builder, loc, train::ReduceKind::Max, top.getType(), newTop, value);
    sum = rescaled(sum, top, newTop);
    for (Value value : pair.values) {
      Value power = math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, value, newTop));
      sum = emitCombine(builder, loc, train::ReduceKind::Sum, sum.getType(), sum, power);
    }
    top = newTop;
    pair.values.clear();
  }
}

} // namespace tessera::codegen
