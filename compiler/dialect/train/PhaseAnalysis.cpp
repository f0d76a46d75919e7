//===- PhaseAnalysis.cpp - which ops are forward, backward, update --------===//
//
// See PhaseAnalysis.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/PhaseAnalysis.h"

#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera::train {

PhaseAnalysis::PhaseAnalysis(func::FuncOp func) {
  SmallVector<Value> results, reduced;
  for (auto [index, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    const std::optional<ResultRole> role = getResultRole(func, index);
    if (role == ResultRole::Grad)
      reduced.push_back(value);
    else if (role && role != ResultRole::Metric && role != ResultRole::Updated)
      results.push_back(value);
  }
  func.walk([&](Operation *op) {
    if (auto update = dyn_cast<OptimizerUpdateOpInterface>(op))
      reduced.push_back(update.getGrad());
  });
  if (results.empty())
    return;
  addSlice(results, forward);
  addSlice(reduced, gradients);
}

StepPhase PhaseAnalysis::getPhase(Operation *op) const {
  return forward.contains(op) ? StepPhase::Forward : gradients.contains(op) ? StepPhase::Backward : StepPhase::Update;
}

void PhaseAnalysis::addSlice(ArrayRef<Value> roots, Ops &ops) {
  SmallVector<Value> pending(roots);
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      // The loop counts its iterations in the first argument; the others are slices of its operands, or carried.
      auto loop = dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp());
      if (loop && argument.getArgNumber() > 0) {
        const unsigned operand = argument.getArgNumber() - 1;
        pending.push_back(loop->getOperand(operand));
        if (loop.isCarried(operand))
          pending.push_back(argument.getOwner()->getTerminator()->getOperand(operand + loop->getNumResults() -
                                                                             loop->getNumOperands()));
      }
      continue;
    }
    Operation *op = value.getDefiningOp();
    ops.insert(op);
    if (isa<AccumulateOp>(op))
      pending.push_back(op->getRegion(0).front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
    else
      llvm::append_range(pending, op->getOperands());
  }
}

void completeBackwardMarks(func::FuncOp func) {
  const PhaseAnalysis phases(func);
  func.walk([&](Operation *op) {
    if (phases.isBackward(op) && !op->hasTrait<OpTrait::ConstantLike>())
      markBackward(op);
  });
}

} // namespace tessera::train
