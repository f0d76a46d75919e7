//===- Placement.cpp - places that consumers have for a value -------------===//
//
// The part of buffer assignment that says where a value should be made so that nothing moves it: its part of a
// concatenation; the place of what is made from it by overwriting it; the sum that a loop carries on, if everything
// that reads the old sum overwrites exactly what it read.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/BufferAssignment.h"
#include "passes/lower/LibraryLayouts.h"

using namespace mlir;

namespace tessera::lower {

/// The same elements in the same order; strides of dimensions of size 1 do not count.
static bool sameElements(const Layout &a, const Layout &b) {
  if (a.shape != b.shape || a.offset != b.offset || a.iterationStride != b.iterationStride ||
      a.rankStride != b.rankStride)
    return false;
  for (size_t dim = 0; dim < a.shape.size(); ++dim)
    if (a.shape[dim] > 1 && a.strides[dim] != b.strides[dim])
      return false;
  return true;
}

static Layout partOf(train::ConcatOp concat, unsigned operand, const Layout &whole) {
  int64_t dim = concat.getDim(), start = 0;
  for (Value before : concat.getOperands().take_front(operand))
    start += train::shapeOf(before)[dim];
  return whole.part(dim, start, train::shapeOf(concat.getOperand(operand))[dim]);
}

/// Whether the tree's root may be made where `result` will lie, which overwrites it at `use`: nothing reads any value
/// of the tree later on, and nothing else of it while it is overwritten.
bool BufferAssignment::mayPrecede(const Tree &tree, OpOperand &use, OpResult result) const {
  Value root = tree.front().value;
  Operation *op = result.getOwner();
  if (op->getBlock() != root.getParentBlock())
    return false;
  unsigned position = liveness.position(op);
  for (const Node &node : tree) {
    if (liveness.lastUse(node.value) > position)
      return false;
    for (OpOperand &other : node.value.getUses())
      if (other.getOwner() == op && &other != &use)
        return false;
  }
  return true;
}

std::optional<View> BufferAssignment::wantedPlace(const Tree &tree, OpOperand &use) const {
  Operation *user = use.getOwner();
  Value root = tree.front().value;
  if (auto concat = dyn_cast<train::ConcatOp>(user)) {
    const View *whole = lookup(concat.getResult());
    if (!whole || storages[whole->storage].fixed || concat->getBlock() != root.getParentBlock())
      return std::nullopt;
    return View{whole->storage, partOf(concat, use.getOperandNumber(), whole->layout)};
  }
  if (OpResult result = overwrittenBy(use)) {
    const View *place = lookup(result);
    // A kernel's result with a storage of its own takes the operand's later on, if that is possible.
    bool shared = place && !storages[place->storage].fixed &&
                  (isa<exec::AddProductOp, exec::EpilogueProductOp>(user) || storages[place->storage].root != result);
    return shared && mayPrecede(tree, use, result) ? std::optional(*place) : std::nullopt;
  }
  if (isa<exec::YieldOp>(user) && isa<exec::RepeatOp>(user->getParentOp()) &&
      root.getParentBlock() == user->getBlock() && continuesSum(use))
    return *lookup(user->getParentOp()->getResult(use.getOperandNumber()));
  return std::nullopt;
}

bool BufferAssignment::continuesSum(OpOperand &yielded) const {
  auto repeat = cast<exec::RepeatOp>(yielded.getOwner()->getParentOp());
  Block &body = repeat.getBody().front();
  BlockArgument sum = body.getArgument(1 + repeat.getBatch().size() + yielded.getOperandNumber());
  const View *whole = lookup(repeat.getResult(yielded.getOperandNumber()));

  // Follow the new sum back, with the layout that each value would have, to the reads of the old one.
  DenseSet<OpOperand *> inPlace;
  SmallVector<std::tuple<OpOperand *, Layout>> pending = {{&yielded, whole->layout}};
  while (!pending.empty()) {
    auto [use, layout] = pending.pop_back_val();
    Value value = use->get();
    if (const View *old = lookup(value); old && old->storage == whole->storage) {
      if (sameElements(old->layout, layout))
        inPlace.insert(use);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &body)
      continue;
    if (isLayoutOp(op)) {
      if (std::optional<Layout> operand = layoutOfOperand(op, layout))
        pending.push_back({&op->getOpOperand(0), *operand});
    } else if (auto concat = dyn_cast<train::ConcatOp>(op)) {
      for (OpOperand &part : concat->getOpOperands())
        pending.push_back({&part, partOf(concat, part.getOperandNumber(), layout)});
    } else {
      for (OpOperand &operand : op->getOpOperands())
        if (overwrittenBy(operand) == value)
          pending.push_back({&operand, layout});
    }
  }
  for (const Node &node : collect(sum))
    for (OpOperand &use : node.value.getUses())
      if (!isLayoutOp(use.getOwner()) && !inPlace.contains(&use))
        return false;
  return true;
}

} // namespace tessera::lower
