//===- RulesState.cpp - optimizer updates ---------------------------------===//
//
// The region of accumulate is handled by the passes themselves.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Optimizer.h"
#include "passes/shard/rules/Rules.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

/// Flat tensors are split alike, scalars are whole. A rank whose part does not begin at 0 passes on its first global
/// index: weight decay ends at one.
template <typename Op> struct UpdateRule : RuleModel<UpdateRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder = pointwise(op);
    builder.ordered(0);
    return builder.take();
  }

  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &context) const {
    OperationState state(op->getLoc(), op->getName(), operands, resultTypes, op->getAttrs());
    Value first = context.globalOffset(builder, 0, 0);
    auto update = cast<Op>(builder.create(state));
    if (!first)
      return SmallVector<Value>(update->getResults());
    builder.setInsertionPoint(update);
    if (Value base = update.getOffset())
      first = AddOp::create(builder, op->getLoc(), first.getType(), base, first);
    update.getOffsetMutable().assign(first);
    builder.setInsertionPointAfter(update);
    return SmallVector<Value>(update->getResults());
  }
};

} // namespace

void registerStateRules(MLIRContext *context) {
  forEachUpdateOp([&]<typename Op>() { Op::template attachInterface<UpdateRule<Op>>(*context); });
}

} // namespace tessera::shard
