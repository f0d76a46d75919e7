#include "passes/shard/Sharding.h"

#include "compiler/dialect/train/Signature.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera::dist;

namespace tessera::shard {

LogicalResult runOnMesh(func::FuncOp func, llvm::function_ref<LogicalResult(func::FuncOp, MeshAttr)> run) {
  if (func.isExternal())
    return success();
  auto module = func->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(kMesh) : MeshAttr();
  if (!mesh)
    return func->emitError() << "expected a mesh in the module attribute '" << kMesh << "'";
  if (failed(train::checkTensorFunction(func)))
    return failure();
  return run(func, mesh);
}

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

Layout accumulateOperand(const Layout &layout) {
  Layout need = layout.reduced();
  need.dims.front().clear();
  return need;
}

Layout accumulateArgument(const Layout &operand) {
  Layout layout = operand.reduced();
  layout.dims.erase(layout.dims.begin());
  return layout;
}

FailureOr<Layout> LayoutTable::parse(ShardingAttr sharding, Location loc, int64_t rank) const {
  if (StringRef axis = findUnknownAxis(sharding, mesh); !axis.empty())
    return emitError(loc) << "sharding " << sharding << " names axis '" << axis << "', which is not in the mesh "
                          << mesh;
  if (sharding.getRank() != rank)
    return emitError(loc) << "sharding " << sharding << " has " << sharding.getRank() << " dimensions, the value has "
                          << rank;
  return Layout::get(sharding, mesh);
}

LogicalResult LayoutTable::readArguments(func::FuncOp func) {
  for (BlockArgument arg : func.getArguments()) {
    auto sharding = func.getArgAttrOfType<ShardingAttr>(arg.getArgNumber(), kSharding);
    if (!sharding) {
      set(arg, Layout::replicated(rankOf(arg)));
      continue;
    }
    FailureOr<Layout> layout = parse(sharding, arg.getLoc(), rankOf(arg));
    if (failed(layout))
      return failure();
    if (!layout->unreduced.empty())
      return emitError(arg.getLoc()) << "argument " << arg.getArgNumber() << " has unreduced axes";
    if (llvm::any_of(layout->dims, [](const Split &split) { return split.hasBlocks(); }))
      return emitError(arg.getLoc()) << "argument " << arg.getArgNumber()
                                     << " is split inside of blocks, expected one range per rank";
    set(arg, *layout);
  }
  return success();
}

LogicalResult LayoutTable::readOps(Block &block) {
  for (Operation &op : block.without_terminator()) {
    auto shardings = op.getAttrOfType<ArrayAttr>(kShardings);
    if (!shardings || shardings.size() != op.getNumResults())
      return op.emitOpError() << "expected one sharding per result in '" << kShardings
                              << "'; run propagate-sharding first";
    for (auto [result, attr] : llvm::zip_equal(op.getResults(), shardings)) {
      FailureOr<Layout> layout = parse(cast<ShardingAttr>(attr), op.getLoc(), rankOf(result));
      if (failed(layout))
        return failure();
      set(result, *layout);
    }
    setBlockArguments(&op);
    for (Region &region : op.getRegions())
      if (failed(readOps(region.front())))
        return failure();
  }
  return success();
}

const Layout *LayoutTable::lookup(Value value) const {
  auto found = layouts.find(value);
  return found == layouts.end() ? nullptr : &found->second;
}

const Layout &LayoutTable::at(Value value) const {
  const Layout *layout = lookup(value);
  assert(layout && "value without a layout");
  return *layout;
}

bool LayoutTable::set(Value value, Layout layout) {
  auto [entry, isNew] = layouts.try_emplace(value, layout);
  if (isNew || entry->second == layout)
    return isNew;
  entry->second = std::move(layout);
  return true;
}

void LayoutTable::setBlockArguments(Operation *op) {
  auto accumulate = dyn_cast<train::AccumulateOp>(op);
  if (!accumulate)
    return;
  Block &body = accumulate.getBody().front();
  set(body.getArgument(0), Layout::replicated(0));
  for (auto [index, operand] : llvm::enumerate(accumulate.getOperands()))
    set(body.getArgument(index + 1), accumulate.isCarried(index) ? at(operand) : accumulateArgument(at(operand)));
}

std::vector<Candidate> LayoutTable::listCandidates(ShardingRuleOpInterface op) const {
  SmallVector<OperandState> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getOperandState(operand, at(operand)));
  SmallVector<const Layout *> results;
  for (Value result : op->getResults())
    results.push_back(lookup(result));
  return shard::listCandidates(op, operands, results, mesh);
}

Solution LayoutTable::solveOp(ShardingRuleOpInterface op) const { return chooseCandidate(listCandidates(op)).solution; }

Layout movedLayout(MoveAxesOp op, const Layout &operand, MeshAttr mesh) {
  const Axes axes = axisNumbers(op.getAxes(), mesh);
  Layout moved = operand;
  Split &from = moved.dims[op.getFrom()], &to = moved.dims[op.getTo()];
  if (axes.empty() || from.size() < axes.size())
    return operand;
  const SmallVector<SplitLevel> minor(ArrayRef<SplitLevel>(from).take_back(axes.size()));
  if (!llvm::all_of(minor, [&](const SplitLevel &level) { return llvm::is_contained(axes, level.axis); }))
    return operand;
  from.truncate(from.size() - axes.size());
  // The minor one first, as they are exchanged one by one; so they come back in their own order. What is dealt goes on
  // being dealt: each rank has some of the blocks of its group.
  const int64_t dealt = to.empty() ? 0 : to.back().dealt;
  for (const SplitLevel &level : llvm::reverse(minor))
    to.push_back({level.axis, 1, op.getZigzag(), dealt});
  if (!to.empty() && to.rangesLeft(to.size() - 1, mesh) == 0)
    return operand; // the blocks do not divide by the ranks
  return moved;
}

Layout orderLayout(Value order, MeshAttr mesh) {
  Layout layout = Layout::replicated(2);
  if (cast<RankedTensorType>(order.getType()).getDimSize(0) != 1)
    layout.dims.front() = Split(sampleAxes(mesh));
  return layout;
}

ShardingAttr resultSharding(func::FuncOp func, unsigned index) {
  return func.getResultAttrOfType<ShardingAttr>(index, kSharding);
}

} // namespace tessera::shard
