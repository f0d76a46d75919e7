//===- Activity.cpp - which values a gradient flows through ---------------===//

#include "passes/differentiate/Activity.h"

#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera;

static bool isFloating(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

bool tessera::flowsToOperand(Operation *op, unsigned index) {
  if (!isFloating(op->getOperand(index)))
    return false;
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  return !rule || !rule.isNonDifferentiableOperand(index);
}

Activity::Activity(Block &block, ArrayRef<Value> parameters, Value loss) : parameters(parameters), loss(loss) {
  varied.insert(parameters.begin(), parameters.end());
  useful.insert(loss);
  propagateForward(block);
  propagateBackward(block);
}

FailureOr<Activity> Activity::ofStep(func::FuncOp func) {
  FailureOr<unsigned> lossIndex = train::getLossResult(func);
  if (failed(lossIndex))
    return failure();
  SmallVector<Value> parameters;
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Param))
    parameters.push_back(func.getArgument(index));
  Block &block = func.getBody().front();
  return Activity(block, parameters, block.getTerminator()->getOperand(*lossIndex));
}

bool Activity::isActive(Operation *op) const {
  return llvm::any_of(op->getResults(), [&](Value result) { return isActive(result); });
}

void Activity::propagateForward(Block &block) {
  for (Operation &op : block) {
    bool varies = llvm::any_of(llvm::seq(op.getNumOperands()), [&](unsigned index) {
      return varied.contains(op.getOperand(index)) && flowsToOperand(&op, index);
    });
    // Of another op with regions nothing is known but what it captures.
    for (Region &region : op.getRegions())
      region.walk([&](Operation *inner) {
        varies |= llvm::any_of(inner->getOperands(), [&](Value value) { return varied.contains(value); });
      });
    if (!varies)
      continue;
    for (Value result : op.getResults())
      if (isFloating(result))
        varied.insert(result);
  }
}

void Activity::propagateBackward(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(), [&](Value result) { return useful.contains(result); }))
      continue;
    for (unsigned index = 0; index < op.getNumOperands(); ++index)
      if (flowsToOperand(&op, index))
        useful.insert(op.getOperand(index));
    for (Region &region : op.getRegions())
      region.walk([&](Operation *inner) { useful.insert(inner->operand_begin(), inner->operand_end()); });
  }
}
