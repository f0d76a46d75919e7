//===- AnnotateIndexBounds.cpp - what the runtime may load as an index ----===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/simplify/Passes.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ANNOTATEINDEXBOUNDS
#include "passes/simplify/Passes.h.inc"

namespace {

/// What the uses of an argument as an index say about its values.
struct Bounds {
  std::optional<int64_t> bound;
  std::optional<int64_t> ignoreIndex;

  void limit(int64_t size) { bound = std::min(bound.value_or(size), size); }
};

/// Follows a value through ops that keep its elements' values.
void follow(Value value, Bounds &bounds) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto gather = dyn_cast<train::GatherRowsOp>(user); gather && number == 1) {
      bounds.limit(train::shapeOf(gather.getTable()).front());
    } else if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(user); scatter && number == 1) {
      bounds.limit(train::shapeOf(scatter.getInit()).front());
    } else if (auto loss = dyn_cast<train::CrossEntropyOp>(user); loss && number == 1) {
      bounds.limit(train::shapeOf(loss.getLogits()).back());
      if (auto ignored = loss.getIgnoreIndex())
        bounds.ignoreIndex = *ignored;
    } else if (auto loop = dyn_cast<train::AccumulateOp>(user)) {
      follow(loop.getBody().getArgument(number + 1), bounds);
    } else if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp, train::StopGradientOp>(
                   user)) {
      follow(user->getResult(0), bounds);
    } else if (auto convert = dyn_cast<train::ConvertOp>(user)) {
      if (convert.getType().getElementType().isInteger())
        follow(convert.getResult(), bounds);
    }
  }
}

struct AnnotateIndexBounds : impl::AnnotateIndexBoundsBase<AnnotateIndexBounds> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    Builder builder(&getContext());
    for (BlockArgument argument : func.getArguments()) {
      auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kRole);
      if (!role || (role.getValue() != "input" && role.getValue() != "target"))
        continue;
      Bounds bounds;
      follow(argument, bounds);
      if (bounds.bound)
        func.setArgAttr(argument.getArgNumber(), "train.index_bound", builder.getI64IntegerAttr(*bounds.bound));
      if (bounds.ignoreIndex)
        func.setArgAttr(argument.getArgNumber(), "train.ignore_index", builder.getI64IntegerAttr(*bounds.ignoreIndex));
    }
  }
};

} // namespace
} // namespace tessera
