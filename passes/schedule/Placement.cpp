//===- Placement.cpp - where the collectives of a block may stand ---------===//
//
// See Placement.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Placement.h"

#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::schedule {

using dist::CollectiveKind;
using dist::CollectiveOpInterface;
using dist::DoneOp;

bool isView(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return isa<train::ConvertOp>(op) || (view && view.isMemoryView() && !view.isIdentity());
}
bool isAssembly(Operation *op) { return isView(op) || isa<train::ConcatOp, train::ConstantOp>(op); }

// --- The order -------------------------------------------------------------------

/// Labels are below 2^62. As many as the square root of a range of them lie in it at most, once it was spread.
static constexpr unsigned kLabelBits = 62;

BlockOrder::BlockOrder(Block &block) : block(block) {
  const uint64_t step = (uint64_t(1) << kLabelBits) / (block.getOperations().size() + 1);
  uint64_t label = 0;
  for (Operation &op : block)
    labels[&op] = label += step;
}

void BlockOrder::moveBefore(Operation *op, Operation *next) {
  op->moveBefore(next);
  place(op);
}

void BlockOrder::moveAfter(Operation *op, Operation *previous) {
  op->moveAfter(previous);
  place(op);
}

void BlockOrder::moveToFront(Operation *op) {
  op->moveBefore(&block, block.begin());
  place(op);
}

void BlockOrder::place(Operation *op) {
  Operation *previous = op->getPrevNode(), *next = op->getNextNode();
  const uint64_t low = previous ? labels.lookup(previous) : 0,
                 high = next ? labels.lookup(next) : uint64_t(1) << kLabelBits;
  labels[op] = low + (high - low) / 2;
  if (high - low < 2)
    spread(op);
}

void BlockOrder::spread(Operation *op) {
  const uint64_t label = labels.lookup(op);
  Operation *first = op, *last = op;
  uint64_t count = 1;
  for (unsigned bits = 2; bits <= kLabelBits; bits += 2) {
    const uint64_t begin = label >> bits << bits, size = uint64_t(1) << bits;
    while (first->getPrevNode() && labels.lookup(first->getPrevNode()) >= begin) {
      first = first->getPrevNode();
      ++count;
    }
    while (last->getNextNode() && labels.lookup(last->getNextNode()) < begin + size) {
      last = last->getNextNode();
      ++count;
    }
    if (count >= uint64_t(1) << (bits / 2))
      continue;
    uint64_t next = begin;
    for (Operation *each = first;; each = each->getNextNode()) {
      labels[each] = next += size / (count + 1);
      if (each == last)
        return;
    }
  }
  llvm_unreachable("a block has less than 2^31 ops");
}

// --- Placement -------------------------------------------------------------------

/// The modules of units that share one with others, by the units' names.
static llvm::StringMap<StringRef> modulesOf(Block &block) {
  llvm::StringMap<StringRef> modules;
  Operation *op = block.getParentOp();
  auto func = isa<func::FuncOp>(op) ? cast<func::FuncOp>(op) : op->getParentOfType<func::FuncOp>();
  for (unsigned index = 0; func && index < func.getNumArguments(); ++index)
    if (auto module = func.getArgAttrOfType<StringAttr>(index, train::kModule))
      modules[train::getArgName(func, index)] = module.getValue();
  return modules;
}

/// Whether a unit is gathered, of which the block may first make another form (8 bits).
static bool isOfUnit(CollectiveOpInterface gather) {
  dist::OriginAttr origin = gather.getOriginAttr();
  return origin &&
         (origin.getPhase() == dist::OriginPhase::Forward || origin.getPhase() == dist::OriginPhase::Backward);
}

BlockPlacement::BlockPlacement(Block &block) : block(block), order(block), modules(modulesOf(block)) {
  for (Operation &op : block) {
    CollectiveOpInterface start = dist::asStart(&op);
    if (!start || !dist::doneOf(start) || dist::doneOf(start)->getBlock() != &block)
      continue;
    const CollectiveKind kind = start.getCollectiveKind();
    if (dist::isReduction(kind))
      reductions.push_back(start);
    else if (kind == CollectiveKind::Permute)
      permutes.push_back(start);
    else if (kind == CollectiveKind::AllGather)
      (isReadyAtStart(start.getOperand()) || isOfUnit(start) ? gathers : fixedGathers).push_back(start);
  }
}

