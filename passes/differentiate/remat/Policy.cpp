//===- Policy.cpp - policies that need no search --------------------------===//

#include "passes/differentiate/remat/Policy.h"

#include "compiler/dialect/train/Train.h"

using namespace mlir;

namespace tessera::remat {

namespace {

Plan planNone(const Boundary &boundary) { return Plan(boundary.getNodes().size()); }

/// Recomputes all of a segment from what it reads of others.
Plan planFull(const Boundary &boundary) { return Plan(boundary.getNodes().size(), boundary.hasBlocks()); }

/// The same, but for attention, which takes most of the time where sequences are long and is as small as a block's
/// input.
Plan planAttention(const Boundary &boundary) {
  Plan plan = planFull(boundary);
  for (auto [number, node] : llvm::enumerate(boundary.getNodes()))
    if (isa<train::AttentionOp>(node.op))
      plan.reset(number);
  return plan;
}

/// The sum of a product that nothing else reads and of its bias. The biases of joined products are no one parameter:
/// the kernel that turns heads by their positions adds them for nothing, and would write a sum that is kept.
bool isBiasedProduct(const Boundary &boundary, Operation *op) {
  auto add = dyn_cast<train::AddOp>(op);
  auto hasBias = [&](Value sum, Value bias) {
    return sum.getDefiningOp<train::DotGeneralOp>() && sum.hasOneUse() && boundary.isParameter(Boundary::rootOf(bias));
  };
  return add && (hasBias(add.getLhs(), add.getRhs()) || hasBias(add.getRhs(), add.getLhs()));
}

/// Keeps products, convolutions and attention outputs and recomputes the rest of a segment. A product whose only reader
/// adds a bias is kept with it: as many bytes, and the product's epilogue can add it.
Plan planSelective(const Boundary &boundary) {
  Plan plan(boundary.getNodes().size());
  for (auto [number, node] : llvm::enumerate(boundary.getNodes()))
    if (!isa<train::DotGeneralOp, train::Conv2dOp, train::Conv2dInputGradOp, train::AttentionOp>(node.op) &&
        !isBiasedProduct(boundary, node.op))
      plan.set(number);
  return plan;
}

constexpr PolicyInfo kPolicies[] = {
    {"none", "", false, planNone},
    {"full", "all of a block", true, planFull},
    {"attention", "all of it but attention", true, planAttention},
    {"selective", "all but products and attention", false, planSelective},
};

} // namespace

ArrayRef<PolicyInfo> policies() { return kPolicies; }

std::string policyNames() {
  std::string names;
  for (const PolicyInfo &policy : kPolicies)
    names += (names.empty() ? "" : ", ") + policy.name.str();
  return names + " or budget";
}

} // namespace tessera::remat
