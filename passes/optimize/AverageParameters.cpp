//===- AverageParameters.cpp - moving averages of parameters --------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_AVERAGEPARAMETERS
#include "passes/optimize/Passes.h.inc"

namespace {

struct AverageParameters : impl::AverageParametersBase<AverageParameters> {
  using AverageParametersBase::AverageParametersBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isTrainingStep(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
  train::StepResult average(func::FuncOp func, train::OptimizerUpdateOpInterface update, Value next);
};

/// The average of the parameter whose next value `update` computes.
train::StepResult AverageParameters::average(func::FuncOp func, train::OptimizerUpdateOpInterface update, Value next) {
  OpBuilder builder(func.getBody().front().getTerminator());
  StringRef unit = train::getArgName(func, cast<BlockArgument>(update.getParam()).getArgNumber());
  std::string name = (unit + "." + train::kAverage).str();
  Location loc = NameLoc::get(builder.getStringAttr(name));
  Type wide = train::accumulationType(train::tensorType(next).getElementType());
  BlockArgument before =
      train::appendArgument(func, train::tensorType(next).clone(wide), train::ArgRole::State, name,
                            {builder.getNamedAttr(train::kOf, builder.getStringAttr(unit)),
                             builder.getNamedAttr(train::kState, builder.getStringAttr(train::kAverage))},
                            loc);
  train::Build build(builder, loc);
  Value step = build.scale(build.sub(build.convert(next, wide), before), 1.0 - decay);
  return {build.add(before, step), builder.getDictionaryAttr(builder.getNamedAttr(
                                       train::kAlias, builder.getI64IntegerAttr(before.getArgNumber())))};
}

LogicalResult AverageParameters::run(func::FuncOp func) {
  if (!(decay >= 0 && decay < 1))
    return func.emitError() << "decay must lie in [0, 1), got " << double(decay);
  if (decay == 0)
    return success();
  SmallVector<train::StepResult> results = train::getResults(func), averages;
  for (const train::StepResult &result : results) {
    auto update = result.value.getDefiningOp<train::OptimizerUpdateOpInterface>();
    if (!update || result.value != update->getResult(0) || !isa<BlockArgument>(update.getParam()))
      continue;
    if (update.getApply())
      return update->emitError("is guarded already; run average-parameters before guard-updates");
    averages.push_back(average(func, update, result.value));
  }
  if (averages.empty())
    return func.emitError("has no updated parameter to average; run insert-optimizer first");
  llvm::append_range(results, averages);
  train::setResults(func, results);
  return success();
}

} // namespace
} // namespace tessera
