//===- Policy.cpp - policies that need no search --------------------------===//

#include "passes/differentiate/remat/Policy.h"

#include "compiler/dialect/train/Train.h"

using namespace mlir;

namespace tessera::remat {

Plan planFull(const Boundary &boundary) { return Plan(boundary.getNodes().size(), boundary.hasBlocks()); }

Plan planSelective(const Boundary &boundary) {
  Plan plan(boundary.getNodes().size());
  for (auto [number, node] : llvm::enumerate(boundary.getNodes()))
    if (!isa<train::DotGeneralOp, train::Conv2dOp, train::Conv2dInputGradOp, train::AttentionOp>(node.op))
      plan.set(number);
  return plan;
}

} // namespace tessera::remat
