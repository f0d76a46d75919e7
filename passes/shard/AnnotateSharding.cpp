//===- AnnotateSharding.cpp - a strategy becomes shardings ----------------===//
//
// The only pass that knows what a strategy is; everything after it follows from
// the annotations.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/shard/DealPositions.h"
#include "passes/shard/Passes.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/Sharding.h"
#include "passes/shard/Strategy.h"
#include "passes/shard/Units.h"

#include "llvm/ADT/StringMap.h"

namespace tessera {
#define GEN_PASS_DEF_ANNOTATESHARDINGPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

class Annotator {
public:
  /// `kept`: names units that are gathered once per step although the strategy gathers for each phase. `reduceType`: in
  /// which gradients are added up over ranks; null: their own. `sequence`: how attention is computed and positions are
  /// dealt.
  Annotator(func::FuncOp func, MeshAttr mesh, const Strategy &strategy, const std::optional<train::NamePattern> &kept,
            Type reduceType, const SequencePlan &sequence)
      : func(func), mesh(mesh), strategy(strategy), kept(kept), reduceType(reduceType), sequence(sequence),
        dataAxes(sampleAxes(mesh)), sequenceAxes(positionAxes(mesh)), shardAxes(stateAxes(mesh)) {}

  LogicalResult run() {
    if (failed(checkMesh()) || failed(findPlacedUnits()))
      return failure();
    if (strategy.splitsState && shardAxes.empty() && mesh.getNumRanks() > 1)
      func.emitRemark() << "nothing is sharded: mesh " << mesh << " has no axis larger than 1 that state is split over";
    expandCountValid(func);
    train::completeBackwardMarks(func);
    for (BlockArgument arg : func.getArguments())
      if (failed(annotate(arg)))
        return failure();
    if (!sequenceAxes.empty() && !hasPositions)
      return func.emitError()
             << "axis '" << mesh.getAxisName(sequenceAxes.front())
             << "' splits positions, but no dimension of an input counts them; --dim-role says which does";
    for (auto [index, dims] : batchDims)
      func.setArgAttr(index, train::kDims, dims);
    separateQuantizedReads(func);
    SmallVector<Unit> units = findUnits(func);
    if (failed(checkKept(units)))
      return failure();
    separated = separateGradients(func, units);
    turningUnits = findTurningUnits(units);
    for (Unit &unit : units)
      annotate(unit);
    annotateResults();
    replicateCarried();
    if (!sequence.notDealt.empty())
      func.emitRemark() << "positions are not dealt by the work of documents: " << sequence.notDealt;
    if (sequence.dealt != 0)
      dealPositions(func, mesh, sequence);
    return success();
  }

private:
  LogicalResult checkMesh() {
    for (auto [axis, size] : llvm::enumerate(mesh.getSizes()))
      if (const AxisRoleInfo &info = mesh.getAxisInfo(axis); size > 1 && !info.missing.empty())
        return func.emitError() << "axis '" << mesh.getAxisName(axis) << "' has the role " << info.name << " and size "
                                << size << ": " << info.missing;
    const bool hasReplicas =
        llvm::any_of(gradientAxes(mesh), [&](unsigned axis) { return !llvm::is_contained(shardAxes, axis); });
    if (strategy.needsReplicas && (!hasReplicas || shardAxes.empty()))
      return func.emitError() << "strategy " << strategy.name << " needs a mesh with an axis of role "
                              << getInfo(AxisRole::Replica).name << " and one of role " << getInfo(AxisRole::Data).name
                              << ", both larger than 1, got " << mesh;
    return success();
  }

