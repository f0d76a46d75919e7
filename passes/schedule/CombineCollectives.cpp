//===- CombineCollectives.cpp - small collectives become one --------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/schedule/Passes.h"
#include "passes/schedule/Placement.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {
#define GEN_PASS_DEF_COMBINECOLLECTIVESPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::schedule;

namespace {

/// The label up to its colon: forward, backward, step, gradient; empty without one.
StringRef phaseOf(Operation *op) {
  StringRef label = labelOf(op);
  return label.contains(':') ? label.split(':').first : StringRef();
}

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth()) / 8;
}

/// Of the whole tensor.
int64_t wholeBytes(Operation *op) {
  return isa<AllGatherOp>(op) ? bytesOf(op->getResult(0)) : bytesOf(op->getOperand(0));
}

class BlockCombiner {
public:
  BlockCombiner(Block &block, MeshAttr mesh, int64_t bytes, int64_t ahead)
      : block(block), mesh(mesh), bytes(bytes), ahead(static_cast<size_t>(ahead)) {}

  /// All-reduces last: those that add up replicas of joined reduce-scatters have then moved behind them.
  void run() {
    combineAll<AllGatherOp>();
    combineAll<ReduceScatterOp>();
    combineAll<AllReduceOp>();
  }

private:
  struct Group {
    SmallVector<Operation *> members;
    int64_t bytes = 0;
  };

  template <typename Op> void combineAll() {
    byKey.clear();
    for (Op op : block.getOps<Op>())
      add(op);
    for (auto &[key, groups] : byKey)
      for (const Group &group : groups)
        if (group.members.size() > 1)
          combine(group.members);
  }

  /// What collectives must have in common.
  static Attribute keyOf(Operation *op) {
    Builder builder(op->getContext());
    Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
    SmallVector<Attribute> key{op->getName().getIdentifier(), op->getAttr("axes"), TypeAttr::get(element),
                               builder.getStringAttr(phaseOf(op))};
    if (Attribute kind = op->getAttr("kind"))
      key.push_back(kind);
    return builder.getArrayAttr(key);
  }

  void add(Operation *op) {
    const int64_t size = wholeBytes(op);
    if (size > bytes)
      return;
    if (auto dim = op->getAttrOfType<IntegerAttr>("dim"); dim && dim.getInt() != 0) {
      op->emitRemark() << labelOf(op) << " is not combined: it works along dimension " << dim.getInt()
                       << ", and only along dimension 0 do the parts of ranks lie one behind the other";
      return;
    }
    SmallVector<Group> &groups = byKey[keyOf(op)];
    std::string why = groups.empty() ? "" : whyNot(op, size, groups.back());
    if (!groups.empty() && why.empty()) {
      groups.back().members.push_back(op);
      groups.back().bytes += size;
      return;
    }
    if (!groups.empty())
      op->emitRemark() << labelOf(op) << " is not combined with " << labelOf(groups.back().members.back()) << ": "
                       << why;
    groups.push_back({{op}, size});
  }

  /// Why `op` cannot join the group; empty if it can.
  std::string whyNot(Operation *op, int64_t size, const Group &group) const {
    if (group.bytes + size > bytes)
      return (Twine(group.bytes + size) + " bytes together, the threshold is " + Twine(bytes)).str();
    if (!isa<AllGatherOp>(op)) {
      for (Operation *member : group.members)
        if (Operation *user = firstComputing(member); user && !op->isBeforeInBlock(user))
          return (labelOf(member) + " is used before the other is complete").str();
      return "";
    }
    if (!isAvailable(op->getOperand(0), group.members.front()))
      return "its operand is computed after the first one begins";
    // Gathers of whole-step copies are kept anyway.
    if (phaseOf(op) == "step" || phaseOf(op).empty())
      return "";
    if (ahead == 0)
      return "units are not gathered ahead, and together both would be in memory";
    if (group.members.size() >= ahead)
      return (Twine(ahead) + (ahead == 1 ? " unit is" : " units are") + " gathered ahead, and as many are together")
          .str();
    if (isFirstGather(group.members.front()))
      return "nothing hides the first gather of the block, which must not grow";
    return "";
  }

  bool isFirstGather(Operation *op) const {
    for (Operation &other : block)
      if (isa<AllGatherOp>(other))
        return &other == op;
    return false;
  }

  /// What may wait for a joined collective: a view of its result, or the sum over replicas of a part.
  static bool canSink(Operation *op, Operation *user) {
    return isView(user) || (isa<ReduceScatterOp>(op) && isa<AllReduceOp>(user));
  }

