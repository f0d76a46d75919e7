#include "passes/shard/LaterUses.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/interfaces/Interfaces.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera::shard {

/// Whether all parts of a concatenation are results of attentions, of some heads each.
static bool joinsHeads(Operation *op) {
  auto isResult = [](Value part) {
    while (auto reshape = part.getDefiningOp<train::ReshapeOp>())
      part = reshape.getOperand();
    return isa_and_nonnull<train::AttentionOp>(part.getDefiningOp());
  };
  return isa<train::ConcatOp>(op) && llvm::all_of(op->getOperands(), isResult);
}

/// Whether `op` only shows its operands in another way.
static bool isViewOrJoin(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return (view && view.isStatic()) || joinsHeads(op);
}

SmallVector<OpOperand *> findLaterUses(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (user->getBlock() != value.getParentBlock())
      continue;
    if (!train::isMarkedBackward(user)) {
      if (isViewOrJoin(user))
        llvm::append_range(uses, findLaterUses(user->getResult(0)));
    } else if (!isa<train::AttentionGradOp>(user)) {
      uses.push_back(&use);
    }
  }
  return uses;
}

void replaceLaterUses(Value value, ArrayRef<OpOperand *> uses, llvm::function_ref<Value(OpBuilder &)> make) {
  if (uses.empty())
    return;
  auto isBefore = [](OpOperand *a, OpOperand *b) { return a->getOwner()->isBeforeInBlock(b->getOwner()); };
  train::MarkBackward mark;
  OpBuilder builder((*llvm::min_element(uses, isBefore))->getOwner());
  builder.setListener(&mark);
  IRMapping repeated;
  repeated.map(value, make(builder));
  // Results of other attentions that are joined with it stay as they are: these are later uses of them now.
  auto repeat = [&](auto &self, Value view) -> Value {
    if (Value made = repeated.lookupOrNull(view))
      return made;
    Operation *op = view.getDefiningOp();
    if (!op || !isViewOrJoin(op))
      return view;
    for (Value operand : op->getOperands())
      repeated.map(operand, self(self, operand));
    return builder.clone(*op, repeated)->getResult(0);
  };
  for (OpOperand *use : uses)
    use->set(repeat(repeat, use->get()));
}

} // namespace tessera::shard
