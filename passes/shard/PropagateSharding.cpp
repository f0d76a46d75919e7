//===- PropagateSharding.cpp - gives every value a layout -----------------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"

namespace tessera {
#define GEN_PASS_DEF_PROPAGATESHARDINGPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// Alternates two sweeps until nothing changes. Forward: an op's operands decide its results. Backward: a dimension
/// that nothing has split yet is split as a user wants it. Then sums that fork are added up, which may undo splits that
/// followed from them: each is constrained once, so this ends.
class Propagation {
public:
  Propagation(func::FuncOp func, MeshAttr mesh) : func(func), table(mesh) {}

  LogicalResult run() {
    if (failed(table.readArguments(func)))
      return failure();
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      if (failed(forward(func.getBody().front())))
        return failure();
      if (backward(func.getBody().front()) || reduceWhereItForks())
        continue;
      write();
      return success();
    }
    return func.emitOpError() << "sharding propagation did not settle within " << maxSweeps << " sweeps";
  }

private:
  static constexpr int maxSweeps = 64;

  LogicalResult forward(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(forward(op)))
        return failure();
    return success();
  }

  LogicalResult forward(Operation &op) {
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      FailureOr<Layout> layout = table.parse(constrain.getSharding(), op.getLoc(), rankOf(constrain.getResult()));
      if (failed(layout))
        return failure();
      table.set(constrain.getResult(), *layout);
      return success();
    }
    if (auto move = dyn_cast<MoveAxesOp>(op)) {
      table.set(move.getResult(), movedLayout(move, table.at(move.getOperand()), table.mesh));
      return success();
    }
    if (isa<train::AccumulateOp>(op)) {
      table.setBlockArguments(&op);
      Block &body = op.getRegion(0).front();
      if (failed(forward(body)))
        return failure();
      for (OpOperand &yielded : body.getTerminator()->getOpOperands()) {
        if (table.at(yielded.get()).isDealt())
          putInRanges(yielded);
        table.set(op.getResult(yielded.getOperandNumber()), table.at(yielded.get()));
      }
      return success();
    }
    if (isa<DealOp>(op))
      return success();
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    if (!rule)
      return op.emitOpError() << "has no sharding rule";
    Solution solution = table.solveOp(rule);
    for (auto [result, layout] : llvm::zip_equal(op.getResults(), solution.results))
      table.set(result, layout);
    return success();
  }

  /// What leaves a region is not dealt: the order is known inside alone.
  void putInRanges(OpOperand &yielded) {
    const Layout ranges = table.at(yielded.get()).inRanges();
    OpBuilder builder(yielded.getOwner());
    auto put = ConstrainOp::create(builder, yielded.get().getLoc(), yielded.get().getType(), yielded.get(),
                                   ranges.toAttr(table.mesh), OriginAttr(), TypeAttr());
    if (Operation *source = yielded.get().getDefiningOp(); source && train::isMarkedBackward(source))
      train::markBackward(put);
    yielded.set(put);
    table.set(put, ranges);
  }

  /// True if some layout changed.
  bool backward(Block &block) {
    bool changed = false;
    for (Operation &op : llvm::reverse(block)) {
      for (Region &region : op.getRegions())
        changed |= backward(region.front());
      auto rule = dyn_cast<ShardingRuleOpInterface>(op);
      if (!rule)
        continue;
      Solution solution = table.solveOp(rule);
      for (auto [operand, need] : llvm::zip_equal(op.getOperands(), solution.operands))
        changed |= refine(operand, need, block);
    }
    return changed;
  }

  /// A sum that is owed over an axis of parameters (an activation, or its gradient) and that several ops read is added
  /// up before them: each would else owe it, and what they make of it would be added up by itself. True if there was
  /// one.
  bool reduceWhereItForks() {
    bool found = false;
    func.walk([&](Operation *op) {
      if (op == func || op->hasTrait<OpTrait::IsTerminator>() || isa<ConstrainOp, MoveAxesOp, train::AccumulateOp>(op))
        return;
      for (OpResult result : op->getResults()) {
        Layout whole = table.at(result);
        const Partials owed = whole.unreduced;
        llvm::erase_if(whole.unreduced, [&](const Partial &partial) {
          return partial.kind == ReductionKind::Sum && table.mesh.getAxisInfo(partial.axis).splitsParameters;
        });
        if (whole.unreduced.size() == owed.size() || result.use_empty() || llvm::all_equal(result.getUsers()))
          continue;
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        auto sum = ConstrainOp::create(builder, op->getLoc(), result.getType(), result, whole.toAttr(table.mesh),
                                       OriginAttr(), TypeAttr());
        if (train::isMarkedBackward(op))
          train::markBackward(sum);
        result.replaceAllUsesExcept(sum, sum);
        found = true;
      }
    });
    return found;
  }

  /// Splits `value` as `need` says where it is not split yet, if its producer can and no other user minds.
  bool refine(Value value, const Layout &need, Block &block) {
    auto producer = value.getDefiningOp<ShardingRuleOpInterface>();
    if (!producer || getOperandState(value, need).isSplat)
      return false;
    if (value.getParentBlock() != &block && need.isDealt())
      return false; // the order is that of this block
    const Layout &have = table.at(value);
    Layout wanted = have;
    for (auto [dim, axes] : llvm::enumerate(need.dims))
      if (have.dims[dim].empty() && llvm::none_of(axes, [&](const SplitLevel &level) {
            return have.splits(level.axis) || have.isUnreduced(level.axis);
          }))
        wanted.dims[dim] = axes;
    if (wanted == have || !producerAllows(value, wanted))
      return false;
    Layout before = have;
    table.set(value, wanted);
    if (llvm::all_of(value.getUses(), [&](OpOperand &use) { return userAllows(use, wanted); }))
      return true;
    table.set(value, before);
    return false;
  }

  bool producerAllows(Value value, const Layout &wanted) {
    Layout before = table.at(value);
    table.set(value, wanted);
    Solution solution = table.solveOp(value.getDefiningOp<ShardingRuleOpInterface>());
    table.set(value, before);
    return solution.results[cast<OpResult>(value).getResultNumber()] == wanted;
  }

  /// Called with `wanted` in the table.
  bool userAllows(OpOperand &use, const Layout &wanted) {
    Operation *user = use.getOwner();
    if (auto rule = dyn_cast<ShardingRuleOpInterface>(user))
      return table.solveOp(rule).operands[use.getOperandNumber()].dims == wanted.dims;
    if (auto constrain = dyn_cast<ConstrainOp>(user))
      return Layout::get(constrain.getSharding(), table.mesh).dims == wanted.dims;
    if (isa<func::ReturnOp>(user)) {
      ShardingAttr fixed = resultSharding(func, use.getOperandNumber());
      return !fixed || Layout::get(fixed, table.mesh).dims == wanted.dims;
    }
    if (auto accumulate = dyn_cast<train::AccumulateOp>(user))
      return !accumulate.isCarried(use.getOperandNumber()) && wanted.dims.front().empty();
    return isa<train::YieldOp, MoveAxesOp>(user);
  }

  void write() {
    func.walk([&](Operation *op) {
      if (op == func || op->hasTrait<OpTrait::IsTerminator>())
        return;
      SmallVector<Attribute> shardings;
      for (Value result : op->getResults())
        shardings.push_back(table.at(result).toAttr(table.mesh));
      op->setAttr(kShardings, ArrayAttr::get(func.getContext(), shardings));
    });
    for (auto [index, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands()))
      if (!resultSharding(func, index))
        func.setResultAttr(index, kSharding, table.at(value).reduced().inRanges().toAttr(table.mesh));
    for (BlockArgument arg : func.getArguments())
      func.setArgAttr(arg.getArgNumber(), kSharding, table.at(arg).toAttr(table.mesh));
  }

  func::FuncOp func;
  LayoutTable table;
};

struct PropagateShardingPass : tessera::impl::PropagateShardingPassBase<PropagateShardingPass> {
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [](auto func, auto mesh) { return Propagation(func, mesh).run(); })))
      signalPassFailure();
  }
};

} // namespace
