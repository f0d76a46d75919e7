//===- Report.cpp - what a rematerialisation keeps and recomputes ---------===//

#include "passes/differentiate/remat/Report.h"

#include "compiler/dialect/train/Signature.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace tessera::remat {

namespace {
struct Row {
  explicit Row(std::string segment) : segment(std::move(segment)) {}

  std::string segment;
  int64_t saved = 0, bytes = 0; ///< kept; kept if nothing were recomputed
  double flops = 0;             ///< recomputed
  SmallVector<unsigned> values; ///< kept
};

/// One row per segment, then the rest.
std::vector<Row> makeRows(const Boundary &boundary, const Plan &plan, int64_t parts) {
  std::vector<Row> rows;
  for (const std::string &segment : boundary.getSegments())
    rows.emplace_back(segment);
  rows.emplace_back("(outside)");
  auto rowOf = [&](unsigned node) -> Row & {
    int segment = boundary.getNodes()[node].segment;
    return segment < 0 ? rows.back() : rows[segment];
  };
  for (unsigned value : boundary.follow(Plan(boundary.getNodes().size())).saved)
    rowOf(boundary.getValues()[value].node).bytes += boundary.getValues()[value].bytes / parts;
  Boundary::Outcome outcome = boundary.follow(plan);
  for (unsigned value : outcome.saved) {
    Row &row = rowOf(boundary.getValues()[value].node);
    row.saved += boundary.getValues()[value].bytes / parts;
    row.values.push_back(value);
  }
  for (unsigned node : outcome.recomputed)
    rowOf(node).flops += boundary.getNodes()[node].flops / static_cast<double>(parts);
  return rows;
}

llvm::json::Object pointJson(const Cost &cost, int64_t parts) {
  return llvm::json::Object{{"saved_bytes", cost.bytes / parts},
                            {"recomputed_flops", cost.flops / static_cast<double>(parts)}};
}
} // namespace

void Report::printTable(const Boundary &boundary, llvm::raw_ostream &os) const {
  os << "rematerialisation: " << policy << "; per rank and micro-batch\n";
  os << llvm::format("%-28s %12s %12s %14s %7s\n", "segment", "kept", "of bytes", "recomputed", "values");
  Row total("total");
  size_t values = 0;
  auto print = [&](const Row &row, size_t count) {
    os << llvm::format("%-28s %12lld %12lld %14.6g %7zu\n", row.segment.c_str(), static_cast<long long>(row.saved),
                       static_cast<long long>(row.bytes), row.flops, count);
  };
  for (const Row &row : makeRows(boundary, plan, parts)) {
    print(row, row.values.size());
    total.saved += row.saved;
    total.bytes += row.bytes;
    total.flops += row.flops;
    values += row.values.size();
  }
  print(total, values);
  if (budget)
    os << "budget: " << *budget << " bytes\n";
}

void Report::printJson(const Boundary &boundary, const BudgetSolver &solver, llvm::raw_ostream &os) const {
  llvm::json::Array segments, front;
  for (const Row &row : makeRows(boundary, plan, parts)) {
    llvm::json::Array values;
    for (unsigned number : row.values) {
      const NodeValue &value = boundary.getValues()[number];
      values.push_back(llvm::json::Object{{"node", train::getNodeName(value.value.getLoc())},
                                          {"op", value.value.getDefiningOp()->getName().getStringRef()},
                                          {"bytes", value.bytes / parts}});
    }
    segments.push_back(llvm::json::Object{{"name", row.segment},
                                          {"saved_bytes", row.saved},
                                          {"unchanged_bytes", row.bytes},
                                          {"recomputed_flops", row.flops},
                                          {"saved", std::move(values)}});
  }
  for (const BudgetSolver::Point &point : solver.getFront())
    front.push_back(pointJson(point.cost, parts));
  auto costOf = [&](const Plan &plan) { return pointJson(boundary.cost(boundary.follow(plan)), parts); };
  llvm::json::Object costs;
  for (const PolicyInfo &info : policies())
    costs[info.name] = costOf(info.plan(boundary));
  llvm::json::Object document{{"policy", policy},          {"ranks", parts},
                              {"chosen", costOf(plan)},    {"policies", std::move(costs)},
                              {"front", std::move(front)}, {"segments", std::move(segments)}};
  if (budget)
    document["budget_bytes"] = *budget;
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(document)));
}

} // namespace tessera::remat
