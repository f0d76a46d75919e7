//===- Placement.cpp - where the collectives of a block may stand ---------===//
//
// See Placement.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Placement.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::schedule {

using dist::DoneOp;

bool isView(Operation *op) {
  return isa<train::SliceOp, train::ReshapeOp, train::TransposeOp, train::ConvertOp, dist::SliceLocalOp>(op);
}
bool isAssembly(Operation *op) { return isView(op) || isa<train::ConcatOp, train::ConstantOp>(op); }

BlockPlacement::BlockPlacement(Block &block) : block(block) {
  for (Operation &op : block) {
    if (!isStart(&op) || !doneOf(&op) || doneOf(&op)->getBlock() != &block)
      continue;
    if (isa<dist::AllGatherStartOp>(op) && isReadyAtStart(op.getOperand(0)))
      gathers.push_back(&op);
    else if (isa<dist::AllGatherStartOp>(op))
      fixedGathers.push_back(&op);
    else if (isa<dist::ReduceScatterStartOp, dist::AllReduceStartOp>(op))
      reductions.push_back(&op);
  }
}

/// The value comes from outside of the block, or only assembles such values: parameters.
bool BlockPlacement::isReadyAtStart(Value value) const {
  if (value.getParentBlock() != &block || isa<BlockArgument>(value))
    return true;
  return isAssembly(value.getDefiningOp()) &&
         llvm::all_of(value.getDefiningOp()->getOperands(), [&](Value operand) { return isReadyAtStart(operand); });
}

Operation *BlockPlacement::firstUser(Operation *op) const {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  return first;
}

Operation *BlockPlacement::lastUser(Operation *op) const {
  Operation *last = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    if (inBlock == user && isView(user))
      if (Operation *below = lastUser(user))
        inBlock = below;
    if (!last || last->isBeforeInBlock(inBlock))
      last = inBlock;
  }
  return last;
}

/// Moves `op` right after the last of its operands, views and joins among them first.
void BlockPlacement::hoist(Operation *op) {
  Operation *last = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || producer->getBlock() != &block)
      continue;
    if (isAssembly(producer))
      hoist(producer);
    if (!last || last->isBeforeInBlock(producer))
      last = producer;
  }
  if (last)
    op->moveAfter(last);
  else
    op->moveBefore(&block, block.begin());
}

/// Moves the views of a value down to their first uses, so that the value's first use is one that computes.
void BlockPlacement::sinkUsers(Operation *op) {
  SmallVector<Operation *> views;
  for (Operation *user : op->getUsers())
    if (user->getBlock() == &block && isView(user) && !llvm::is_contained(views, user))
      views.push_back(user);
  for (Operation *view : views) {
    sinkUsers(view);
    if (Operation *first = firstUser(view))
      view->moveBefore(first);
  }
}

void BlockPlacement::placeReductions() {
  for (Operation *start : reductions) {
    hoist(start);
    setReason(start, "as soon as its operand is complete");
  }
  llvm::sort(reductions, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (auto [index, start] : llvm::enumerate(reductions)) {
    DoneOp done = doneOf(start);
    sinkUsers(done);
    Operation *limit = firstUser(done);
    if (!limit)
      limit = block.getTerminator();
    StringRef reason = "at its first use";
    for (Operation *next : llvm::drop_begin(reductions, index + 1))
      if (next->getName() == start->getName()) {
        if (next->isBeforeInBlock(limit)) {
          limit = next;
          reason = "before the next collective of its kind starts";
        }
        break;
      }
    done->moveBefore(limit);
    setReason(done, reason);
  }
}

SmallVector<Gather> BlockPlacement::placeDones() {
  SmallVector<Gather> placed;
  for (Operation *start : gathers) {
    DoneOp done = doneOf(start);
    sinkUsers(done);
    Operation *first = firstUser(done);
    if (!first)
      continue;
    done->moveBefore(first);
    setReason(done, "at the first use of the unit");
    placed.push_back({start, done});
  }
  llvm::sort(placed, [](const Gather &a, const Gather &b) { return a.done->isBeforeInBlock(b.done); });
  return placed;
}

/// Moves what assembles the operand of `op` in front of it where it stands behind.
void BlockPlacement::moveOperandsBefore(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || producer->getBlock() != &block || producer->isBeforeInBlock(op))
      continue;
    producer->moveBefore(op);
    moveOperandsBefore(producer);
  }
}

void BlockPlacement::moveStart(const Gather &gather, Operation *after, Operation *previous, const Twine &reason) {
  if (!after || (previous && after->isBeforeInBlock(previous)))
    after = previous;
  if (after)
    gather.start->moveAfter(after);
  else
    gather.start->moveBefore(&block, block.begin());
  moveOperandsBefore(gather.start);
  setReason(gather.start, reason);
  keepQueue(gather);
}

void BlockPlacement::keepAtPoint(const Gather &gather, const Twine &reason) {
  gather.start->moveBefore(gather.done);
  moveOperandsBefore(gather.start);
  setReason(gather.start, reason);
}

/// A gather of an activation ends where it starts: a unit that is used after it may not start before it.
void BlockPlacement::keepQueue(const Gather &gather) {
  Operation *last = nullptr;
  for (Operation *fixed : fixedGathers)
    if (fixed->getAttr("axes") == gather.start->getAttr("axes") && fixed->isBeforeInBlock(gather.done) &&
        gather.start->isBeforeInBlock(fixed) && (!last || last->isBeforeInBlock(fixed)))
      last = fixed;
  if (!last)
    return;
  gather.start->moveAfter(doneOf(last));
  moveOperandsBefore(gather.start);
  setReason(gather.start, "after the gather of " + labelOf(last) + ", which cannot be delayed");
}

} // namespace tessera::schedule
