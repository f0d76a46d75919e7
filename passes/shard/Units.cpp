#include "passes/shard/Units.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/CountValid.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <functional>

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {

/// Whether `op` quantises rows with a scale for each of them, or for each element, as any part of the rows can be.
static bool quantizesRows(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (!quantize || tensorType(quantize.getScale()).getRank() != 2)
    return false;
  ArrayRef<int64_t> scale = shapeOf(quantize.getScale());
  ArrayRef<int64_t> shape = shapeOf(quantize.getResult());
  return scale[0] == shape[0] && (scale[1] == 1 || scale[1] == shape[1]);
}

/// Whether `op` cuts a unit into chunks that are quantised.
static bool isQuantized(Operation *op) { return isa<ReshapeOp>(op) && llvm::any_of(op->getUsers(), quantizesRows); }

/// Whether `op` reads rows of chunks one by one: their casts, and their largest values, of all of a row or of a part.
static bool readsRows(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return quantizesRows(op) || isa<SelectOp>(op) ||
         (reduce && reduce.getKind() == ReduceKind::Max && reduce.getDimensions() == ArrayRef<int64_t>{1});
}

/// A weight may have the shape of its unit's chunks, so that what reads it otherwise (scales of its columns) shares ops
/// with what quantises the chunks: that gets ops of its own. Of `op`, the chunks or their absolute values.
static void separateReads(Operation *op) {
  const SmallVector<Operation *> users(op->getUsers());
  for (Operation *user : users)
    if (isa<AbsOp>(user) && llvm::any_of(user->getUsers(), readsRows))
      separateReads(user);
  auto isOther = [](OpOperand &use) {
    Operation *user = use.getOwner();
    return !readsRows(user) && !(isa<AbsOp>(user) && llvm::any_of(user->getUsers(), readsRows));
  };
  if (llvm::none_of(op->getUses(), isOther))
    return;
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  op->getResult(0).replaceUsesWithIf(builder.clone(*op)->getResult(0), isOther);
}

void separateQuantizedReads(func::FuncOp func) {
  for (BlockArgument unit : func.getArguments()) {
    const SmallVector<Operation *> users(unit.getUsers());
    for (Operation *user : users)
      if (isQuantized(user))
        separateReads(user);
  }
}

/// What a unit is quantised to.
static SmallVector<Value> quantizedFrom(Value unit) {
  SmallVector<Value> values;
  for (Operation *chunks : unit.getUsers())
    if (isQuantized(chunks))
      for (Operation *user : chunks->getUsers())
        if (quantizesRows(user))
          values.push_back(user->getResult(0));
  return values;
}

/// The only compute use of a unit, if that makes it narrower.
static Operation *castOf(const Unit &unit) {
  SmallVector<OpOperand *> uses = computeUses(unit, unit.argument);
  auto cast = uses.size() == 1 ? dyn_cast<ConvertOp>(uses.front()->getOwner()) : ConvertOp();
  auto bits = [](Value value) { return tensorType(value).getElementTypeBitWidth(); };
  return cast && bits(cast.getResult()) < bits(cast.getOperand()) ? cast.getOperation() : nullptr;
}

SmallVector<Unit> findUnits(func::FuncOp func) {
  SmallVector<Unit> units;
  Operation *end = func.getBody().front().getTerminator();
  for (BlockArgument arg : func.getArguments()) {
    const std::optional<ArgRole> role = getArgRole(func, arg.getArgNumber());
    if (role != ArgRole::Param && !(role == ArgRole::Frozen && func.getArgAttr(arg.getArgNumber(), kSegments)))
      continue;
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kName);
    Unit &unit = units.emplace_back();
    unit.argument = arg;
    unit.name = name ? name.getValue() : StringRef();
    for (Operation *user : arg.getUsers())
      if (auto update = dyn_cast<OptimizerUpdateOpInterface>(user); update && update.getParam() == arg) {
        unit.update = user;
        unit.gradient = update.getGrad();
      }
    for (auto [index, value] : llvm::enumerate(end->getOperands()))
      if (auto of = func.getResultAttrOfType<StringAttr>(index, kOf); of && of == unit.name && !unit.gradient)
        unit.gradient = value;
    unit.cast = castOf(unit);
    unit.reads.append(quantizedFrom(arg));
    if (unit.cast)
      unit.reads.push_back(unit.cast->getResult(0));
    else if (unit.reads.empty() || !computeUses(unit, arg).empty())
      unit.reads.push_back(arg);
  }
  return units;
}

/// An op that only shows a part of a unit in another shape.
static bool isViewOfUnit(Operation *op) {
  IndexMappingOpInterface view = asStaticView(op);
  return isa<ConvertOp>(op) || (view && view.isInjective());
}

namespace {

/// Separates the uses of a unit by phase. Backward uses below a shared view get their own copy of the view.
class PhaseSplitter {
public:
  PhaseSplitter(Unit &unit, Value read) : unit(unit), read(read) {}

  SmallVector<ComputeUses> run() {
    for (OpOperand *use : computeUses(unit, read))
      visit(*use);
    for (ComputeUses &entry : groups)
      for (OpOperand *use : entry.uses)
        if (use->getOwner()->isBeforeInBlock(entry.first))
          entry.first = use->getOwner();
    llvm::stable_sort(groups, [](const ComputeUses &a, const ComputeUses &b) { return a.isBackward < b.isBackward; });
    return std::move(groups);
  }

private:
  void visit(OpOperand &use) {
    Operation *user = use.getOwner();
    if (isMarkedBackward(user))
      return add(use, true);
    if (!isViewOfUnit(user))
      return add(use, false);
    if (Operation *copy = copyForBackward(user))
      add(copy->getOpOperand(0), true);
    if (user->use_empty())
      user->erase();
    else
      add(use, false);
  }

