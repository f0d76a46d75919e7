//===- InPlace.cpp - values that overwrite what dies ----------------------===//
//
// See InPlace.h. Every rule is the same argument: the old value has no reader after the op that makes the new one, and
// that op may write where it reads (a fusion says so per result; an all-reduce always may).
//
//===----------------------------------------------------------------------===//

#include "passes/lower/InPlace.h"

#include "compiler/dialect/dist/Collective.h"
#include "compiler/dialect/train/Builders.h"

using namespace mlir;

namespace tessera::lower {

void InPlace::run() {
  shareArguments();
  placeResults();
  assignment.func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto fusion = dyn_cast<exec::FusionOp>(op)) {
      shareFusion(fusion);
      return WalkResult::skip();
    }
    if (auto repeat = dyn_cast<exec::RepeatOp>(op))
      shareInits(repeat);
    else if (auto collective = dist::collectiveBehind(op);
             collective && collective.getCollectiveKind() == dist::CollectiveKind::AllReduce &&
             isa<RankedTensorType>(op->getResult(0).getType()))
      shareReduction(collective, op->getResult(0));
    return WalkResult::advance();
  });
}

bool InPlace::isFree(Value root) const {
  const View *view = assignment.lookup(root);
  if (!view || !assignment.isWhole(*view))
    return false;
  const Storage &storage = assignment.getStorage(view->storage);
  return storage.root == root && !storage.fixed && !storage.carried && !storage.hasPlacements;
}

bool InPlace::sameBytes(Value a, Value b) const {
  return assignment.getStorage(assignment.lookup(a)->storage).bytes() ==
         assignment.getStorage(assignment.lookup(b)->storage).bytes();
}

bool InPlace::diesAt(Value operand, Operation *op, unsigned lastRead) const {
  const View *view = assignment.lookup(operand);
  if (!view || !assignment.isWhole(*view))
    return false;
  const Storage &storage = assignment.getStorage(view->storage);
  unsigned position = assignment.liveness.position(op);
  for (Value member : storage.members)
    if (assignment.liveness.lastUse(member) > (member == operand ? lastRead : position))
      return false;
  return storage.lastUse <= lastRead;
}

void InPlace::merge(unsigned from, unsigned into) {
  Storage &source = assignment.storages[from], &target = assignment.storages[into];
  for (Value member : source.members) {
    assignment.views.find(member)->second.storage = into;
    target.members.push_back(member);
  }
  target.lastUse = std::max(target.lastUse, source.lastUse);
  source.members.clear();
}

Value InPlace::overwritable(OpResult result) const {
  auto fusion = dyn_cast<exec::FusionOp>(result.getOwner());
  std::optional<ArrayRef<int64_t>> inplace = fusion ? fusion.getInplace() : std::nullopt;
  if (!inplace || (*inplace)[result.getResultNumber()] < 0)
    return nullptr;
  unsigned number = (*inplace)[result.getResultNumber()];
  Value operand = fusion.getOperands()[number];
  const View *view = assignment.lookup(operand);
  for (auto [i, other] : llvm::enumerate(fusion.getOperands())) {
    const View *otherView = assignment.lookup(other);
    if (i != number && view && otherView && otherView->storage == view->storage)
      return nullptr;
  }
  // A result that shares the storage already has it alone.
  for (Value other : fusion.getResults())
    if (const View *otherView = assignment.lookup(other); view && otherView && otherView->storage == view->storage)
      return nullptr;
  return operand;
}

bool InPlace::continuesAccumulator(Value operand, Value result, Operation *op) const {
  auto argument = dyn_cast<BlockArgument>(operand);
  auto repeat = argument ? dyn_cast<exec::RepeatOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (!repeat || op->getBlock() != argument.getOwner())
    return false;
  int64_t carried = int64_t(argument.getArgNumber()) - 1 - int64_t(repeat.getBatch().size());
  if (carried < 0)
    return false;
  // Nothing reads the old sum later on in the body, and what the loop carries on is the result, in its whole storage.
  unsigned position = assignment.liveness.position(op);
  for (const BufferAssignment::Node &node : assignment.collect(argument))
    if (assignment.liveness.lastUse(node.value) > position)
      return false;
  Value next = argument.getOwner()->getTerminator()->getOperand(carried);
  const View *nextView = assignment.lookup(next);
  return nextView && nextView->storage == assignment.lookup(result)->storage && assignment.isWhole(*nextView);
}

void InPlace::shareFusion(exec::FusionOp fusion) {
  for (OpResult result : fusion->getResults()) {
    Value operand = overwritable(result);
    if (!operand || !isFree(result) || !assignment.lookup(operand) || !sameBytes(operand, result))
      continue;
    unsigned position = assignment.liveness.position(fusion);
    const Storage &storage = assignment.getStorage(assignment.lookup(operand)->storage);
    bool dies = storage.carried && isa<BlockArgument>(operand) ? continuesAccumulator(operand, result, fusion)
                                                               : !storage.fixed && diesAt(operand, fusion, position);
    if (dies)
      merge(assignment.lookup(result)->storage, assignment.lookup(operand)->storage);
  }
}

