//===- ClipGradients.cpp - global gradient norm and clipping --------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_CLIPGRADIENTS
#include "passes/optimize/Passes.h.inc"

namespace {

struct ClipGradients : impl::ClipGradientsBase<ClipGradients> {
  using ClipGradientsBase::ClipGradientsBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isTrainingStep(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
};

/// The axes that split each unit, by its name; null for those that none splits.
llvm::StringMap<Attribute> axesOfUnits(func::FuncOp func) {
  llvm::StringMap<Attribute> axes;
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Param))
    if (train::PlacementAttr placement = train::getPlacement(train::getSegments(func, index)))
      axes[train::getArgName(func, index)] = placement.getAxes();
  return axes;
}

/// The Euclidean norm of all gradients together. Each is summed on its own, then the sums in order: first those of
/// units that the same axes split, so that each group is added up over its axes once.
Value globalNorm(train::Build &build, ArrayRef<train::StepResult> gradients,
                 const llvm::StringMap<Attribute> &axesOfUnit) {
  llvm::MapVector<Attribute, Value> totals;
  auto add = [&](Value total, Value sum) {
    return total ? build.add(total, build.convert(sum, train::tensorType(total).getElementType())) : sum;
  };
  for (const train::StepResult &gradient : gradients) {
    Value wide =
        build.convert(gradient.value, train::accumulationType(train::tensorType(gradient.value).getElementType()));
    Value &total = totals[axesOfUnit.lookup(cast<StringAttr>(gradient.attrs.get(train::kOf)).getValue())];
    total = add(total, build.sumAll(build.mul(wide, wide)));
  }
  Value norm;
  for (const auto &[axes, total] : totals)
    norm = add(norm, total);
  return build.unary<train::SqrtOp>(norm);
}

/// min(1, max_norm / (norm + 1e-6)); a norm that is not a number makes the scale so too, as in PyTorch.
Value clipScale(train::Build &build, Value norm, double maxNorm) {
  Value divisor = build.add(norm, build.splatLike(norm, 1e-6));
  Value ratio = build.div(build.splatLike(norm, maxNorm), divisor);
  Value one = build.splatLike(norm, 1.0);
  return build.select(build.compare(train::CompareDirection::Gt, ratio, one), one, ratio);
}

LogicalResult ClipGradients::run(func::FuncOp func) {
  if (!(maxNorm >= 0))
    return func.emitError() << "max-norm must not be negative, got " << double(maxNorm);
  if (maxNorm == 0 && !metric)
    return success();
  SmallVector<train::StepResult> results, gradients;
  for (auto [index, result] : llvm::enumerate(train::getResults(func))) {
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      gradients.push_back(result);
    else
      results.push_back(result);
  }
  if (gradients.empty())
    return func.emitError("has no gradients to clip; run differentiate first");

  OpBuilder builder(func.getBody().front().getTerminator());
  train::Build build(builder, NameLoc::get(builder.getStringAttr("grad_norm")));
  Value norm = globalNorm(build, gradients, axesOfUnits(func));
  if (metric)
    results.push_back({norm, builder.getDictionaryAttr({
                                 train::getRoleAttr(builder.getContext(), train::ResultRole::Metric),
                                 builder.getNamedAttr(train::kName, builder.getStringAttr("grad_norm")),
                             })});
  if (maxNorm > 0) {
    Value scale = clipScale(build, norm, maxNorm);
    for (train::StepResult &gradient : gradients) {
      RankedTensorType type = train::tensorType(gradient.value);
      Value factor = build.broadcast(build.convert(scale, type.getElementType()), type.getShape(), {});
      gradient.value = build.mul(gradient.value, factor);
    }
  }
  llvm::append_range(results, gradients);
  train::setResults(func, results);
  return success();
}

} // namespace
} // namespace tessera
