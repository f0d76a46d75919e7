//===- GuardUpdates.cpp - steps that are not finite change nothing --------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_GUARDUPDATES
#include "passes/optimize/Passes.h.inc"

namespace {

struct GuardUpdates : impl::GuardUpdatesBase<GuardUpdates> {
  using GuardUpdatesBase::GuardUpdatesBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isTrainingStep(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
};

/// The metric of the gradients' norm; null if there is none.
Value findNorm(func::FuncOp func) {
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) == train::ResultRole::Metric)
      if (auto name = result.attrs.getAs<StringAttr>(train::kName); name && name == "grad_norm")
        return result.value;
  return {};
}

bool isFloat(Value value) { return isa<FloatType>(train::tensorType(value).getElementType()); }

/// False for infinities and for what is not a number.
Value isFinite(train::Build &build, Value x) {
  Value infinity = build.splatLike(x, std::numeric_limits<double>::infinity());
  return build.compare(train::CompareDirection::Lt, build.unary<train::AbsOp>(x), infinity);
}

LogicalResult GuardUpdates::run(func::FuncOp func) {
  SmallVector<train::StepResult> results = train::getResults(func);
  if (llvm::none_of(results, [](const train::StepResult &result) { return result.attrs.contains(train::kAlias); }))
    return success();
  FailureOr<unsigned> loss = train::getLossResult(func);
  if (failed(loss))
    return failure();
  Value lossValue = results[*loss].value, norm = findNorm(func);
  if (!norm)
    return func.emitError("has no metric grad_norm; run clip-gradients with metric=true before the optimizer");

  Block &body = func.getBody().front();
  Operation *end = body.getTerminator(), *first = end;
  for (Operation &op : body)
    if (first == end && isa<train::OptimizerUpdateOpInterface>(op))
      first = &op;
  for (Value value : {lossValue, norm}) {
    if (!isFloat(value) || train::tensorType(value).getRank() != 0)
      return func.emitError("the loss and grad_norm must be floating-point scalars");
    if (Operation *made = value.getDefiningOp(); made && !made->isBeforeInBlock(first))
      return first->emitError("updates a parameter before the loss and grad_norm are known");
  }

  OpBuilder builder(first);
  train::Build build(builder, NameLoc::get(builder.getStringAttr("updated")));
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value always = train::appendArgument(func, scalar, train::ArgRole::Hyper, "update_always", {},
                                       NameLoc::get(builder.getStringAttr("update_always")));
  Value finiteLoss = isFinite(build, lossValue), finiteNorm = isFinite(build, norm);
  Value finite = build.mul(finiteLoss, finiteNorm);
  Value asked = build.compare(train::CompareDirection::Ne, always, build.zeros(scalar));
  Value apply = build.max(finite, asked);
  for (Operation &op : body)
    if (auto update = dyn_cast<train::OptimizerUpdateOpInterface>(op))
      update.getApplyMutable().assign(apply);

  builder.setInsertionPoint(end);
  for (train::StepResult &result : results) {
    auto alias = result.attrs.getAs<IntegerAttr>(train::kAlias);
    Operation *made = result.value.getDefiningOp();
    if (!alias || isa_and_nonnull<train::OptimizerUpdateOpInterface>(made))
      continue;
    Value spread = build.broadcast(apply, train::shapeOf(result.value), {});
    result.value = build.select(spread, result.value, func.getArgument(alias.getInt()));
  }
  auto *aliased =
      llvm::find_if(results, [](const train::StepResult &result) { return result.attrs.contains(train::kAlias); });
  results.insert(aliased, {build.convert(apply, builder.getF32Type()),
                           builder.getDictionaryAttr({
                               train::getRoleAttr(builder.getContext(), train::ResultRole::Updated),
                               builder.getNamedAttr(train::kName, builder.getStringAttr("updated")),
                           })});
  train::setResults(func, results);
  return success();
}

} // namespace
} // namespace tessera