  /// The units that are placed: each rank along their axes holds a row at all times.
  LogicalResult findPlacedUnits() {
    Axes idle = parameterAxes(mesh);
    for (BlockArgument arg : func.getArguments()) {
      const train::PlacementAttr placement = train::getPlacement(train::getSegments(func, arg.getArgNumber()));
      if (!placement)
        continue;
      const Axes axes = axisNumbers(placement.getAxes(), mesh);
      if (axes.size() != placement.getAxes().size() || groupSize(mesh, axes) != placement.getParts() ||
          !llvm::all_of(axes, [&](unsigned axis) { return mesh.getAxisInfo(axis).splitsParameters; }))
        return emitError(arg.getLoc()) << "unit '" << nameOf(arg) << "' is placed in " << placement.getParts()
                                       << " parts on " << placement.getAxes() << ", which mesh " << mesh
                                       << " has no such axes for";
      placedUnits[nameOf(arg)] = axes;
      llvm::erase_if(idle, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
    }
    if (!idle.empty())
      return func.emitError() << "axis '" << mesh.getAxisName(idle.front()) << "' of mesh " << mesh
                              << " has parameters to split, but none is placed on it; run place-parameters";
    return success();
  }

  Layout replicated(Value value) const { return Layout::replicated(rankOf(value)); }
  /// Of a value that is laid out as the unit: what each rank along the axes that split state holds if they do not.
  Layout whole(Value value, StringRef unit) const {
    Layout layout = replicated(value);
    if (!layout.dims.empty()) // a number is no unit
      layout.dims.front() = Split(placedUnits.lookup(unit));
    return layout;
  }
  Layout sharded(Value value, StringRef unit) const {
    Layout layout = whole(value, unit);
    if (!layout.dims.empty())
      layout.dims.front().append(Split(shardAxes));
    return layout;
  }

  /// The unit that an argument is, or is a state of.
  StringRef unitOf(BlockArgument arg) {
    auto of = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), train::kOf);
    return of ? of.getValue() : nameOf(arg);
  }

  /// Whether the argument is what strategies split: parameters that are trained, frozen units, the optimizer's states.
  bool isState(BlockArgument arg) {
    const unsigned index = arg.getArgNumber();
    const std::optional<train::ArgRole> role = train::getArgRole(func, index);
    return role == train::ArgRole::Param ||
           (role == train::ArgRole::Frozen && func.getArgAttr(index, train::kSegments)) ||
           (role == train::ArgRole::State && rankOf(arg) > 0);
  }

  LogicalResult annotate(BlockArgument arg) {
    unsigned index = arg.getArgNumber();
    const std::optional<train::ArgRole> role = train::getArgRole(func, index);
    Layout layout = replicated(arg);
    if (train::isBatch(role)) {
      if (failed(splitBatch(arg, layout)) || failed(splitPositions(arg, layout)))
        return failure();
    } else if (isState(arg)) {
      layout = strategy.splitsState ? sharded(arg, unitOf(arg)) : whole(arg, unitOf(arg));
      if (strategy.splitsState && failed(checkUnit(arg, layout)))
        return failure();
    }
    func.setArgAttr(index, kSharding, layout.toAttr(mesh));
    return success();
  }

