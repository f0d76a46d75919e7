//===- AnnotateSharding.cpp - a strategy becomes shardings ----------------===//
//
// The only pass that knows what a strategy is. A strategy is a row of the table
// below; everything after this pass follows from the annotations.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Aliases.h"
#include "compiler/dialect/train/Builders.h"
#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"
#include "passes/shard/Units.h"

#include "llvm/ADT/StringSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_ANNOTATESHARDINGPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// What a strategy says about a unit: which of its tensors are split over the shard axis.
struct Strategy {
  bool shardState;    ///< master parameters and optimizer state at rest
  bool gatherTwice;   ///< compute parameters are gathered for forward and again for backward
  bool scatterInside; ///< gradients are reduce-scattered in every micro-batch, not once per step
};

std::optional<Strategy> parseStrategy(StringRef name) {
  return llvm::StringSwitch<std::optional<Strategy>>(name)
      .Case("ddp", Strategy{false, false, false})
      .Case("zero3", Strategy{true, true, true})
      .Default(std::nullopt);
}

class Annotator {
public:
  Annotator(func::FuncOp func, MeshAttr mesh, Strategy strategy) : func(func), mesh(mesh), strategy(strategy) {
    for (StringRef name : {kReplicateAxis, kShardAxis})
      if (mesh.getAxisSize(name) > 1)
        dataAxes.push_back(mesh.getAxisIndex(name));
    if (mesh.getAxisSize(kShardAxis) > 1)
      shardAxes.push_back(mesh.getAxisIndex(kShardAxis));
  }

  LogicalResult run() {
    if (failed(train::verifyAliases(func)))
      return failure();
    if (strategy.shardState && shardAxes.empty() && mesh.getNumRanks() > 1)
      func.emitRemark() << "nothing is sharded: mesh " << mesh << " has no axis '" << kShardAxis << "' larger than 1";
    expandCountValid(func);
    for (BlockArgument arg : func.getArguments())
      if (failed(annotate(arg)))
        return failure();
    for (Unit &unit : findUnits(func))
      if (failed(annotate(unit)))
        return failure();
    annotateResults();
    return success();
  }

private:
  Layout replicated(Value value) const { return Layout::replicated(rankOf(value)); }
  Layout sharded(Value value) const {
    Layout layout = replicated(value);
    layout.dims.front() = shardAxes;
    return layout;
  }

  LogicalResult annotate(BlockArgument arg) {
    unsigned index = arg.getArgNumber();
    auto role = func.getArgAttrOfType<StringAttr>(index, train::kRole);
    Layout layout = replicated(arg);
    if (role && (role == "input" || role == "target")) {
      if (failed(splitBatch(arg, layout)))
        return failure();
    } else if (role && strategy.shardState && (role == "param" || (role == "state" && rankOf(arg) > 0))) {
      layout = sharded(arg);
      if (failed(checkUnit(arg, layout)))
        return failure();
    }
    func.setArgAttr(index, kSharding, layout.toAttr(mesh));
    return success();
  }

