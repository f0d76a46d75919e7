//===- Policy.h - which values of the forward pass are recomputed -*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_REMAT_POLICY_H
#define TESSERA_PASSES_DIFFERENTIATE_REMAT_POLICY_H

#include "passes/differentiate/remat/Boundary.h"

#include <optional>
#include <string>

namespace tessera::remat {

/// What a policy that needs no search keeps; a row of a table.
struct PolicyInfo {
  llvm::StringLiteral name;        ///< as in `--remat full`
  llvm::StringLiteral description; ///< what is recomputed; empty: nothing
  bool needsBlocks;                ///< does nothing for a model without blocks
  Plan (*plan)(const Boundary &boundary);
};

llvm::ArrayRef<PolicyInfo> policies();
/// "none, full, attention, selective or budget".
std::string policyNames();

/// Plans between the one that recomputes least and the one that saves least, each cheaper in flops than any other plan
/// that saves as few bytes in its segments (the convex front); in the order of falling bytes.
///
/// Per segment: for a price of a byte in flops, the best plan is a minimum cut (as in the partitioner of PyTorch's AOT
/// Autograd, which has no price; https://dev-discuss.pytorch.org/t/467). Prices between which the plan changes are
/// found by bisection along the front. Across segments: steps along the fronts in the order of flops per byte, the
/// greedy solution of the multiple-choice knapsack problem (Sinha and Zoltners, 1979).
class BudgetSolver {
public:
  explicit BudgetSolver(const Boundary &boundary);

  struct Point {
    Plan plan;
    Cost cost;
  };
  llvm::ArrayRef<Point> getFront() const { return front; }
  /// The plan with the fewest flops found that saves at most `bytes`: the first of the front that fits, then improved
  /// with what is left of the budget. None if all save more.
  std::optional<Point> solve(int64_t bytes) const;

private:
  Point makePoint(Plan plan) const;
  /// The best plan of a segment if a byte costs `price` flops.
  Plan cut(unsigned segment, double price) const;
  void refine(unsigned segment, Point low, Point high, std::vector<Point> &points) const;
  void traverse();
  Plan with(Plan plan, unsigned segment, const Plan &part) const;

  const Boundary &boundary;
  std::vector<std::vector<unsigned>> nodesOf; ///< by segment
  std::vector<std::vector<Point>> fronts;     ///< by segment; the other segments recompute nothing
  std::vector<Point> front;
};

} // namespace tessera::remat

#endif // TESSERA_PASSES_DIFFERENTIATE_REMAT_POLICY_H