  /// Moves the backward uses below the view `view` to a copy, placed before the first of them; null if there are none.
  Operation *copyForBackward(Operation *view) {
    SmallVector<OpOperand *> moved;
    for (OpOperand &use : llvm::make_early_inc_range(view->getResult(0).getUses())) {
      Operation *user = use.getOwner();
      if (isMarkedBackward(user)) {
        moved.push_back(&use);
      } else if (isViewOfUnit(user)) {
        if (Operation *copy = copyForBackward(user))
          moved.push_back(&copy->getOpOperand(0));
        if (user->use_empty())
          user->erase();
      }
    }
    if (moved.empty())
      return nullptr;
    Operation *first = nullptr;
    for (OpOperand *use : moved) {
      Operation *user = view->getBlock()->findAncestorOpInBlock(*use->getOwner());
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    OpBuilder builder(first);
    Operation *copy = builder.clone(*view);
    markBackward(copy);
    for (OpOperand *use : moved)
      use->set(copy->getResult(0));
    return copy;
  }

  void add(OpOperand &use, bool backward) {
    Block *block = use.getOwner()->getBlock();
    auto *group = llvm::find_if(groups, [&](const ComputeUses &entry) {
      return entry.isBackward == backward && entry.first->getBlock() == block;
    });
    if (group == groups.end())
      groups.push_back({backward, use.getOwner(), {&use}});
    else
      group->uses.push_back(&use);
  }

  Unit &unit;
  Value read;
  SmallVector<ComputeUses> groups;
};

} // namespace

SmallVector<OpOperand *> computeUses(const Unit &unit, Value read) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : read.getUses())
    if (use.getOwner() != unit.update && !isa<func::ReturnOp>(use.getOwner()) && !isQuantized(use.getOwner()))
      uses.push_back(&use);
  return uses;
}

SmallVector<ComputeUses> splitComputeUses(Unit &unit, Value read) { return PhaseSplitter(unit, read).run(); }

namespace {
/// What of a block computes with units, in the order of the block.
struct BlockUse {
  Operation *op;
  BlockArgument unit;
};
} // namespace

/// Adds the ops that compute with `value`, through views. What is computed again is left out: it stands where backward
/// comes to need it.
static void collectUses(Value value, BlockArgument unit, llvm::MapVector<Block *, SmallVector<BlockUse>> &uses) {
  for (Operation *user : value.getUsers()) {
    if (isa<OptimizerUpdateOpInterface, func::ReturnOp>(user) || user->hasAttr(kRecompute))
      continue;
    if (isViewOfUnit(user))
      collectUses(user->getResult(0), unit, uses);
    else
      uses[user->getBlock()].push_back({user, unit});
  }
}

llvm::DenseMap<Block *, BlockArgument> findTurningUnits(ArrayRef<Unit> units) {
  llvm::MapVector<Block *, SmallVector<BlockUse>> uses;
  for (const Unit &unit : units)
    for (Value read : unit.reads)
      collectUses(read, unit.argument, uses);
  llvm::DenseMap<Block *, BlockArgument> result;
  for (auto &[block, list] : uses) {
    llvm::stable_sort(list, [](const BlockUse &a, const BlockUse &b) { return a.op->isBeforeInBlock(b.op); });
    auto *turn = llvm::find_if(list, [](const BlockUse &use) { return isMarkedBackward(use.op); });
    if (turn == list.begin() || turn == list.end())
      continue;
    BlockArgument unit = turn->unit;
    auto isOwn = [&](const BlockUse &use) { return use.unit == unit; };
    ArrayRef<BlockUse> forward(list.begin(), turn);
    const auto *first = llvm::find_if(forward, isOwn);
    if (isOwn(forward.back()) && std::any_of(first, forward.end(), std::not_fn(isOwn)))
      result[block] = unit;
  }
  return result;
}

llvm::DenseSet<Operation *> separateGradients(func::FuncOp func, MutableArrayRef<Unit> units) {
  llvm::DenseSet<Operation *> separated;
  llvm::DenseSet<Value> taken;
  auto separate = [&](OpOperand &use, StringRef name) {
    if (taken.insert(use.get()).second)
      return;
    OpBuilder builder(use.getOwner());
    auto own =
        BarrierOp::create(builder, use.get().getLoc(), use.get().getType(), use.get(), builder.getStringAttr(name));
    markBackward(own);
    use.set(own);
    separated.insert(own);
  };
  Operation *end = func.getBody().front().getTerminator();
  for (Unit &unit : units) {
    if (!unit.gradient)
      continue;
    if (auto accumulate = unit.gradient.getDefiningOp<AccumulateOp>(); accumulate && !taken.contains(unit.gradient))
      separate(
          accumulate.getBody().front().getTerminator()->getOpOperand(cast<OpResult>(unit.gradient).getResultNumber()),
          unit.name);
    for (OpOperand &use : unit.gradient.getUses()) {
      auto of =
          use.getOwner() == end ? func.getResultAttrOfType<StringAttr>(use.getOperandNumber(), kOf) : StringAttr();
      if (use.getOwner() != unit.update && !(of && of == unit.name))
        continue;
      separate(use, unit.name);
      unit.gradient = use.get();
      break;
    }
  }
  return separated;
}

void expandCountValid(func::FuncOp func) {
  func.walk([](CountValidOp op) {
    OpBuilder builder(op);
    Build build(builder, op.getLoc());
    op.getResult().replaceAllUsesWith(writeOutCount(build, op));
    op.erase();
  });
}

} // namespace tessera::shard
