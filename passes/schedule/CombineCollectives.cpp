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

/// The phase whose units the collective serves; none for results of the step and what is of no unit, which join freely.
std::optional<OriginPhase> phaseOf(CollectiveOpInterface op) {
  OriginAttr origin = op.getOriginAttr();
  return origin && origin.getPhase() != OriginPhase::Result ? std::optional(origin.getPhase()) : std::nullopt;
}

bool isGather(CollectiveOpInterface op) { return op.getCollectiveKind() == CollectiveKind::AllGather; }
bool isScatter(CollectiveOpInterface op) { return op.getCollectiveKind() == CollectiveKind::ReduceScatter; }

class BlockCombiner {
public:
  BlockCombiner(Block &block, MeshAttr mesh, int64_t bytes, int64_t ahead)
      : block(block), mesh(mesh), bytes(bytes), ahead(static_cast<size_t>(ahead)) {}

  /// All-reduces last: those that add up replicas of joined reduce-scatters have then moved behind them.
  void run() {
    combineAll(CollectiveKind::AllGather);
    combineAll(CollectiveKind::ReduceScatter);
    combineAll(CollectiveKind::AllReduce);
  }

private:
  struct Group {
    SmallVector<CollectiveOpInterface> members;
    int64_t bytes = 0;
  };

  void combineAll(CollectiveKind kind) {
    byKey.clear();
    for (Operation &op : block)
      if (CollectiveOpInterface collective = asSynchronous(&op); collective && collective.getCollectiveKind() == kind)
        add(collective);
    for (auto &[key, groups] : byKey)
      for (const Group &group : groups)
        if (group.members.size() > 1)
          combine(group.members);
  }

  /// What collectives must have in common.
  static Attribute keyOf(CollectiveOpInterface op) {
    Builder builder(op->getContext());
    std::optional<OriginPhase> phase = phaseOf(op);
    return builder.getArrayAttr({op->getName().getIdentifier(), op.getAxes(),
                                 TypeAttr::get(op.getOperand().getType().getElementType()),
                                 builder.getI64IntegerAttr(phase ? static_cast<int64_t>(*phase) : -1),
                                 builder.getI64IntegerAttr(static_cast<int64_t>(op.getReduction()))});
  }

  void add(CollectiveOpInterface op) {
    const int64_t size = op.getWholeBytes();
    if (size > bytes)
      return;
    for (int64_t dim : op.getDims())
      if (dim != 0) {
        op->emitRemark() << op.getText() << " is not combined: it works along dimension " << dim
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
      op->emitRemark() << op.getText() << " is not combined with " << groups.back().members.back().getText() << ": "
                       << why;
    groups.push_back({{op}, size});
  }

  /// Why `op` cannot join the group; empty if it can.
  std::string whyNot(CollectiveOpInterface op, int64_t size, const Group &group) const {
    if (group.bytes + size > bytes)
      return (Twine(group.bytes + size) + " bytes together, the threshold is " + Twine(bytes)).str();
    if (!isGather(op)) {
      for (CollectiveOpInterface member : group.members)
        if (Operation *user = firstComputing(member); user && !op->isBeforeInBlock(user))
          return member.getText() + " is used before the other is complete";
      return "";
    }
    if (!isAvailable(op.getOperand(), group.members.front()))
      return "its operand is computed after the first one begins";
    // Gathers of whole-step copies are kept anyway.
    if (std::optional<OriginPhase> phase = phaseOf(op); !phase || phase == OriginPhase::Step)
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
      if (CollectiveOpInterface collective = asSynchronous(&other); collective && isGather(collective))
        return &other == op;
    return false;
  }

  /// What may wait for a joined collective: a view of its result, or the sum over replicas of a part.
  static bool canSink(Operation *op, Operation *user) {
    if (isView(user))
      return true;
    CollectiveOpInterface scatter = asSynchronous(op), sum = asSynchronous(user);
    return scatter && isScatter(scatter) && sum && sum.getCollectiveKind() == CollectiveKind::AllReduce;
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

  void combine(ArrayRef<CollectiveOpInterface> members) {
    CollectiveOpInterface first = members.front(), last = members.back();
    OpBuilder builder(isGather(first) ? first : last);
    SmallVector<Location> locations;
    SmallVector<OriginAttr> origins;
    for (CollectiveOpInterface member : members) {
      locations.push_back(member->getLoc());
      origins.push_back(member.getOriginAttr());
      if (isGather(first))
        hoistViews(member.getOperand(), first);
      else
        sinkUsers(member, last);
    }
    train::MarkBackward listener;
    if (llvm::all_of(members, [](CollectiveOpInterface member) { return train::isMarkedBackward(member); }))
      builder.setListener(&listener);
    train::Build build(builder, builder.getFusedLoc(locations));
    Value joined = join(build, members);
    ArrayAttr axes = first.getAxes();
    const int64_t ranks = mesh.getGroupSize(axes);
    auto type = cast<RankedTensorType>(joined.getType());
    OriginAttr origin = OriginAttr::join(origins);
    Value result;
    if (isGather(first))
      result =
          AllGatherOp::create(builder, build.loc, type.clone({type.getDimSize(0) * ranks}), joined, axes, 0, origin);
    else if (isScatter(first))
      result = ReduceScatterOp::create(builder, build.loc, type.clone({type.getDimSize(0) / ranks}), joined, axes, 0,
                                       first.getReduction(), origin);
    else
      result = AllReduceOp::create(builder, build.loc, type, joined, axes, first.getReduction(), origin);
    part(build, members, result, ranks);
    for (CollectiveOpInterface member : members)
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
  Value join(train::Build &build, ArrayRef<CollectiveOpInterface> members) {
    CollectiveOpInterface first = members.front();
    const bool byPart = isScatter(first);
    const int64_t ranks = mesh.getGroupSize(first.getAxes());
    SmallVector<Value> flat;
    int64_t total = 0;
    for (CollectiveOpInterface member : members) {
      Value operand = member.getOperand();
      const int64_t elements = cast<RankedTensorType>(operand.getType()).getNumElements();
      total += elements;
      flat.push_back(byPart ? build.reshape(operand, {ranks, elements / ranks}) : build.reshape(operand, {elements}));
    }
    Value joined = build.concat(flat, byPart ? 1 : 0);
    return byPart ? build.reshape(joined, {total}) : joined;
  }

  /// Gives each member's users its part of `result`.
  void part(train::Build &build, ArrayRef<CollectiveOpInterface> members, Value result, int64_t ranks) {
    const bool gathers = isGather(members.front());
    const int64_t total = cast<RankedTensorType>(result.getType()).getNumElements();
    if (gathers)
      result = build.reshape(result, {ranks, total / ranks});
    int64_t begin = 0;
    for (CollectiveOpInterface member : members) {
      RankedTensorType type = member.getResultTensorType();
      const int64_t end = begin + type.getNumElements() / (gathers ? ranks : 1);
      Value own = gathers ? build.slice(result, {0, begin}, {ranks, end}) : build.slice(result, {begin}, {end});
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
