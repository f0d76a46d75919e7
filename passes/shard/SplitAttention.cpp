//===- SplitAttention.cpp - how attention runs on a split sequence --------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Train.h"
#include "passes/shard/Passes.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/Sharding.h"

namespace tessera {
#define GEN_PASS_DEF_SPLITATTENTIONPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// Dimensions of queries, keys, values and results.
constexpr int64_t kHeads = 1, kPositions = 2;

class Splitter {
public:
  Splitter(func::FuncOp func, MeshAttr mesh, const SequencePlan &plan)
      : func(func), plan(plan), ranges(groupSize(mesh, positionAxes(mesh)) * (plan.isZigzag ? 2 : 1)) {
    const Axes axes = positionAxes(mesh);
    if (plan.strategy->movesHeads)
      exchanged = axisNames(mesh, plan.strategy->exchangedAxes(axes));
  }

  void run() {
    func.walk([&](Operation *op) {
      if (auto attention = dyn_cast<train::AttentionOp>(op))
        split(attention, {attention.getQueryMutable(), attention.getKeyMutable(), attention.getValueMutable()},
              attention->getResults().take_front(1));
      else if (auto grad = dyn_cast<train::AttentionGradOp>(op))
        split(grad,
              {grad.getQueryMutable(), grad.getKeyMutable(), grad.getValueMutable(), grad.getOutputMutable(),
               grad.getOutputGradMutable()},
              grad->getResults());
    });
  }

private:
  template <typename Op> void split(Op op, ArrayRef<std::reference_wrapper<OpOperand>> operands, ResultRange results) {
    if (plan.strategy->movesKeys) {
      if (const std::string why = ringRefusal(op); why.empty())
        op.setSplit(train::AttentionSplit::Ring);
      else
        op.emitRemark() << "keys are gathered, not sent from rank to rank: " << why;
    }
    if (!exchanged)
      return;
    for (OpOperand &operand : operands)
      if (maySplitPositions(operand.get()))
        operand.set(headsApart(operand.get(), op));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (OpResult result : results)
      if (maySplitPositions(result))
        positionsApart(builder, result);
  }

  /// Keys of another sequence, or of more than one, may have a number of positions that is never split.
  bool maySplitPositions(Value value) const {
    return cast<RankedTensorType>(value.getType()).getDimSize(kPositions) % ranges == 0;
  }

  /// `value` with heads split instead of positions; made once, before its first attention.
  Value headsApart(Value value, Operation *user) {
    Value &moved = headsOf[value];
    if (!moved) {
      OpBuilder builder(user);
      moved = move(builder, user, value, kPositions, kHeads, /*zigzag=*/false);
    }
    return moved;
  }

  /// What reads `result` gets it with positions split; its gradient wants it as it is.
  void positionsApart(OpBuilder &builder, OpResult result) {
    if (result.use_empty())
      return;
    Value moved = move(builder, result.getOwner(), result, kHeads, kPositions, plan.isZigzag);
    result.replaceUsesWithIf(moved, [&](OpOperand &use) {
      return use.getOwner() != moved.getDefiningOp() && !isa<train::AttentionGradOp>(use.getOwner());
    });
  }

  Value move(OpBuilder &builder, Operation *of, Value value, int64_t from, int64_t to, bool zigzag) {
    auto op = MoveAxesOp::create(builder, of->getLoc(), value.getType(), value, exchanged, from, to, zigzag);
    if (train::isMarkedBackward(of))
      train::markBackward(op);
    return op;
  }

  func::FuncOp func;
  const SequencePlan &plan;
  int64_t ranges;      ///< that positions are cut into
  ArrayAttr exchanged; ///< axes that split heads meanwhile; null: none
  llvm::DenseMap<Value, Value> headsOf;
};

struct SplitAttentionPass : tessera::impl::SplitAttentionPassBase<SplitAttentionPass> {
  using SplitAttentionPassBase::SplitAttentionPassBase;
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [&](func::FuncOp func, MeshAttr mesh) -> LogicalResult {
          FailureOr<SequencePlan> plan = planSequence(func, mesh, attention, sequenceOrder);
          if (failed(plan))
            return failure();
          if (!plan->strategy)
            return success();
          if (!plan->reason.empty())
            func.emitRemark() << "attention " << plan->strategy->name << ": " << plan->reason;
          Splitter(func, mesh, *plan).run();
          return success();
        })))
      signalPassFailure();
  }
};

} // namespace
