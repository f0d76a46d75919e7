//===- BufferAssignment.cpp - views and placements ------------------------===//
//
// A *tree* is a value that some op computes (its root) and everything that layout ops derive from it. One layout is
// chosen per tree: the root's own row-major order, the one in which a derived value is row-major, or a part of a
// concatenation that a derived value joins; whichever leaves the fewest bytes to be copied for the consumers. Trees are
// visited from the last to the first, so that the layout of a concatenation is known before those of its parts. Sharing
// of storages between values that follow each other is decided afterwards, in InPlace.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/BufferAssignment.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/lower/InPlace.h"
#include "passes/lower/LibraryLayouts.h"

using namespace mlir;

namespace tessera::lower {

static bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// A constant that is only joined into something is filled in there, and needs no storage.
static bool isFilledInPlace(Value root) {
  if (!root.getDefiningOp<train::ConstantOp>())
    return false;
  return llvm::all_of(root.getUses(), [](OpOperand &use) {
    auto repeat = dyn_cast<exec::RepeatOp>(use.getOwner());
    return isa<train::ConcatOp>(use.getOwner()) || (repeat && use.getOperandNumber() >= repeat.getBatch().size());
  });
}

BufferAssignment::BufferAssignment(func::FuncOp func) : func(func), liveness(func) {
  SmallVector<Value> roots;
  SmallVector<exec::RepeatOp> repeats;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto repeat = dyn_cast<exec::RepeatOp>(op))
      repeats.push_back(repeat);
    else if (!isa<func::FuncOp>(op) && !isLayoutOp(op))
      llvm::copy_if(op->getResults(), std::back_inserter(roots), isTensor);
    return isa<exec::FusionOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  assignArguments();
  for (exec::RepeatOp repeat : repeats)
    assignCarried(repeat);
  for (Value root : llvm::reverse(roots))
    assignRoot(root);
  for (exec::RepeatOp repeat : repeats)
    assignMicroBatches(repeat);
  InPlace(*this).run();
  classifyStorages(*this);
}

const View *BufferAssignment::lookup(Value value) const {
  auto found = views.find(value);
  return found == views.end() ? nullptr : &found->second;
}

bool BufferAssignment::isWhole(const View &view) const {
  return view.layout.offset == 0 && view.layout.iterationStride == 0 && view.layout.rankStride == 0 &&
         view.layout.isContiguous() && view.layout.numElements() == storages[view.storage].elements;
}

unsigned BufferAssignment::addStorage(Value root, exec::ArenaKind arena, exec::MemoryClass memoryClass) {
  auto type = cast<RankedTensorType>(root.getType());
  Storage storage(root);
  storage.name = nameOf(root.getLoc());
  if (Operation *op = root.getDefiningOp(); op && storage.name.empty())
    storage.name = op->getName().stripDialect().str();
  storage.elements = type.getNumElements();
  storage.elementType = type.getElementType();
  storage.arena = arena;
  storage.memoryClass = memoryClass;
  storages.push_back(std::move(storage));
  return storages.size() - 1;
}

void BufferAssignment::setView(Value value, unsigned storage, Layout layout) {
  storages[storage].members.push_back(value);
  storages[storage].lastUse = std::max(storages[storage].lastUse, liveness.lastUse(value));
  views[value] = View{storage, std::move(layout)};
}

void BufferAssignment::assignArguments() {
  for (BlockArgument argument : func.getArguments()) {
    const std::optional<train::ArgRole> role = train::getArgRole(func, argument.getArgNumber());
    auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kName);
    const bool isHeld = train::isParameter(role) || role == train::ArgRole::Derived || role == train::ArgRole::Buffer;
    exec::MemoryClass memoryClass = isHeld                          ? exec::MemoryClass::Parameters
                                    : role == train::ArgRole::State ? exec::MemoryClass::Optimizer
                                                                    : exec::MemoryClass::Inputs;
    bool isOnHost = func.getArgAttr(argument.getArgNumber(), dist::kMemory) != nullptr;
    unsigned storage = addStorage(argument, isOnHost ? exec::ArenaKind::Host : exec::ArenaKind::State, memoryClass);
    if (name)
      storages[storage].name = name.str();
    storages[storage].fixed = true;
    commit(collect(argument), storage, Layout::contiguous(train::shapeOf(argument)));
  }
}

void BufferAssignment::assignCarried(exec::RepeatOp repeat) {
  Block &body = repeat.getBody().front();
  for (auto [i, result] : llvm::enumerate(repeat.getResults())) {
    unsigned storage = addStorage(result, exec::ArenaKind::Activations, exec::MemoryClass::Activations);
    storages[storage].carried = true;
    storages[storage].lastUse = liveness.end(repeat);
    Layout layout = Layout::contiguous(train::shapeOf(result));
    commit(collect(result), storage, layout);
    commit(collect(body.getArgument(1 + repeat.getBatch().size() + i)), storage, layout);
  }
}

void BufferAssignment::assignMicroBatches(exec::RepeatOp repeat) {
  Block &body = repeat.getBody().front();
  // The iteration number is read from a table that is filled in before the loop.
  if (!body.getArgument(0).use_empty()) {
    unsigned storage = addStorage(body.getArgument(0), exec::ArenaKind::Activations, exec::MemoryClass::Workspace);
    storages[storage].elements = repeat.getCount();
    storages[storage].lastUse = liveness.end(repeat);
    Layout table = Layout::contiguous({int64_t(repeat.getCount())});
    commit(collect(body.getArgument(0)), storage, *table.iterationPart());
  }
  for (auto [i, operand] : llvm::enumerate(repeat.getBatch())) {
    const View *whole = lookup(operand);
    BlockArgument micro = body.getArgument(1 + i);
    std::optional<Layout> layout = whole ? whole->layout.iterationPart() : std::nullopt;
    if (!layout)
      continue; // reported by the emission
    storages[whole->storage].lastUse = std::max(storages[whole->storage].lastUse, liveness.end(repeat));
    commit(collect(micro), whole->storage, *layout);
  }
}