  StringRef nameOf(BlockArgument arg) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), train::kName);
    return name ? name.getValue() : StringRef("?");
  }

  /// Splits the dimension that counts samples, and writes down which it is where that was only assumed.
  LogicalResult splitBatch(BlockArgument arg, Layout &layout) {
    const unsigned index = arg.getArgNumber();
    const train::DimsAttr dims = train::getDims(func, index);
    const int64_t dim = dims.getSampleDim();
    batchDims.emplace_back(index, dims);
    if (dim < 0) {
      if (!dataAxes.empty())
        mlir::emitRemark(arg.getLoc()) << "argument '" << nameOf(arg)
                                       << "' is not split: none of its dimensions counts samples";
      return success();
    }
    int64_t size = train::shapeOf(arg)[dim], parts = groupSize(mesh, dataAxes);
    if (size % parts != 0)
      return emitError(arg.getLoc()) << "a "
                                     << (dims.getRoles().front() == train::DimRole::MicroBatch ? "micro-batch"
                                                                                               : "batch")
                                     << " of '" << nameOf(arg) << "' has " << size << " samples (dimension " << dim
                                     << "), expected a multiple of the number of data-parallel ranks, " << parts;
    layout.dims[dim] = Split(dataAxes);
    return success();
  }

  /// Splits the dimension that counts positions.
  LogicalResult splitPositions(BlockArgument arg, Layout &layout) {
    const int64_t dim = train::getDims(func, arg.getArgNumber()).getPositionDim();
    if (sequenceAxes.empty())
      return success();
    if (dim < 0) {
      mlir::emitRemark(arg.getLoc()) << "argument '" << nameOf(arg)
                                     << "' is not split: none of its dimensions counts positions";
      return success();
    }
    const int64_t size = train::shapeOf(arg)[dim], ranges = sequence.ranges(mesh);
    if (size % ranges != 0)
      return emitError(arg.getLoc()) << "'" << nameOf(arg) << "' has " << size << " positions (dimension " << dim
                                     << "), expected a multiple of " << ranges << ": "
                                     << (sequence.dealt      ? "blocks"
                                         : sequence.isZigzag ? "two ranges"
                                                             : "a range")
                                     << " for each rank that they are split over";
    // What is dealt by its work is read in ranges: the work follows from the batch.
    for (unsigned axis : sequenceAxes)
      layout.dims[dim].push_back({axis, 1, sequence.isZigzag});
    hasPositions = true;
    return success();
  }

  LogicalResult checkUnit(BlockArgument arg, const Layout &layout) {
    if (rankOf(arg) != 1)
      return emitError(arg.getLoc()) << "'" << nameOf(arg)
                                     << "' is not a flat unit, so its parameters cannot be sharded; "
                                        "run flatten-parameters first";
    int64_t size = train::shapeOf(arg)[0], parts = groupSize(mesh, layout.dims.front());
    if (size % parts != 0)
      return emitError(arg.getLoc()) << "unit '" << nameOf(arg) << "' has " << size << " elements, which " << parts
                                     << " ranks do not divide; flatten with a padding multiple of "
                                     << groupSize(mesh, shardAxes);
    return success();
  }

  LogicalResult checkKept(ArrayRef<Unit> units) {
    if (!kept)
      return success();
    return kept->expectMatch(func.getLoc(), "unit",
                             llvm::map_to_vector(units, [](const Unit &unit) -> StringRef { return unit.name; }));
  }

  void annotate(Unit &unit) {
    const bool isKept = strategy.gather == Gather::OncePerStep || (kept && kept->match(unit.name));
    if (strategy.gather != Gather::Never) {
      for (Value read : unit.reads)
        if (isKept)
          gatherOnce(unit, read);
        else
          gatherForEachPhase(unit, read);
      if (unit.cast && unit.cast->use_empty())
        unit.cast->erase();
    }
    if (unit.gradient)
      constrainGradient(unit);
  }

  Value gather(Unit &unit, Value read, Operation *before, OriginPhase phase) {
    OpBuilder builder(before);
    // What is read narrow is gathered narrow: each rank casts its part.
    Value part = unit.cast ? builder.clone(*unit.cast)->getResult(0) : read;
    return ConstrainOp::create(builder, before->getLoc(), part.getType(), part, whole(part, unit.name).toAttr(mesh),
                               OriginAttr::get(func.getContext(), phase, unit.name), TypeAttr());
  }

  /// One copy for all uses, made outside of the loop over micro-batches.
  void gatherOnce(Unit &unit, Value read) {
    SmallVector<OpOperand *> uses = computeUses(unit, read);
    if (uses.empty())
      return;
    Operation *first = nullptr;
    for (OpOperand *use : uses) {
      Operation *user = func.getBody().front().findAncestorOpInBlock(*use->getOwner());
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    Value compute = gather(unit, read, first, OriginPhase::Step);
    for (OpOperand *use : uses)
      use->set(compute);
  }

  void gatherForEachPhase(Unit &unit, Value read) {
    SmallVector<ComputeUses> groups = splitComputeUses(unit, read);
    shareAtTurn(unit, groups);
    for (const ComputeUses &uses : groups) {
      Value compute = gather(unit, read, uses.first, uses.isBackward ? OriginPhase::Backward : OriginPhase::Forward);
      if (uses.isBackward) {
        train::markBackward(compute.getDefiningOp());
        if (unit.cast)
          train::markBackward(compute.getDefiningOp()->getOperand(0).getDefiningOp());
      }
      for (OpOperand *use : uses.uses)
        use->set(compute);
    }
  }

  /// Lets the backward part of a block that `unit` begins read what was gathered for the forward part.
  void shareAtTurn(const Unit &unit, SmallVectorImpl<ComputeUses> &groups) {
    for (ComputeUses &backward : groups) {
      Block *block = backward.first->getBlock();
      if (!backward.isBackward || turningUnits.lookup(block) != unit.argument)
        continue;
      auto *forward = llvm::find_if(
          groups, [&](const ComputeUses &uses) { return !uses.isBackward && uses.first->getBlock() == block; });
      if (forward == groups.end())
        return;
      forward->uses.append(backward.uses);
      mlir::emitRemark(unit.argument.getLoc())
          << "unit '" << unit.name << "' is not gathered again for backward, which begins with it";
      groups.erase(&backward);
      return;
    }
  }

  /// Replaces all uses of the gradient `value` by `value` constrained to `layout`, right after `value`.
  Value constrainAfter(Value value, const Layout &layout, OriginAttr origin, Type reduceType) {
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(value);
    auto constrained = ConstrainOp::create(builder, value.getLoc(), value.getType(), value, layout.toAttr(mesh), origin,
                                           reduceType ? TypeAttr::get(reduceType) : TypeAttr());
    train::markBackward(constrained);
    value.replaceUsesWithIf(constrained, [&](OpOperand &use) {
      return use.getOwner() != constrained && !separated.contains(use.getOwner());
    });
    return constrained;
  }

  void constrainGradient(Unit &unit) {
    Value gradient = unit.gradient;
    auto origin = OriginAttr::get(func.getContext(), OriginPhase::Gradient, unit.name);
    // What is computed in f32 is added up so.
    const Type sumType = train::isComputedInF32(func, unit.argument.getArgNumber()) ? Type() : reduceType;
    const Layout parted = sharded(gradient, unit.name);
    bool divides = rankOf(gradient) == 1 && train::shapeOf(gradient)[0] % groupSize(mesh, parted.dims.front()) == 0;
    auto accumulate = gradient.getDefiningOp<train::AccumulateOp>();
    if (strategy.reduce == Reduce::ToPartsEachMicro && accumulate) {
      Operation *yield = accumulate.getBody().front().getTerminator();
      Value micro = yield->getOperand(cast<OpResult>(gradient).getResultNumber());
      Layout scattered = sharded(micro, unit.name);
      for (unsigned axis : gradientAxes(mesh))
        if (!llvm::is_contained(shardAxes, axis))
          scattered.unreduced.push_back(axis); // replicas are added up once per step
      constrainAfter(micro, scattered, origin, sumType);
    }
    if (strategy.reduce != Reduce::ToWhole) {
      constrainAfter(gradient, parted, origin, sumType);
      return;
    }
    Value reduced = constrainAfter(gradient, whole(gradient, unit.name), origin, sumType);
    // What reads the gradient besides the update (the global norm) works on slices, as it does where gradients are
    // sharded, so that both add up in the same order.
    if (unit.update && divides && llvm::any_of(reduced.getUsers(), [&](Operation *user) {
          return user != unit.update && !isa<func::ReturnOp>(user);
        }))
      constrainOthers(reduced, unit);
    else if (unit.update && !divides)
      mlir::emitRemark(unit.argument.getLoc())
          << "the norm of unit '" << unit.name << "' is computed on whole gradients: its size does not divide by "
          << groupSize(mesh, shardAxes);
  }

  void constrainOthers(Value reduced, Unit &unit) {
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(reduced);
    auto slice = ConstrainOp::create(builder, reduced.getLoc(), reduced.getType(), reduced,
                                     sharded(reduced, unit.name).toAttr(mesh), OriginAttr(), TypeAttr());
    reduced.replaceUsesWithIf(slice, [&](OpOperand &use) {
      return use.getOwner() != slice && use.getOwner() != unit.update && !isa<func::ReturnOp>(use.getOwner());
    });
  }

  /// What micro-batches hand on is whole on every rank.
  void replicateCarried() {
    func.walk([&](train::AccumulateOp loop) {
      Operation *yield = loop.getBody().front().getTerminator();
      OpBuilder builder(yield);
      for (OpOperand &next : yield->getOpOperands().take_back(loop.getCarried()))
        next.set(ConstrainOp::create(builder, next.get().getLoc(), next.get().getType(), next.get(),
                                     replicated(next.get()).toAttr(mesh), OriginAttr(), TypeAttr()));
    });
  }

  void annotateResults() {
    Operation *end = func.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(end->getOperands())) {
      if (auto alias = func.getResultAttrOfType<IntegerAttr>(index, train::kAlias)) {
        func.setResultAttr(index, kSharding, func.getArgAttr(alias.getInt(), kSharding));
        continue;
      }
      const std::optional<train::ResultRole> role = train::getResultRole(func, index);
      if (role == train::ResultRole::Output || role == train::ResultRole::IndexCheck)
        continue; // stays as it is computed
      Layout layout = replicated(value);
      if (role == train::ResultRole::Grad) {
        StringRef unit = func.getResultAttrOfType<StringAttr>(index, train::kOf).getValue();
        layout = strategy.splitsState ? sharded(value, unit) : whole(value, unit);
      }
      func.setResultAttr(index, kSharding, layout.toAttr(mesh));
    }
  }

  func::FuncOp func;
  MeshAttr mesh;
  const Strategy &strategy;
  const std::optional<train::NamePattern> &kept;
  Type reduceType;
  llvm::DenseMap<Block *, BlockArgument> turningUnits;
  llvm::DenseSet<Operation *> separated; ///< barriers that make a gradient that of one unit
  const SequencePlan &sequence;
  bool hasPositions = false; ///< some argument has positions that are split
  Axes dataAxes, sequenceAxes, shardAxes;
  llvm::StringMap<Axes> placedUnits; ///< the axes that split a unit whatever the strategy says
  SmallVector<std::pair<unsigned, train::DimsAttr>> batchDims; ///< of batch arguments, by their number
};