/// The last op of the block that computes what `value` is assembled of; null: it comes from outside.
Operation *BlockPlacement::readyAfter(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block)
    return nullptr;
  if (!isAssembly(op))
    return op;
  Operation *last = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *ready = readyAfter(operand); ready && (!last || order.isBefore(last, ready)))
      last = ready;
  return last;
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
    if (!first || order.isBefore(inBlock, first))
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
    if (!last || order.isBefore(last, inBlock))
      last = inBlock;
  }
  return last;
}

/// Moves `op` right after the last of its operands, views and joins among them first.
void BlockPlacement::hoist(Operation *op) {
  llvm::SmallSetVector<Operation *, 4> producers;
  for (Value operand : op->getOperands())
    if (Operation *producer = operand.getDefiningOp(); producer && producer->getBlock() == &block)
      producers.insert(producer);
  for (Operation *producer : producers)
    if (isAssembly(producer))
      hoist(producer);
  // One that is moved may pass another that was moved before: which is the last is known when all have been.
  Operation *last = nullptr;
  for (Operation *producer : producers)
    if (!last || order.isBefore(last, producer))
      last = producer;
  if (last)
    order.moveAfter(op, last);
  else
    order.moveToFront(op);
}

/// Moves the views of a value down to their first uses, so that the value's first use is one that computes.
void BlockPlacement::sinkUsers(Operation *op) {
  llvm::SmallSetVector<Operation *, 4> views;
  for (Operation *user : op->getUsers())
    if (user->getBlock() == &block && isView(user))
      views.insert(user);
  for (Operation *view : views) {
    sinkUsers(view);
    if (Operation *first = firstUser(view))
      order.moveBefore(view, first);
  }
}

StringRef BlockPlacement::moduleOf(CollectiveOpInterface collective) const {
  dist::OriginAttr origin = collective.getOriginAttr();
  if (!origin || origin.getUnits().size() != 1)
    return "";
  StringRef unit = origin.getUnits().front().getValue();
  auto module = modules.find(unit);
  return module == modules.end() ? unit : module->second;
}

/// Whether two collectives are of different units of one module.
bool BlockPlacement::isOtherOfModule(CollectiveOpInterface a, CollectiveOpInterface b) const {
  StringRef module = moduleOf(a);
  return !module.empty() && module == moduleOf(b) && a.getOriginAttr() != b.getOriginAttr();
}

void BlockPlacement::placePermutes() {
  for (CollectiveOpInterface start : permutes)
    sinkUsers(dist::doneOf(start));
  llvm::DenseMap<ArrayAttr, Operation *> next; // the done of the one that starts next over these axes
  for (CollectiveOpInterface start : llvm::reverse(permutes)) {
    DoneOp done = dist::doneOf(start);
    Operation *limit = firstUser(done);
    StringRef reason = "at the first use of what arrives";
    Operation *&later = next[start.getAxes()];
    if (later && (!limit || order.isBefore(later, limit))) {
      limit = later;
      reason = "before the one that starts next ends";
    }
    if (limit) {
      order.moveBefore(done, limit);
      setReason(done, reason);
    }
    later = done;
  }
}

void BlockPlacement::placeReductions() {
  for (CollectiveOpInterface start : reductions) {
    hoist(start);
    setReason(start, "as soon as its operand is complete");
  }
  llvm::sort(reductions, [&](CollectiveOpInterface a, CollectiveOpInterface b) { return order.isBefore(a, b); });
  for (CollectiveOpInterface start : reductions)
    sinkUsers(dist::doneOf(start));
  for (auto [index, start] : llvm::enumerate(reductions)) {
    DoneOp done = dist::doneOf(start);
    Operation *limit = firstUser(done);
    if (!limit)
      limit = block.getTerminator();
    StringRef reason = "at its first use";
    for (CollectiveOpInterface next : llvm::drop_begin(reductions, index + 1)) {
      if (next.getCollectiveKind() != start.getCollectiveKind() || next.getAxes() != start.getAxes() ||
          next.getReduction() != start.getReduction())
        continue;
      // Units of one module are under way together, and end in their order.
      const bool isTogether = isOtherOfModule(start, next);
      Operation *bound = isTogether ? firstUser(dist::doneOf(next)) : next.getOperation();
      if (bound && order.isBefore(bound, limit)) {
        limit = bound;
        reason = isTogether ? "at the first use of the next unit of its module"
                            : "before the next collective of its kind and axes starts";
      }
      if (!isTogether)
        break;
    }
    order.moveBefore(done, limit);
    setReason(done, reason);
  }
}