BufferAssignment::Tree BufferAssignment::collect(Value root) const {
  Tree tree{{root, -1, true}};
  for (size_t i = 0; i < tree.size(); ++i) {
    SmallVector<Operation *> users;
    for (Operation *user : tree[i].value.getUsers())
      if (isLayoutOp(user))
        users.push_back(user);
    llvm::sort(users, [&](Operation *a, Operation *b) { return liveness.position(a) < liveness.position(b); });
    for (Operation *user : users)
      tree.push_back({user->getResult(0), int(i), tree[i].bijective && isBijective(user)});
  }
  return tree;
}

std::optional<Layout> BufferAssignment::rootLayout(const Tree &tree, int node, Layout layout) const {
  for (; tree[node].parent >= 0; node = tree[node].parent) {
    std::optional<Layout> operand = layoutOfOperand(tree[node].value.getDefiningOp(), layout);
    if (!operand)
      return std::nullopt;
    layout = std::move(*operand);
  }
  return layout;
}

SmallVector<BufferAssignment::Candidate> BufferAssignment::candidates(const Tree &tree) const {
  Value root = tree.front().value;
  SmallVector<Candidate> result;
  auto consider = [&](std::optional<Layout> layout, std::optional<unsigned> storage, OpOperand *placement) {
    if (layout && producesLayout(cast<OpResult>(root), *layout))
      result.push_back({storage, std::move(*layout), placement});
  };
  for (auto [i, node] : llvm::enumerate(tree))
    if (node.bijective)
      consider(rootLayout(tree, i, Layout::contiguous(train::shapeOf(node.value))), std::nullopt, nullptr);
  for (auto [i, node] : llvm::enumerate(tree)) {
    if (!node.bijective)
      continue;
    for (OpOperand &use : node.value.getUses())
      if (std::optional<View> place = wantedPlace(tree, use))
        consider(rootLayout(tree, i, place->layout), place->storage, &use);
  }
  return result;
}

int64_t BufferAssignment::cost(const Tree &tree, const Candidate &candidate) const {
  int64_t total = 0;
  SmallVector<Layout> layouts;
  for (const Node &node : tree) {
    auto type = cast<RankedTensorType>(node.value.getType());
    constexpr int64_t kMost = int64_t{1} << 46; // beyond any memory, so that sums of many stay numbers
    int64_t bytes = std::min(type.getNumElements() * exec::elementBytes(type.getElementType()), kMost);
    std::optional<Layout> layout = candidate.root;
    if (node.parent >= 0)
      layout = layoutOfResult(node.value.getDefiningOp(), layouts[node.parent]);
    if (!layout) {
      total += bytes;
      layout = Layout::contiguous(type.getShape());
    }
    bool copiedForUse = false;
    for (OpOperand &use : node.value.getUses()) {
      if (isLayoutOp(use.getOwner()) || &use == candidate.placement)
        continue;
      if (isa<train::ConcatOp>(use.getOwner()) || wantedPlace(tree, use))
        total += bytes;
      else
        copiedForUse |= !acceptsLayout(use, *layout);
    }
    total += copiedForUse ? bytes : 0;
    layouts.push_back(std::move(*layout));
  }
  return total;
}

void BufferAssignment::commit(const Tree &tree, unsigned storage, const Layout &rootLayout) {
  for (const Node &node : tree) {
    if (node.parent < 0) {
      setView(node.value, storage, rootLayout);
      continue;
    }
    View parent = views.find(tree[node.parent].value)->second;
    if (std::optional<Layout> layout = layoutOfResult(node.value.getDefiningOp(), parent.layout)) {
      setView(node.value, parent.storage, std::move(*layout));
    } else {
      copied.insert(node.value);
      unsigned own = addStorage(node.value, exec::ArenaKind::Activations, exec::MemoryClass::Workspace);
      Layout copy = Layout::contiguous(train::shapeOf(node.value));
      // A part that the rank chooses, of one that it chose already: what it is a part of is copied.
      if (auto slice = node.value.getDefiningOp<dist::SliceLocalOp>()) {
        storages[own].elements = train::tensorType(slice.getOperand()).getNumElements();
        copy = *layoutOfResult(slice, Layout::contiguous(train::shapeOf(slice.getOperand())));
      }
      setView(node.value, own, std::move(copy));
    }
  }
}

void BufferAssignment::assignRoot(Value root) {
  if (isFilledInPlace(root))
    return;
  Tree tree = collect(root);
  SmallVector<Candidate> options = candidates(tree);
  const Candidate *best = nullptr;
  int64_t bestCost = 0;
  for (const Candidate &option : options) {
    int64_t bytes = cost(tree, option);
    if (!best || bytes < bestCost)
      std::tie(best, bestCost) = std::pair(&option, bytes);
  }
  if (best->placement) {
    placed.insert(best->placement);
    storages[*best->storage].hasPlacements = true;
    commit(tree, *best->storage, best->root);
  } else {
    commit(tree, addStorage(root, exec::ArenaKind::Activations, exec::MemoryClass::Activations), best->root);
  }
}

std::string nameOf(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    if (name.getName() == "grad" || name.getName() == "recompute")
      return name.getName().str() + "(" + nameOf(name.getChildLoc()) + ")";
    return name.getName().str();
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nameOf(call.getCallee());
  return "";
}

} // namespace tessera::lower
