//===- SampleLayouts.cpp - where the samples of values are ----------------===//

#include "passes/shard/SampleLayouts.h"

#include "compiler/dialect/train/Dims.h"

using namespace mlir;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;

namespace tessera::shard {

static MeshAttr oneRankPerSample(MLIRContext *context, int64_t samples) {
  return MeshAttr::get(context, Builder(context).getStrArrayAttr({"samples"}), {samples}, {dist::AxisRole::Data});
}

static bool areTensors(ValueRange values) {
  return llvm::all_of(values, [](Value value) { return isa<RankedTensorType>(value.getType()); });
}

SampleLayouts::SampleLayouts(func::FuncOp func) : SampleLayouts(func, train::getBatchSize(func)) {}

SampleLayouts::SampleLayouts(func::FuncOp func, int64_t samples)
    : samples(samples), table(oneRankPerSample(func.getContext(), samples)) {
  if (samples == 1 || !areTensors(func.getArguments()))
    return;
  for (BlockArgument arg : func.getArguments()) {
    Layout layout = Layout::replicated(rankOf(arg));
    if (train::isBatchArgument(func, arg.getArgNumber()))
      if (const int64_t dim = train::getDims(func, arg.getArgNumber()).getSampleDim(); dim >= 0)
        layout.dims[dim].push_back({0});
    table.set(arg, layout);
  }
  visit(func.getBody().front());
}

std::optional<Solution> SampleLayouts::solveOp(Operation *op) const {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || !llvm::all_of(op->getOperands(), [&](Value operand) { return table.lookup(operand); }))
    return std::nullopt;
  SmallVector<OperandState> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getOperandState(operand, table.at(operand)));
  const SmallVector<const Layout *> unknown(op->getNumResults(), nullptr);
  return solve(ruled.getShardingRule(), operands, unknown, table.mesh);
}

/// Operands decide about results: what becomes of samples follows from the batch.
void SampleLayouts::visit(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (isa<train::AccumulateOp>(op)) {
      table.setBlockArguments(&op);
      visit(op.getRegion(0).front());
    }
    const std::optional<Solution> solution = solveOp(&op);
    for (OpResult result : op.getResults())
      if (isa<RankedTensorType>(result.getType()))
        table.set(result, solution ? solution->results[result.getResultNumber()] : Layout::replicated(rankOf(result)));
  }
}

SmallVector<Layout> SampleLayouts::ofOperands(Operation *op) const {
  if (std::optional<Solution> solution = solveOp(op))
    return solution->operands;
  SmallVector<Layout> whole;
  for (Value operand : op->getOperands())
    whole.push_back(Layout::replicated(rankOf(operand)));
  return whole;
}

} // namespace tessera::shard
