//===- WholeBatch.cpp - sums of data that are those of the whole batch ----===//
//
// See WholeBatch.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/WholeBatch.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/CountValid.h"
#include "compiler/dialect/train/Loss.h"

using namespace mlir;

namespace tessera {

/// Targets that count in the batch, written out as a sum of the batch and its maximum with 1. Returns the first op of
/// it.
static Operation *writeOut(train::CountValidOp count, llvm::SetVector<Operation *> &slice) {
  OpBuilder builder(count);
  Operation *before = count->getPrevNode();
  Block *block = count->getBlock();
  train::Build b(builder, count.getLoc());
  Value written = train::writeOutCount(b, count, /*asFunction=*/true);
  count.getResult().replaceAllUsesWith(written);
  slice.remove(count);
  count.erase();
  Operation *first = before ? before->getNextNode() : &block->front();
  for (Operation *op = first; op != written.getDefiningOp(); op = op->getNextNode())
    slice.insert(op);
  slice.insert(written.getDefiningOp());
  return first;
}

Operation *takeOfWholeBatch(Operation &op, const LossTerms &terms, llvm::SetVector<Operation *> &slice) {
  if (auto count = dyn_cast<train::CountValidOp>(op))
    return writeOut(count, slice);
  Operation *first = nullptr;
  OpBuilder builder(&op);
  for (Value value : terms.dataOf(op)) {
    auto whole = train::BarrierOp::create(builder, value.getLoc(), value.getType(), value, StringAttr());
    const bool isSum = terms.of(value).kind == Dependence::Kind::Sum;
    train::setOfBatch(whole, train::kOfBatch, isSum ? train::OfBatch::Sum : train::OfBatch::Mean);
    value.replaceUsesWithIf(whole, [&](OpOperand &use) {
      Operation *user = op.getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && slice.contains(user) && !user->isBeforeInBlock(&op);
    });
    slice.insert(whole);
    if (!first)
      first = whole;
  }
  return first;
}

bool shareMeans(const LossTerms &terms, Value loss) {
  const SmallVector<OpOperand *> means = terms.meansAmongSums(loss);
  for (OpOperand *term : means) {
    Value value = term->get();
    OpBuilder builder(term->getOwner());
    train::Build build(builder, term->getOwner()->getLoc());
    Value one = build.splat(train::tensorType(value).clone(ArrayRef<int64_t>()), 1.0);
    auto count = train::BarrierOp::create(builder, build.loc, one.getType(), one, StringAttr());
    count->setAttr(train::kMicroBatches, builder.getUnitAttr());
    term->set(build.div(value, build.broadcastTo(count, train::shapeOf(value))));
  }
  return !means.empty();
}

} // namespace tessera
