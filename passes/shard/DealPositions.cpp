#include "passes/shard/DealPositions.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/shard/Sharding.h"
#include "passes/shard/partition/AttentionKeys.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera::dist;
using namespace tessera::train;

namespace tessera::shard {
namespace {

/// The argument of the function that a value is, or goes through micro-batches of; null if it is none.
BlockArgument argumentOf(Value value, func::FuncOp func) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() == &func.getBody().front())
    return argument;
  auto accumulate = dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp());
  if (!accumulate || argument.getArgNumber() == 0)
    return {};
  auto source = dyn_cast<BlockArgument>(accumulate->getOperand(argument.getArgNumber() - 1));
  return source && source.getOwner() == &func.getBody().front() ? source : BlockArgument();
}

/// What decides how much a query sees.
struct Seen {
  AttentionMasks masks;
  SeenKeys given;

  explicit Seen(AttentionOp op) : masks(op), given{op.getBegin(), op.getEnd()} {}
  bool operator==(const Seen &other) const {
    return masks == other.masks && given.begin == other.given.begin && given.end == other.given.end;
  }
};

/// Deals in one block of ops.
class Dealer {
public:
  Dealer(func::FuncOp func, Block &block, MeshAttr mesh, const SequencePlan &plan)
      : func(func), block(block), mesh(mesh), plan(plan), axes(positionAxes(mesh)),
        builder(OpBuilder::atBlockBegin(&block)), build(builder, func.getLoc()) {}

  void run() {
    llvm::MapVector<Value, Value> bounds; // of attentions: those that this computes in ranges
    SmallVector<Seen, 4> kinds;
    SmallVector<int64_t> counts;
    const int64_t ranks = groupSize(mesh, sampleAxes(mesh));
    auto addBounds = [&](auto op) {
      const bool isDealt = isDealtBy(op.getQuery().getType(), plan.dealt, ranks);
      for (Value bound : {op.getBegin(), op.getEnd()})
        if (bound && isDealt)
          bounds.try_emplace(bound, Value());
      return isDealt;
    };
    for (auto grad : block.getOps<AttentionGradOp>())
      addBounds(grad);
    for (auto attention : block.getOps<AttentionOp>()) {
      const bool isDealt = addBounds(attention);
      if (isMarkedBackward(attention))
        continue; // computed again
      if (!isDealt) {
        attention.emitRemark() << "its work is not counted: its queries or samples are not those that are dealt";
        continue;
      }
      const auto *known = llvm::find(kinds, Seen(attention));
      if (known == kinds.end()) {
        kinds.push_back(Seen(attention));
        counts.push_back(1);
      } else {
        ++counts[known - kinds.begin()];
      }
    }
    SmallVector<OpOperand *> reads; // of inputs, but for those in what is cloned
    for (BlockArgument argument : block.getArguments())
      if (positionDim(argument) >= 0)
        for (OpOperand &use : argument.getUses())
          if (!isa<AccumulateOp>(use.getOwner()) && !use.getOwner()->hasTrait<OpTrait::IsTerminator>())
            reads.push_back(&use);
    for (auto &[bound, own] : bounds) {
      cloneInRanges(bound);
      own = cloned.lookupOrDefault(bound);
    }
    if (kinds.empty())
      return;

    Value work;
    for (auto [kind, count] : llvm::zip_equal(kinds, counts)) {
      Value own = ofRanks(workOf(kind, bounds));
      own = build.mul(own, like(own, count));
      work = work ? addWide(work, own) : own;
    }
    Value order = constrain(orderOf(work), orderLayout(work, mesh));
    DealOp::create(builder, build.loc, order);
    mlir::emitRemark(build.loc) << "positions are dealt in " << plan.dealt
                                << " blocks, by the pairs that their queries see; inputs are gathered for it";
    llvm::MapVector<Value, Value> dealt;
    for (OpOperand *use : reads) {
      Value &moved = dealt[use->get()];
      if (!moved)
        moved = constrain(use->get(), dealtLayout(use->get(), positionDim(cast<BlockArgument>(use->get()))));
      use->set(moved);
    }
    for (auto &[bound, own] : bounds) {
      Value moved = constrain(own, dealtLayout(own, 1));
      bound.replaceUsesWithIf(moved, [](OpOperand &use) { return isa<AttentionOp, AttentionGradOp>(use.getOwner()); });
    }
  }

private:
  Value number(ArrayRef<int64_t> shape, int64_t value) {
    auto type = RankedTensorType::get(shape, builder.getI64Type());
    return build.constant(SplatElementsAttr::get(type, builder.getI64IntegerAttr(value)));
  }
  Value like(Value value, int64_t number) { return this->number(shapeOf(value), number); }
  /// Of one or of all samples.
  Value addWide(Value a, Value b) {
    const SmallVector<int64_t> shape{std::max(shapeOf(a)[0], shapeOf(b)[0]), shapeOf(a)[1]};
    return build.add(build.broadcastTo(a, shape), build.broadcastTo(b, shape));
  }
  Value constrain(Value value, const Layout &layout) {
    return ConstrainOp::create(builder, build.loc, value.getType(), value, layout.toAttr(mesh), OriginAttr(),
                               TypeAttr());
  }

