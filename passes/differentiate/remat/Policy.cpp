//===- Policy.cpp - policies that need no search --------------------------===//

#include "passes/differentiate/remat/Policy.h"

#include "compiler/dialect/train/Train.h"

using namespace mlir;

namespace tessera::remat {

Plan planFull(const Boundary &boundary) { return Plan(boundary.getNodes().size(), boundary.hasBlocks()); }

/// The sum of a product that nothing else reads and of its bias. The biases of joined products are no one parameter:
/// the kernel that turns heads by their positions adds them for nothing, and would write a sum that is kept.
static bool isBiasedProduct(const Boundary &boundary, Operation *op) {
  auto add = dyn_cast<train::AddOp>(op);
  auto hasBias = [&](Value sum, Value bias) {
    return sum.getDefiningOp<train::DotGeneralOp>() && sum.hasOneUse() && boundary.isParameter(Boundary::rootOf(bias));
  };
  return add && (hasBias(add.getLhs(), add.getRhs()) || hasBias(add.getRhs(), add.getLhs()));
}

Plan planSelective(const Boundary &boundary) {
  Plan plan(boundary.getNodes().size());
  for (auto [number, node] : llvm::enumerate(boundary.getNodes()))
    if (!isa<train::DotGeneralOp, train::Conv2dOp, train::Conv2dInputGradOp, train::AttentionOp>(node.op) &&
        !isBiasedProduct(boundary, node.op))
      plan.set(number);
  return plan;
}

} // namespace tessera::remat
