//===- InsertReshards.cpp - makes every change of layout an op ------------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

class Inserter {
public:
  Inserter(func::FuncOp func, MeshAttr mesh) : func(func), table(mesh) {}

  LogicalResult run() {
    Block &body = func.getBody().front();
    if (failed(table.readArguments(func)) || failed(table.readOps(body)) || failed(visit(body)))
      return failure();
    Operation *end = body.getTerminator();
    for (OpOperand &operand : end->getOpOperands()) {
      ShardingAttr sharding = resultSharding(func, operand.getOperandNumber());
      if (!sharding)
        return end->emitOpError() << "result " << operand.getOperandNumber()
                                  << " has no sharding; run propagate-sharding first";
      FailureOr<Layout> need = table.parse(sharding, end->getLoc(), rankOf(operand.get()));
      if (failed(need))
        return failure();
      require(operand, *need);
    }
    return success();
  }

private:
  LogicalResult visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
      if (failed(visit(op)))
        return failure();
    }
    return success();
  }

  LogicalResult visit(Operation &op) {
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      replace(constrain, constrain.getOriginAttr(), constrain.getReduceTypeAttr());
      return success();
    }
    if (auto move = dyn_cast<MoveAxesOp>(op)) {
      if (table.at(move.getOperand()) == table.at(move.getResult()))
        move.emitRemark() << "nothing is exchanged: dimension " << move.getFrom() << " is not split by "
                          << move.getAxes();
      replace(move, OriginAttr(), TypeAttr());
      return success();
    }
    if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
      for (OpOperand &operand : op.getOpOperands())
        if (!accumulate.isCarried(operand.getOperandNumber()))
          require(operand, accumulateOperand(table.at(operand.get())));
      return visit(op.getRegion(0).front());
    }
    if (isa<DealOp>(op))
      return success(); // its operand is constrained
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    if (!rule)
      return op.emitOpError() << "has no sharding rule";
    const std::vector<Candidate> candidates = table.listCandidates(rule);
    const Candidate &chosen = chooseCandidate(candidates);
    const Solution &solution = chosen.solution;
    remark(op, chosen, candidates);
    for (auto [result, layout] : llvm::zip_equal(op.getResults(), solution.results))
      if (table.at(result) != layout)
        return op.emitOpError() << "result " << result.getResultNumber() << " is annotated with "
                                << table.at(result).toAttr(table.mesh) << ", but its operands give "
                                << layout.toAttr(table.mesh) << "; run propagate-sharding again";
    for (auto [operand, need] : llvm::zip_equal(op.getOpOperands(), solution.operands))
      require(operand, need);
    return success();
  }

  /// Tells where there was a choice.
  static void remark(Operation &op, const Candidate &chosen, ArrayRef<Candidate> candidates) {
    if (candidates.size() == 1)
      return;
    InFlightDiagnostic remark = op.emitRemark() << chosen.name << ": each rank sends " << chosen.sentBytes << " bytes";
    for (const Candidate &other : candidates)
      if (&other != &chosen)
        remark << ", " << other.name << " it would send " << other.sentBytes;
  }

  /// An identity that changes the layout.
  template <typename Op> void replace(Op op, OriginAttr origin, TypeAttr reduceType) {
    Value value = op.getOperand();
    const Layout &need = table.at(op.getResult());
    if (table.at(value) != need) {
      OpBuilder builder(op);
      if (canBeMade(value, need))
        value = rematerialise(builder, value, need);
      else
        value = reshard(builder, op, value, need, origin, reduceType);
    }
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  }

  /// Gives `use` the layout it needs. The change is made once per value and layout, before its first use, in the block
  /// of the value: what a region takes from above is changed once, outside; inside where it is dealt in the order of
  /// the region.
  void require(OpOperand &use, const Layout &need) {
    Value value = use.get();
    if (table.at(value) == need)
      return;
    // What is gathered along the sequence is as large as the sequence: it does not stay for the backward pass.
    const bool again = gathersPositions(value, need) && train::isMarkedBackward(use.getOwner());
    Block *block = need.isDealt() ? use.getOwner()->getBlock() : value.getParentBlock();
    Value &changed = cache[{{value, need.toAttr(table.mesh)}, {again ? 1 : 0, block}}];
    if (!changed) {
      Operation *before = block->findAncestorOpInBlock(*use.getOwner());
      OpBuilder builder(before);
      if (canBeMade(value, need))
        changed = rematerialise(builder, value, need);
      else
        changed = reshard(builder, use.getOwner(), value, need, originOf(use), TypeAttr());
    }
    use.set(changed);
  }

  /// A function result is known by its name or role.
  OriginAttr originOf(OpOperand &use) {
    if (!isa<func::ReturnOp>(use.getOwner()))
      return {};
    auto name = func.getResultAttrOfType<StringAttr>(use.getOperandNumber(), train::kName);
    if (!name)
      name = func.getResultAttrOfType<StringAttr>(use.getOperandNumber(), train::kRole);
    return name ? OriginAttr::get(func.getContext(), OriginPhase::Result, name.getValue()) : OriginAttr();
  }

  bool gathersPositions(Value value, const Layout &need) {
    return llvm::any_of(planReshard(table.at(value), need), [&](const ReshardStep &step) {
      return step.kind == ReshardStep::Kind::AllGather &&
             llvm::any_of(step.axes, [&](unsigned axis) { return table.mesh.getAxisInfo(axis).splitsPositions; });
    });
  }

  /// A placement whose parts are needed whole works, and costs what a better one would not; so do positions.
  void remarkGather(Operation *user, Value value, const Layout &need) {
    for (const ReshardStep &step : planReshard(table.at(value), need))
      for (unsigned axis : step.axes)
        if (const AxisRoleInfo &info = table.mesh.getAxisInfo(axis);
            step.kind == ReshardStep::Kind::AllGather && (info.splitsParameters || info.splitsPositions))
          user->emitRemark() << "gathers " << value.getType() << " over '" << table.mesh.getAxisName(axis)
                             << "': it is in parts where this op needs it whole";
  }

  Value reshard(OpBuilder &builder, Operation *user, Value value, const Layout &need, OriginAttr origin,
                TypeAttr reduceType) {
    if (!origin)
      remarkGather(user, value, need);
    auto op = ReshardOp::create(builder, user->getLoc(), value.getType(), value, table.at(value).toAttr(table.mesh),
                                need.toAttr(table.mesh), origin, reduceType);
    if (train::isMarkedBackward(user))
      train::markBackward(op);
    annotate(op, need);
    return op;
  }

  /// Whether a value is a splat constant that each rank has in the layout that is needed: as a part of a sum only 0,
  /// which may be added once per rank.
  static bool canBeMade(Value value, const Layout &need) {
    const OperandState state = getOperandState(value, need);
    return state.isSplat && (state.isZero || need.unreduced.empty());
  }
  /// A splat constant is made again in the layout that is needed.
  Value rematerialise(OpBuilder &builder, Value value, const Layout &need) {
    Operation *copy = builder.clone(*value.getDefiningOp());
    annotate(copy, need);
    return copy->getResult(0);
  }

  void annotate(Operation *op, const Layout &layout) {
    op->setAttr(kShardings, ArrayAttr::get(op->getContext(), {layout.toAttr(table.mesh)}));
    table.set(op->getResult(0), layout);
  }

  func::FuncOp func;
  LayoutTable table;
  /// By value, layout, whether for backward, and block.
  llvm::DenseMap<std::pair<std::pair<Value, Attribute>, std::pair<int, Block *>>, Value> cache;
};

struct InsertReshardsPass : tessera::impl::InsertReshardsPassBase<InsertReshardsPass> {
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [](auto func, auto mesh) { return Inserter(func, mesh).run(); })))
      signalPassFailure();
  }
};

} // namespace