  StringRef nameOf(BlockArgument arg) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), train::kName);
    return name ? name.getValue() : StringRef("?");
  }

  /// Batches are split along dimension 0, or along dimension 1 if dimension 0 counts micro-batches.
  LogicalResult splitBatch(BlockArgument arg, Layout &layout) {
    bool accumulated = llvm::any_of(arg.getUsers(), [](Operation *user) { return isa<train::AccumulateOp>(user); });
    int64_t dim = accumulated ? 1 : 0;
    if (rankOf(arg) <= dim) {
      if (!dataAxes.empty())
        mlir::emitRemark(arg.getLoc()) << "argument '" << nameOf(arg) << "' has no batch dimension: not split";
      return success();
    }
    int64_t size = train::shapeOf(arg)[dim], parts = groupSize(mesh, dataAxes);
    if (batchSize == 0)
      batchSize = size;
    if (size != batchSize) {
      mlir::emitRemark(arg.getLoc()) << "argument '" << nameOf(arg) << "' is not split: its dimension " << dim
                                     << " has size " << size << ", the batch has " << batchSize;
      return success();
    }
    if (size % parts != 0)
      return emitError(arg.getLoc()) << "batch dimension " << dim << " of '" << nameOf(arg) << "' has size " << size
                                     << ", expected a multiple of the number of data-parallel ranks, " << parts;
    layout.dims[dim] = dataAxes;
    return success();
  }

  LogicalResult checkUnit(BlockArgument arg, const Layout &layout) {
    if (rankOf(arg) != 1)
      return emitError(arg.getLoc()) << "'" << nameOf(arg)
                                     << "' is not a flat unit, so its parameters cannot be sharded; "
                                        "run flatten-parameters first";
    int64_t size = train::shapeOf(arg)[0], parts = groupSize(mesh, shardAxes);
    if (size % parts != 0)
      return emitError(arg.getLoc()) << "unit '" << nameOf(arg) << "' has " << size << " elements, which " << parts
                                     << " ranks do not divide; flatten with a padding multiple of " << parts;
    return success();
  }

  LogicalResult annotate(Unit &unit) {
    if (strategy.gatherTwice)
      gatherForCompute(unit);
    if (unit.gradient)
      constrainGradient(unit);
    return success();
  }

  void gatherForCompute(Unit &unit) {
    std::string forward = ("forward:" + unit.name).str(), backward = ("backward:" + unit.name).str();
    for (const ComputeUses &uses : splitComputeUses(unit)) {
      OpBuilder builder(uses.first);
      auto compute = ConstrainOp::create(builder, uses.first->getLoc(), unit.argument.getType(), unit.argument,
                                         replicated(unit.argument).toAttr(mesh),
                                         builder.getStringAttr(uses.isBackward ? backward : forward));
      if (uses.isBackward)
        compute->setAttr(train::kBackward, builder.getUnitAttr());
      for (OpOperand *use : uses.uses)
        use->set(compute);
    }
  }

  /// Replaces all uses of the gradient `value` by `value` constrained to `layout`, right after `value`.
  Value constrainAfter(Value value, const Layout &layout, StringRef label) {
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(value);
    auto constrained = ConstrainOp::create(builder, value.getLoc(), value.getType(), value, layout.toAttr(mesh),
                                           builder.getStringAttr(label));
    constrained->setAttr(train::kBackward, builder.getUnitAttr());
    value.replaceAllUsesExcept(constrained, constrained);
    return constrained;
  }

  void constrainGradient(Unit &unit) {
    Value gradient = unit.gradient;
    std::string label = ("gradient:" + unit.name).str();
    Layout whole = replicated(gradient);
    bool divides = rankOf(gradient) == 1 && train::shapeOf(gradient)[0] % groupSize(mesh, shardAxes) == 0;
    if (strategy.scatterInside) {
      if (auto accumulate = gradient.getDefiningOp<train::AccumulateOp>()) {
        Operation *yield = accumulate.getBody().front().getTerminator();
        Value micro = yield->getOperand(cast<OpResult>(gradient).getResultNumber());
        Layout scattered = sharded(micro);
        for (unsigned axis : dataAxes)
          if (!llvm::is_contained(shardAxes, axis))
            scattered.unreduced.push_back(axis); // replicas are added up once per step
        constrainAfter(micro, scattered, label);
      }
      constrainAfter(gradient, sharded(gradient), label);
      return;
    }
    Value reduced = constrainAfter(gradient, whole, label);
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
                                     sharded(reduced).toAttr(mesh), StringAttr());
    reduced.replaceUsesWithIf(slice, [&](OpOperand &use) {
      return use.getOwner() != slice && use.getOwner() != unit.update && !isa<func::ReturnOp>(use.getOwner());
    });
  }

  void annotateResults() {
    Operation *end = func.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(end->getOperands())) {
      if (auto alias = func.getResultAttrOfType<IntegerAttr>(index, train::kAlias)) {
        func.setResultAttr(index, kSharding, func.getArgAttr(alias.getInt(), kSharding));
        continue;
      }
      auto role = func.getResultAttrOfType<StringAttr>(index, train::kRole);
      if (role && role == "output")
        continue; // stays as it is computed
      bool shard = role && role == "grad" && strategy.shardState;
      func.setResultAttr(index, kSharding, (shard ? sharded(value) : replicated(value)).toAttr(mesh));
    }
  }

  func::FuncOp func;
  MeshAttr mesh;
  Strategy strategy;
  Axes dataAxes, shardAxes;
  int64_t batchSize = 0;
};

struct AnnotateShardingPass : tessera::impl::AnnotateShardingPassBase<AnnotateShardingPass> {
  using AnnotateShardingPassBase::AnnotateShardingPassBase;
  void runOnOperation() override {
    MeshAttr mesh = getMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    std::optional<Strategy> parsed = parseStrategy(strategy);
    if (!parsed) {
      getOperation().emitError() << "unknown strategy '" << strategy << "', expected ddp or zero3";
      return signalPassFailure();
    }
    if (failed(Annotator(getOperation(), mesh, *parsed).run()))
      signalPassFailure();
  }
};

} // namespace
