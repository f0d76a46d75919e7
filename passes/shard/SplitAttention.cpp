//===- SplitAttention.cpp - how attention runs on a split sequence --------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Train.h"
#include "passes/shard/LaterUses.h"
#include "passes/shard/Passes.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/Sharding.h"
#include "passes/shard/partition/GatheredKeys.h"

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
  Splitter(func::FuncOp func, MeshAttr mesh, const SequencePlan &plan, const KeyGather &gather)
      : func(func), plan(plan), gather(gather), ranges(plan.ranges(mesh)) {
    const Axes axes = positionAxes(mesh);
    if (plan.strategy->movesHeads)
      exchanged = axisNames(mesh, plan.strategy->exchangedAxes(axes));
  }

  void run() {
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (isa<train::AttentionOp, train::AttentionGradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto attention = dyn_cast<train::AttentionOp>(op))
        split(attention, {attention.getQueryMutable(), attention.getKeyMutable(), attention.getValueMutable()},
              attention->getResults().take_front(1));
      else if (auto grad = dyn_cast<train::AttentionGradOp>(op))
        split(grad,
              {grad.getQueryMutable(), grad.getKeyMutable(), grad.getValueMutable(), grad.getOutputMutable(),
               grad.getOutputGradMutable()},
              grad->getResults());
    }
    eraseDead();
  }

  /// Whether keys are gathered for some attention as KeyGather says.
  bool appliesGather() const { return isGatherApplied; }

private:
  template <typename Op> void split(Op op, ArrayRef<std::reference_wrapper<OpOperand>> operands, ResultRange results) {
    if (plan.strategy->movesKeys) {
      if (const std::string why = ringRefusal(op); why.empty())
        op.setSplit(train::AttentionSplit::Ring);
      else
        op.emitRemark() << "keys are gathered, not sent from rank to rank: " << why;
    }
    if (gather && gathersKeys(op))
      annotateGather(op);
    if (!exchanged)
      return;
    for (OpOperand &operand : operands)
      if (maySplitPositions(operand.get()))
        operand.set(headsApart(operand.get(), op));
    for (OpResult result : results)
      if (maySplitPositions(result))
        positionsApart(result);
  }

  /// Whether some axis still splits positions meanwhile, and keys stay where they are.
  template <typename Op> bool gathersKeys(Op op) const {
    const SequenceStrategyInfo &way = *plan.strategy;
    return way.movesKeys ? !op.getSplit() : !way.movesHeads;
  }

  void annotateGather(Operation *op) {
    if (const std::string why = gatherRefusal(op); !why.empty()) {
      op->emitRemark() << "keys of all heads are gathered at once, in their own type: " << why;
      return;
    }
    gather.annotate(op);
    isGatherApplied = true;
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

  /// What reads `result` gets it with positions split; its own gradient wants it as it is. What the backward pass reads
  /// is exchanged once more, so that between the passes it waits in one form alone. Gradients of keys that several
  /// attentions read are added up before.
  void positionsApart(OpResult result) {
    Operation *of = result.getOwner();
    if (summed.contains(result))
      return;
    if (Value sum = sumOfGradients(result); sum != result) {
      addUp(sum);
      return;
    }
    auto moved = [&](OpBuilder &builder) { return move(builder, of, result, kHeads, kPositions, plan.isZigzag); };
    if (!train::isMarkedBackward(of))
      replaceLaterUses(result, findLaterUses(result), moved);
    auto isOwn = [](Operation *user) { return !isa<train::AttentionGradOp, MoveAxesOp>(user); };
    if (llvm::none_of(result.getUsers(), isOwn))
      return;
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfter(of);
    result.replaceUsesWithIf(moved(builder), [&](OpOperand &use) { return isOwn(use.getOwner()); });
  }

  /// Finds the gradients that `value` is the sum of, converted or not; false if it is a sum of anything else.
  bool findGradients(Value value, SmallVectorImpl<OpResult> &found) const {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<train::AttentionGradOp>(op)) {
      found.push_back(cast<OpResult>(value));
      return value.hasOneUse() && maySplitPositions(value);
    }
    return isa_and_nonnull<train::AddOp, train::ConvertOp>(op) && value.hasOneUse() &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return findGradients(operand, found); });
  }

  /// The sum of gradients alone that `gradient` is added up in; `gradient` itself if there is none.
  Value sumOfGradients(OpResult gradient) const {
    Value sum = gradient;
    for (Value value = gradient; value.hasOneUse() && isa<train::AddOp, train::ConvertOp>(*value.user_begin());) {
      Operation *user = *value.user_begin();
      value = user->getResult(0);
      SmallVector<OpResult> parts;
      if (!isa<train::AddOp>(user))
        continue;
      if (!llvm::all_of(user->getOperands(), [&](Value operand) { return findGradients(operand, parts); }))
        break;
      sum = value;
    }
    return sum;
  }

  /// Adds gradients up when they are there, with heads split and in the type of `sum`, and exchanges the sum in theirs.
  void addUp(Value sum) {
    SmallVector<OpResult> parts;
    for (Value operand : sum.getDefiningOp()->getOperands())
      findGradients(operand, parts);
    summed.insert_range(parts);
    llvm::sort(parts, [](OpResult a, OpResult b) { return a.getOwner()->isBeforeInBlock(b.getOwner()); });
    train::MarkBackward mark;
    OpBuilder builder(sum.getContext());
    builder.setListener(&mark);
    Value total;
    for (OpResult part : parts) {
      // Two of them may be results of one op.
      Operation *last = part.getOwner();
      if (total && last->isBeforeInBlock(total.getDefiningOp()))
        last = total.getDefiningOp();
      builder.setInsertionPointAfter(last);
      train::Build build(builder, part.getLoc());
      Value one = build.convert(part, train::tensorType(sum).getElementType());
      // One kernel for all of them would keep each until the last one is there.
      total =
          !total ? one
                 : train::BarrierOp::create(builder, part.getLoc(), sum.getType(), build.add(total, one), StringAttr());
    }
    train::Build build(builder, parts.back().getLoc());
    Value rounded = build.convert(total, train::tensorType(parts.front()).getElementType());
    Value moved = move(builder, parts.back().getOwner(), rounded, kHeads, kPositions, plan.isZigzag);
    sum.replaceAllUsesWith(build.convert(moved, train::tensorType(sum).getElementType()));
    dead.push_back(sum.getDefiningOp());
  }

  void eraseDead() {
    while (!dead.empty())
      if (Operation *op = dead.pop_back_val(); op->use_empty() && isa<train::AddOp, train::ConvertOp>(op)) {
        for (Value operand : op->getOperands())
          if (Operation *source = operand.getDefiningOp(); !llvm::is_contained(dead, source))
            dead.push_back(source);
        op->erase();
      }
  }

  Value move(OpBuilder &builder, Operation *of, Value value, int64_t from, int64_t to, bool zigzag) {
    auto op = MoveAxesOp::create(builder, of->getLoc(), value.getType(), value, exchanged, from, to, zigzag);
    if (train::isMarkedBackward(of))
      train::markBackward(op);
    return op;
  }

  func::FuncOp func;
  const SequencePlan &plan;
  const KeyGather &gather;
  bool isGatherApplied = false;
  int64_t ranges;      ///< that positions are cut into
  ArrayAttr exchanged; ///< axes that split heads meanwhile; null: none
  llvm::DenseMap<Value, Value> headsOf;
  llvm::DenseSet<Value> summed; ///< gradients whose sum is exchanged
  SmallVector<Operation *> dead;
};