void InPlace::shareReduction(Operation *begin, Value result) {
  Value operand = begin->getOperand(0);
  if (!isFree(result) || !assignment.lookup(operand) || !sameBytes(operand, result) ||
      assignment.getStorage(assignment.lookup(operand)->storage).fixed ||
      assignment.getStorage(assignment.lookup(operand)->storage).carried)
    return;
  // Nothing else reads the operand while the reduction is under way.
  if (operand.hasOneUse() && diesAt(operand, begin, assignment.liveness.position(result.getDefiningOp())))
    merge(assignment.lookup(result)->storage, assignment.lookup(operand)->storage);
}

void InPlace::shareInits(exec::RepeatOp repeat) {
  for (auto [init, result] : llvm::zip_equal(repeat.getInit(), repeat.getResults())) {
    if (!isFree(init) || !sameBytes(init, result) || !diesAt(init, repeat, assignment.liveness.position(repeat)))
      continue;
    merge(assignment.lookup(init)->storage, assignment.lookup(result)->storage);
  }
}

void InPlace::shareArguments() {
  auto returned = cast<func::ReturnOp>(assignment.func.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(returned.getOperands())) {
    auto alias = assignment.func.getResultAttrOfType<IntegerAttr>(i, train::kAlias);
    if (!alias)
      continue;
    BlockArgument argument = assignment.func.getArgument(alias.getInt());
    const View *next = assignment.lookup(value);
    if (!next || !assignment.isWhole(*next))
      continue;
    Value root = assignment.getStorage(next->storage).root;
    if (!isFree(root) || !sameBytes(root, argument) || root.getParentBlock() != argument.getOwner())
      continue;
    Operation *definition = root.getDefiningOp();
    if (auto done = dyn_cast<dist::DoneOp>(definition))
      definition = dist::startOf(done); // writes from here on
    const Storage &storage = assignment.getStorage(assignment.lookup(argument)->storage);
    unsigned position = assignment.liveness.position(definition);
    bool overwrites = overwritable(cast<OpResult>(root)) == argument && storage.lastUse <= position;
    if (overwrites || storage.lastUse < position)
      merge(next->storage, assignment.lookup(argument)->storage);
  }
}

void InPlace::placeResults() {
  auto returned = cast<func::ReturnOp>(assignment.func.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(returned.getOperands())) {
    const View *view = assignment.lookup(value);
    if (assignment.func.getResultAttr(i, train::kAlias) || !view || !assignment.isWhole(*view))
      continue;
    Storage &storage = assignment.storages[view->storage];
    if (storage.fixed)
      continue;
    storage.fixed = true;
    storage.arena = exec::ArenaKind::State;
    storage.memoryClass = exec::MemoryClass::Workspace;
  }
}

void classifyStorages(BufferAssignment &assignment) {
  auto mark = [&](Value value, exec::ArenaKind arena, exec::MemoryClass memoryClass) {
    const View *view = assignment.lookup(value);
    if (!view || assignment.storages[view->storage].fixed)
      return;
    assignment.storages[view->storage].arena = arena;
    assignment.storages[view->storage].memoryClass = memoryClass;
  };
  auto gradient = [&](Value value) {
    if (cast<RankedTensorType>(value.getType()).getNumElements() > 1)
      mark(value, exec::ArenaKind::Activations, exec::MemoryClass::Gradients);
  };
  assignment.func.walk([&](Operation *op) {
    auto done = dyn_cast<dist::DoneOp>(op);
    auto copy = done ? dyn_cast_or_null<dist::CopyStartOp>(dist::startOf(done)) : dist::CopyStartOp();
    if (copy) {
      const View *source = assignment.lookup(copy.getOperand());
      mark(done, copy.getTo() == dist::kHostMemory ? exec::ArenaKind::Host : exec::ArenaKind::Activations,
           source ? assignment.storages[source->storage].memoryClass : exec::MemoryClass::Activations);
    } else if (dist::CollectiveOpInterface collective = dist::collectiveBehind(op)) {
      const bool givesTensor = isa<RankedTensorType>(op->getResult(0).getType());
      if (dist::isReduction(collective.getCollectiveKind())) {
        gradient(collective.getOperand());
        if (givesTensor)
          gradient(op->getResult(0));
      } else if (collective.getCollectiveKind() == dist::CollectiveKind::AllGather && givesTensor) {
        mark(op->getResult(0), exec::ArenaKind::Activations, exec::MemoryClass::Communication);
      }
    } else if (auto fusion = dyn_cast<exec::FusionOp>(op)) {
      if (auto operands = fusion->getAttrOfType<DenseI64ArrayAttr>(train::kGradOperands))
        for (int64_t operand : operands.asArrayRef())
          gradient(fusion.getOperands()[operand]);
    } else if (auto repeat = dyn_cast<exec::RepeatOp>(op)) {
      llvm::for_each(repeat.getResults(), gradient);
    }
  });
}

} // namespace tessera::lower