  /// The dimension of an input that counts positions, without that of micro-batches; -1 of what is none.
  int64_t positionDim(BlockArgument value) {
    BlockArgument argument = argumentOf(value, func);
    if (!argument || !isBatchArgument(func, argument.getArgNumber()))
      return -1;
    const int64_t dim = getDims(func, argument.getArgNumber()).getPositionDim();
    return dim < 0 ? dim : dim - (rankOf(argument) - rankOf(value));
  }

  /// Samples in ranges, positions as they are dealt.
  Layout dealtLayout(Value value, int64_t positionDim) {
    Layout layout = Layout::replicated(rankOf(value));
    BlockArgument argument = argumentOf(value, func);
    const int64_t sampleDim =
        argument ? getDims(func, argument.getArgNumber()).getSampleDim() - (rankOf(argument) - rankOf(value)) : 0;
    if (sampleDim >= 0 && shapeOf(value)[sampleDim] != 1)
      layout.dims[sampleDim] = Split(sampleAxes(mesh));
    for (unsigned axis : axes)
      layout.dims[positionDim].push_back({axis, 1, false, plan.dealt});
    return layout;
  }

  /// Clones what `value` follows from, in this block, to the front; what is computed again for the backward pass, as
  /// the first time.
  void cloneInRanges(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block || cloned.contains(value))
      return;
    for (Value operand : op->getOperands())
      cloneInRanges(operand);
    if (isa<BarrierOp>(op)) {
      for (auto [result, operand] : llvm::zip_equal(op->getResults(), op->getOperands()))
        cloned.map(result, cloned.lookupOrDefault(operand));
      return;
    }
    Operation *copy = builder.clone(*op, cloned);
    for (StringRef mark : {StringRef(kBackward), StringRef(kRecompute)})
      copy->removeAttr(mark);
  }

  /// The pairs that each block of queries sees: [samples or 1, blocks].
  Value workOf(const Seen &kind, const llvm::MapVector<Value, Value> &bounds) {
    const int64_t queries = kind.masks.queries, keys = kind.masks.keys;
    Value places = build.iota(RankedTensorType::get({queries}, builder.getI64Type()), 0);
    const SeenKeys seen =
        seenKeys(build, kind.masks, places, {bounds.lookup(kind.given.begin), bounds.lookup(kind.given.end)});
    Value pairs = number({1, queries}, keys);
    if (seen.begin) {
      Value begin = build.max(seen.begin, like(seen.begin, 0)), most = like(seen.end, keys);
      Value end = build.select(build.compare(CompareDirection::Lt, seen.end, most), seen.end, most);
      pairs = addWide(end, build.neg(begin));
      pairs = build.max(pairs, like(pairs, 0));
    }
    pairs = build.reshape(pairs, {shapeOf(pairs)[0], plan.dealt, queries / plan.dealt});
    return build.sum(pairs, {2});
  }

  /// Those of all samples of each rank that samples are split over: [ranks, blocks]; of [1, blocks] themselves.
  Value ofRanks(Value work) {
    const int64_t ranks = groupSize(mesh, sampleAxes(mesh)), samples = shapeOf(work)[0];
    if (samples == 1)
      return work;
    return build.sum(build.reshape(work, {ranks, samples / ranks, plan.dealt}), {1});
  }

  /// The blocks of each rank behind those of the one before, ascending, of [ranks that samples are split over, blocks].
  /// Ranks that exchange heads share what their group is dealt.
  Value orderOf(Value work) {
    auto type = RankedTensorType::get(shapeOf(work), builder.getI64Type());
    auto sorted = [&](Value of, bool descending) -> Value {
      return SortIndicesOp::create(builder, build.loc, type, of, 1, descending);
    };
    int64_t members = groupSize(mesh, axes);
    members /= groupSize(mesh, plan.strategy->exchangedAxes(axes));
    Value place = sorted(sorted(work, true), false); // of each block among all, by its work
    Value turn = build.div(place, like(place, members));
    Value there = build.sub(place, build.mul(turn, like(turn, members)));
    Value back = build.sub(like(there, members - 1), there);
    Value isBack = build.sub(turn, build.mul(build.div(turn, like(turn, 2)), like(turn, 2)));
    Value owner = build.select(build.compare(CompareDirection::Eq, isBack, like(isBack, 0)), there, back);
    return sorted(owner, false);
  }

  func::FuncOp func;
  Block &block;
  MeshAttr mesh;
  const SequencePlan &plan;
  const Axes axes;
  OpBuilder builder;
  Build build;
  IRMapping cloned;
};

} // namespace

void dealPositions(func::FuncOp func, MeshAttr mesh, const SequencePlan &plan) {
  llvm::SmallSetVector<Block *, 2> blocks;
  func.walk([&](AttentionOp op) { blocks.insert(op->getBlock()); });
  for (Block *block : blocks)
    Dealer(func, *block, mesh, plan).run();
}

} // namespace tessera::shard