struct SplitAttentionPass : tessera::impl::SplitAttentionPassBase<SplitAttentionPass> {
  using SplitAttentionPassBase::SplitAttentionPassBase;
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [&](func::FuncOp func, MeshAttr mesh) -> LogicalResult {
          FailureOr<SequencePlan> plan = planSequence(func, mesh, attention, sequenceOrder);
          if (failed(plan))
            return failure();
          if (gatherBytes < 0)
            return func.emitError() << "gather-bytes is " << gatherBytes.getValue() << ", expected at least 0";
          if (gatherType != "compute" && gatherType != "fp32")
            return func.emitError() << "unknown gather-type '" << gatherType << "', expected compute or fp32";
          const KeyGather gather{gatherBytes, gatherType == "fp32" ? Float32Type::get(func.getContext()) : Type()};
          if (!plan->strategy) {
            if (gather)
              func.emitRemark() << "no keys and values are gathered: no sequence axis is larger than 1";
            return success();
          }
          if (!plan->reason.empty())
            func.emitRemark() << "attention " << plan->strategy->name << ": " << plan->reason;
          Splitter splitter(func, mesh, *plan, gather);
          splitter.run();
          if (gather && !splitter.appliesGather()) {
            if (!isChosen && parseAttention(attention).strategy)
              return func.emitError() << "attention " << plan->strategy->name
                                      << " gathers no keys and values for some heads at a time or in another type";
            func.emitRemark() << "attention " << plan->strategy->name
                              << ": no keys and values are gathered that could be for some heads at a time or in "
                                 "another type";
          }
          return success();
        })))
      signalPassFailure();
  }
};

} // namespace
