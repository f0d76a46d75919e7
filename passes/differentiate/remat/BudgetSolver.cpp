//===- BudgetSolver.cpp - the cheapest recomputation for a byte budget ----===//
//
// See Policy.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/remat/MinCut.h"
#include "passes/differentiate/remat/Policy.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::remat {

/// Flops that a byte costs at the two ends of a front: next to nothing, and more than any recomputation.
static constexpr double kLowPrice = 1e-4, kHighPrice = 1e9;

BudgetSolver::BudgetSolver(const Boundary &boundary) : boundary(boundary) {
  nodesOf.resize(boundary.getSegments().size());
  for (auto [number, node] : llvm::enumerate(boundary.getNodes()))
    if (!node.fixed)
      nodesOf[node.segment].push_back(number);
  for (unsigned segment = 0; segment < nodesOf.size(); ++segment) {
    std::vector<Point> &points = fronts.emplace_back();
    Point low = makePoint(cut(segment, kLowPrice)), high = makePoint(cut(segment, kHighPrice));
    points.push_back(low);
    refine(segment, low, high, points);
    if (high.cost.bytes < low.cost.bytes)
      points.push_back(high);
  }
  traverse();
}

BudgetSolver::Point BudgetSolver::makePoint(Plan plan) const {
  Cost cost = boundary.cost(boundary.follow(plan));
  return {std::move(plan), cost};
}

/// A node is recomputed if it is on the sink's side. A value is kept if it is needed and its node is not recomputed.
Plan BudgetSolver::cut(unsigned segment, double price) const {
  ArrayRef<unsigned> members = nodesOf[segment];
  llvm::DenseMap<unsigned, unsigned> nodeNumbers, valueNumbers;
  unsigned next = 2;
  for (unsigned member : members) {
    nodeNumbers[member] = next++;
    for (unsigned value : boundary.getNodes()[member].values)
      valueNumbers[value] = next++;
  }
  MinCut graph(next - 2);
  for (unsigned member : members) {
    const Node &node = boundary.getNodes()[member];
    unsigned recomputed = nodeNumbers[member];
    graph.add(MinCut::kSource, recomputed, node.flops);
    for (unsigned value : node.values) {
      graph.add(recomputed, valueNumbers[value], price * static_cast<double>(boundary.getValues()[value].bytes));
      if (boundary.getValues()[value].needed)
        graph.add(valueNumbers[value], MinCut::kSink, MinCut::kInfinite);
    }
    for (unsigned read : node.reads)
      if (auto found = valueNumbers.find(read); found != valueNumbers.end())
        graph.add(found->second, recomputed, MinCut::kInfinite);
  }
  llvm::BitVector sink = graph.solve();
  Plan plan(boundary.getNodes().size());
  for (unsigned member : members)
    if (sink.test(nodeNumbers[member]))
      plan.set(member);
  return plan;
}

/// Adds the points of the front strictly between two of its points.
void BudgetSolver::refine(unsigned segment, Point low, Point high, std::vector<Point> &points) const {
  double bytes = static_cast<double>(low.cost.bytes - high.cost.bytes), flops = high.cost.flops - low.cost.flops;
  if (bytes <= 0 || flops <= 0)
    return;
  double price = flops / bytes;
  Point middle = makePoint(cut(segment, price));
  auto total = [&](const Point &point) { return point.cost.flops + price * static_cast<double>(point.cost.bytes); };
  if (middle.cost.bytes >= low.cost.bytes || middle.cost.bytes <= high.cost.bytes ||
      total(middle) >= total(low) * (1 - 1e-9))
    return;
  refine(segment, low, middle, points);
  points.push_back(middle);
  refine(segment, middle, high, points);
}

Plan BudgetSolver::with(Plan plan, unsigned segment, const Plan &part) const {
  for (unsigned member : nodesOf[segment])
    plan[member] = part.test(member);
  return plan;
}

/// Walks from the plan with the fewest flops to the one with the fewest bytes, by the cheapest step of any segment;
/// earlier segments first, whose values would be kept longest.
void BudgetSolver::traverse() {
  struct Step {
    double price;
    unsigned segment, index;
  };
  std::vector<Step> steps;
  Plan plan(boundary.getNodes().size());
  for (auto [segment, points] : llvm::enumerate(fronts)) {
    plan = with(std::move(plan), segment, points.front().plan);
    for (unsigned i = 1; i < points.size(); ++i) {
      const Cost &from = points[i - 1].cost, &to = points[i].cost;
      steps.push_back(
          {(to.flops - from.flops) / static_cast<double>(from.bytes - to.bytes), static_cast<unsigned>(segment), i});
    }
  }
  llvm::stable_sort(steps, [](const Step &a, const Step &b) { return a.price < b.price; });
  front.push_back(makePoint(plan));
  for (const Step &step : steps) {
    plan = with(std::move(plan), step.segment, fronts[step.segment][step.index].plan);
    front.push_back(makePoint(plan));
  }
}

std::optional<BudgetSolver::Point> BudgetSolver::solve(int64_t bytes) const {
  auto fits = llvm::find_if(front, [&](const Point &point) { return point.cost.bytes <= bytes; });
  if (fits == front.end())
    return std::nullopt;
  Point best = *fits;
  // Some segment may still keep more; the last ones first, whose values are kept for the shortest time.
  for (bool improved = true; improved;) {
    improved = false;
    Point next = best;
    for (unsigned segment = fronts.size(); segment-- > 0;)
      for (const Point &point : fronts[segment]) {
        Point candidate = makePoint(with(best.plan, segment, point.plan));
        if (candidate.cost.bytes <= bytes && candidate.cost.flops < next.cost.flops)
          next = std::move(candidate);
      }
    improved = next.cost.flops < best.cost.flops;
    best = std::move(next);
  }
  return best;
}

} // namespace tessera::remat
