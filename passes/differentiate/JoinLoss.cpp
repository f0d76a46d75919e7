//===- JoinLoss.cpp - one pass over the logits for loss and gradient ------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Train.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_JOINLOSS
#include "passes/differentiate/Passes.h.inc"

namespace {

bool isGradientOf(LinearCrossEntropyGradOp grad, LinearCrossEntropyOp loss) {
  return grad->getBlock() == loss->getBlock() && grad.getHidden() == loss.getHidden() &&
         grad.getWeight() == loss.getWeight() && grad.getTargets() == loss.getTargets() &&
         grad.getWeightDim() == loss.getWeightDim() && grad.getIgnoreIndex() == loss.getIgnoreIndex() &&
         grad.getLabelSmoothing() == loss.getLabelSmoothing();
}

/// What `op` depends on behind `loss`, in no order; false if that is the loss, or an op with a region.
bool collect(Operation *op, LinearCrossEntropyOp loss, llvm::SetVector<Operation *> &slice) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || producer->getBlock() != loss->getBlock() || producer->isBeforeInBlock(loss))
      continue;
    if (producer == loss || producer->getNumRegions() != 0)
      return false;
    if (slice.insert(producer) && !collect(producer, loss, slice))
      return false;
  }
  return true;
}

void join(LinearCrossEntropyGradOp grad, LinearCrossEntropyOp loss) {
  llvm::SetVector<Operation *> slice;
  if (!collect(grad, loss, slice)) {
    loss.emitRemark() << "the logits are computed twice: the gradient of each row's loss depends on the loss";
    return;
  }
  SmallVector<Operation *> moved(slice.getArrayRef());
  llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  moved.push_back(grad);
  for (Operation *op : moved) {
    op->moveBefore(loss);
    op->removeAttr(kBackward);
  }
  // What they depend on in front of the loss may have been made for the backward pass as well.
  SmallVector<Operation *> pending(moved);
  while (!pending.empty())
    for (Value operand : pending.pop_back_val()->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && isMarkedBackward(producer)) {
        producer->removeAttr(kBackward);
        pending.push_back(producer);
      }
  grad->setLoc(loss.getLoc());
  loss.getLoss().replaceAllUsesWith(grad.getLoss());
  loss.getLse().replaceAllUsesWith(grad.getLse());
  loss.erase();
}

struct JoinLoss : impl::JoinLossBase<JoinLoss> {
  void runOnOperation() override {
    SmallVector<LinearCrossEntropyOp> losses;
    getOperation().walk([&](LinearCrossEntropyOp loss) { losses.push_back(loss); });
    for (LinearCrossEntropyOp loss : losses) {
      LinearCrossEntropyGradOp found;
      for (Operation *user : loss.getHidden().getUsers())
        if (auto grad = dyn_cast<LinearCrossEntropyGradOp>(user); grad && !found && isGradientOf(grad, loss))
          found = grad;
      if (found)
        join(found, loss);
    }
  }
};

} // namespace
} // namespace tessera