  /// The first op that reads the result and cannot wait for the joined collective.
  Operation *firstComputing(Operation *op) const {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (inBlock == user && canSink(op, user))
        inBlock = firstComputing(user);
      if (inBlock && (!first || inBlock->isBeforeInBlock(first)))
        first = inBlock;
    }
    return first;
  }

  /// `value` exists in front of `op`, or is a view (such as a narrow copy of a part) that can be made there.
  bool isAvailable(Value value, Operation *op) const {
    Operation *producer = value.getDefiningOp();
    return !producer || producer->getBlock() != &block || producer->isBeforeInBlock(op) ||
           (isView(producer) && isAvailable(producer->getOperand(0), op));
  }

  /// Moves the views that make `value` in front of `op`.
  void hoistViews(Value value, Operation *op) const {
    Operation *producer = value.getDefiningOp();
    if (!producer || producer->getBlock() != &block || producer->isBeforeInBlock(op))
      return;
    producer->moveBefore(op);
    hoistViews(producer->getOperand(0), producer);
  }

  void combine(ArrayRef<Operation *> members) {
    Operation *first = members.front(), *last = members.back();
    const bool isGather = isa<AllGatherOp>(first);
    OpBuilder builder(isGather ? first : last);
    SmallVector<Location> locations;
    std::string label;
    for (Operation *member : members) {
      locations.push_back(member->getLoc());
      StringRef name = labelOf(member);
      label += label.empty() ? name.str() : "," + (name.contains(':') ? name.split(':').second : name).str();
      if (isGather)
        hoistViews(member->getOperand(0), first);
      else
        sinkUsers(member, last);
    }
    train::MarkBackward listener;
    if (llvm::all_of(members, [](Operation *member) { return member->hasAttr(train::kBackward); }))
      builder.setListener(&listener);
    train::Build build(builder, builder.getFusedLoc(locations));
    Value joined = join(build, members);
    auto axes = first->getAttrOfType<ArrayAttr>("axes");
    const int64_t ranks = mesh.getGroupSize(axes);
    auto type = cast<RankedTensorType>(joined.getType());
    auto named = builder.getStringAttr(label);
    Value result;
    if (isGather)
      result =
          AllGatherOp::create(builder, build.loc, type.clone({type.getDimSize(0) * ranks}), joined, axes, 0, named);
    else if (auto scatter = dyn_cast<ReduceScatterOp>(first))
      result = ReduceScatterOp::create(builder, build.loc, type.clone({type.getDimSize(0) / ranks}), joined, axes, 0,
                                       scatter.getKind(), named);
    else
      result = AllReduceOp::create(builder, build.loc, type, joined, axes, cast<AllReduceOp>(first).getKind(), named);
    part(build, members, result, ranks);
    for (Operation *member : members)
      member->erase();
  }

  /// Moves the users of a member's result that stand in front of `end` behind it; all of them can wait.
  void sinkUsers(Operation *op, Operation *end) {
    SmallVector<Operation *> users(op->getUsers());
    for (Operation *user : users)
      if (user->getBlock() == &block && canSink(op, user) && user->isBeforeInBlock(end)) {
        user->moveAfter(end);
        sinkUsers(user, user);
      }
  }

  /// The operands in one flat tensor; where ranks hold or get parts, part by part.
  Value join(train::Build &build, ArrayRef<Operation *> members) {
    const bool isScatter = isa<ReduceScatterOp>(members.front());
    const int64_t ranks = mesh.getGroupSize(members.front()->getAttrOfType<ArrayAttr>("axes"));
    SmallVector<Value> flat;
    int64_t total = 0;
    for (Operation *member : members) {
      Value operand = member->getOperand(0);
      const int64_t elements = cast<RankedTensorType>(operand.getType()).getNumElements();
      total += elements;
      flat.push_back(isScatter ? build.reshape(operand, {ranks, elements / ranks})
                               : build.reshape(operand, {elements}));
    }
    Value joined = build.concat(flat, isScatter ? 1 : 0);
    return isScatter ? build.reshape(joined, {total}) : joined;
  }

  /// Gives each member's users its part of `result`.
  void part(train::Build &build, ArrayRef<Operation *> members, Value result, int64_t ranks) {
    const bool isGather = isa<AllGatherOp>(members.front());
    const int64_t total = cast<RankedTensorType>(result.getType()).getNumElements();
    if (isGather)
      result = build.reshape(result, {ranks, total / ranks});
    int64_t begin = 0;
    for (Operation *member : members) {
      auto type = cast<RankedTensorType>(member->getResult(0).getType());
      const int64_t end = begin + type.getNumElements() / (isGather ? ranks : 1);
      Value own = isGather ? build.slice(result, {0, begin}, {ranks, end}) : build.slice(result, {begin}, {end});
      member->getResult(0).replaceAllUsesWith(build.reshape(own, type.getShape()));
      begin = end;
    }
  }

  Block &block;
  MeshAttr mesh;
  int64_t bytes;
  size_t ahead;
  llvm::MapVector<Attribute, SmallVector<Group>> byKey;
};

struct CombineCollectivesPass : tessera::impl::CombineCollectivesPassBase<CombineCollectivesPass> {
  using CombineCollectivesPassBase::CombineCollectivesPassBase;
  void runOnOperation() override {
    if (bytes < 0 || ahead < 0) {
      getOperation().emitError() << "bytes and ahead are " << bytes.getValue() << " and " << ahead.getValue()
                                 << ", expected at least 0";
      return signalPassFailure();
    }
    auto module = getOperation()->getParentOfType<ModuleOp>();
    auto mesh = module ? module->getAttrOfType<MeshAttr>(kMesh) : nullptr;
    if (!mesh) {
      getOperation().emitError() << "expected a mesh in the module attribute '" << kMesh << "'";
      return signalPassFailure();
    }
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      BlockCombiner(*block, mesh, bytes, ahead).run();
  }
};

} // namespace
