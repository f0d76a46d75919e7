//===- CheckDifferentiable.cpp - finds active ops without a gradient ------===//

#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"
#include "passes/differentiate/Activity.h"
#include "passes/differentiate/Passes.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_CHECKDIFFERENTIABLE
#include "passes/differentiate/Passes.h.inc"

namespace {

/// For each op that the loss depends on, the next op on a shortest path to the loss; breadth first from the loss.
llvm::DenseMap<Operation *, Operation *> findPaths(Value loss) {
  llvm::DenseMap<Operation *, Operation *> next;
  std::deque<Operation *> queue;
  auto visit = [&](Operation *op, Operation *user) {
    if (op && next.try_emplace(op, user).second)
      queue.push_back(op);
  };
  visit(loss.getDefiningOp(), nullptr);
  while (!queue.empty()) {
    Operation *op = queue.front();
    queue.pop_front();
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (flowsToOperand(op, index))
        visit(operand.getDefiningOp(), op);
  }
  return next;
}

/// "loss <- train.div <- … <- train.foo (node)"; a long path is shortened in its middle.
std::string describePath(Operation *op, const llvm::DenseMap<Operation *, Operation *> &next) {
  constexpr size_t kept = 6;
  SmallVector<std::string> steps;
  for (; op; op = next.lookup(op)) {
    std::string step = op->getName().getStringRef().str();
    if (StringRef node = train::getNodeName(op->getLoc()); !node.empty())
      step += " (" + node.str() + ")";
    steps.push_back(step);
  }
  std::string path = "loss";
  for (size_t index = 0; index < steps.size(); ++index) {
    if (steps.size() > 2 * kept + 1 && index == kept) {
      size_t skipped = steps.size() - 2 * kept;
      path += " <- … " + std::to_string(skipped) + " more …";
      index += skipped;
    }
    path += " <- " + steps[steps.size() - 1 - index];
  }
  return path;
}

struct CheckDifferentiable : impl::CheckDifferentiableBase<CheckDifferentiable> {
  using CheckDifferentiableBase::CheckDifferentiableBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func) {
    FailureOr<Activity> activity = Activity::ofStep(func);
    if (failed(activity))
      return failure();
    if (activity->getParameters().empty())
      return func.emitError("has no trainable parameter: no argument of role \"param\"");
    llvm::DenseMap<Operation *, Operation *> next = findPaths(activity->getLoss());

    bool allDifferentiable = true;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!activity->isActive(op) || isa<DifferentiableOpInterface>(op))
        return WalkResult::advance();
      allDifferentiable = false;
      InFlightDiagnostic error = op->emitError() << "'" << op->getName() << "' has no gradient rule";
      error.attachNote() << "path: " << describePath(op, next);
      return WalkResult::skip();
    });
    return success(allDifferentiable);
  }
};

} // namespace
} // namespace tessera