struct AnnotateShardingPass : tessera::impl::AnnotateShardingPassBase<AnnotateShardingPass> {
  using AnnotateShardingPassBase::AnnotateShardingPassBase;
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [&](func::FuncOp func, MeshAttr mesh) -> LogicalResult {
          const Strategy *parsed = findStrategy(strategy);
          if (!parsed)
            return func.emitError() << "unknown strategy '" << strategy << "', expected " << strategyNames();
          std::optional<train::NamePattern> kept;
          if (failed(train::NamePattern::read(func.getLoc(), "--keep-gathered", keepGathered, kept)))
            return failure();
          if (!keepGathered.empty() && parsed->gather != Gather::ForEachPhase)
            return func.emitError() << "keep-gathered needs a strategy that gathers units more than once per step, got "
                                    << strategy;
          if (reduceDtype != "fp32" && reduceDtype != "bf16")
            return func.emitError() << "unknown reduce-dtype '" << reduceDtype << "', expected fp32 or bf16";
          Type reduceType = reduceDtype == "bf16" ? BFloat16Type::get(func.getContext()) : Type();
          FailureOr<SequencePlan> sequence = planSequence(func, mesh, attention, sequenceOrder);
          if (failed(sequence))
            return failure();
          return Annotator(func, mesh, *parsed, kept, reduceType, *sequence).run();
        })))
      signalPassFailure();
  }
};

} // namespace