SmallVector<Gather> BlockPlacement::placeDones() {
  SmallVector<Gather> placed;
  for (CollectiveOpInterface start : gathers) {
    DoneOp done = dist::doneOf(start);
    sinkUsers(done);
    Operation *first = firstUser(done);
    if (!first)
      continue;
    order.moveBefore(done, first);
    setReason(done, "at the first use of the unit");
    placed.push_back({start, done});
  }
  llvm::sort(placed, [&](const Gather &a, const Gather &b) { return order.isBefore(a.done, b.done); });
  return placed;
}

void BlockPlacement::placeFixedGathers() {
  for (CollectiveOpInterface start : llvm::reverse(fixedGathers)) {
    DoneOp done = dist::doneOf(start);
    sinkUsers(done);
    Operation *limit = firstUser(done);
    if (!limit)
      continue;
    StringRef reason = "at the first use of what arrives";
    for (Operation *op = done->getNextNode(); op != limit; op = op->getNextNode()) {
      CollectiveOpInterface other = isa<DoneOp>(op) ? dist::collectiveBehind(op) : nullptr;
      if (!other || other.getCollectiveKind() != CollectiveKind::AllGather || other.getAxes() != start.getAxes())
        continue;
      limit = op;
      reason = "before the next gather over its axes ends";
      break;
    }
    if (limit == done->getNextNode())
      continue;
    order.moveBefore(done, limit);
    setReason(done, reason);
  }
}

/// Moves what assembles the operand of `op` in front of it where it stands behind.
void BlockPlacement::moveOperandsBefore(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || producer->getBlock() != &block || order.isBefore(producer, op))
      continue;
    order.moveBefore(producer, op);
    moveOperandsBefore(producer);
  }
}

void BlockPlacement::moveStart(const Gather &gather, Operation *after, Operation *previous, const Twine &reason) {
  if (!after || (previous && order.isBefore(after, previous)))
    after = previous;
  // A start moves with what assembles its operand, and not with what computes it.
  Operation *ready = readyAfter(CollectiveOpInterface(gather.start).getOperand());
  const bool isBound = ready && (!after || order.isBefore(after, ready));
  if (isBound)
    after = ready;
  if (after)
    order.moveAfter(gather.start, after);
  else
    order.moveToFront(gather.start);
  moveOperandsBefore(gather.start);
  if (isBound)
    setReason(gather.start, "as soon as its operand is complete");
  else
    setReason(gather.start, reason);
  keepQueue(gather);
}

void BlockPlacement::keepAtPoint(const Gather &gather, const Twine &reason) {
  order.moveBefore(gather.start, gather.done);
  moveOperandsBefore(gather.start);
  setReason(gather.start, reason);
}

/// A gather of an activation ends where it starts: a unit that is used after it may not start before it.
void BlockPlacement::keepQueue(const Gather &gather) {
  CollectiveOpInterface start = gather.start, last;
  for (CollectiveOpInterface fixed : fixedGathers)
    if (fixed.getAxes() == start.getAxes() && order.isBefore(fixed, gather.done) && order.isBefore(start, fixed) &&
        (!last || order.isBefore(last, fixed)))
      last = fixed;
  if (!last)
    return;
  order.moveAfter(start, dist::doneOf(last));
  moveOperandsBefore(start);
  setReason(start, "after the gather of " + last.getText() + ", which cannot be delayed");
}

} // namespace tessera::schedule
