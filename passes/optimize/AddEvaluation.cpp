//===- AddEvaluation.cpp - the loss of a batch without its training -------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/optimize/LossAverage.h"
#include "passes/optimize/Passes.h"
#include "passes/simplify/Match.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ADDEVALUATION
#include "passes/optimize/Passes.h.inc"

namespace {

struct AddEvaluation : impl::AddEvaluationBase<AddEvaluation> {
  void runOnOperation() override {
    for (func::FuncOp func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (train::isTrainingStep(func) && failed(run(func)))
        return signalPassFailure();
  }
  LogicalResult run(func::FuncOp step);
  void addResults(const LossAverage &average, StringRef name, train::ResultRole sum, train::ResultRole count,
                  SmallVectorImpl<train::StepResult> &results);
};

void eraseDead(func::FuncOp func) {
  SmallVector<Operation *> ops; // users and what is inside of an op come after it
  func.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// Replaces `keep ? x / (1 - p) : 0` by `x`, where `keep` may be broadcast from whole channels.
bool removeSelects(Value keep, double ratio) {
  for (Operation *reader : llvm::to_vector(keep.getUsers())) {
    if (auto wide = dyn_cast<train::BroadcastOp>(reader)) {
      if (!removeSelects(wide.getResult(), ratio))
        return false;
      wide.erase();
      continue;
    }
    auto select = dyn_cast<train::SelectOp>(reader);
    if (!select || select.getPredicate() != keep ||
        simplify::uniformConstant(select.getOnFalse()) != std::optional<double>(0.0))
      return false;
    auto scaled = simplify::scaledBy(select.getOnTrue());
    // Both constants were rounded, to f32 at the least.
    if (!scaled || std::abs(scaled->second * (1.0 - ratio) - 1.0) > 1e-2 || scaled->first.getType() != select.getType())
      return false;
    select.replaceAllUsesWith(scaled->first);
    select.erase();
  }
  return true;
}

/// Inverted dropout, `keep ? x / (1 - p) : 0` with `keep = random >= p`, is `x` in evaluation.
bool removeDropout(train::RngUniformOp random) {
  for (Operation *user : llvm::to_vector(random->getUsers())) {
    auto keep = dyn_cast<train::CompareOp>(user);
    if (!keep || keep.getLhs() != random.getResult() || keep.getDirection() != train::CompareDirection::Ge)
      return false;
    std::optional<double> ratio = simplify::uniformConstant(keep.getRhs());
    if (!ratio || *ratio < 0 || *ratio >= 1 || !removeSelects(keep.getResult(), *ratio))
      return false;
    keep.erase();
  }
  return random.use_empty();
}

/// Lets statistics of the batch be the running ones, where the module has these.
void useRunningStatistics(func::FuncOp func) {
  llvm::StringMap<Value> buffers;
  for (BlockArgument arg : func.getArguments())
    if (train::getArgRole(func, arg.getArgNumber()) == train::ArgRole::Buffer)
      buffers[train::getArgName(func, arg.getArgNumber())] = arg;
  func.walk([&](train::ReduceOp sum) {
    auto name = sum->getAttrOfType<StringAttr>(train::kRunning);
    Value buffer = name ? buffers.lookup(name) : Value();
    if (!buffer || train::shapeOf(buffer) != train::shapeOf(sum))
      return;
    OpBuilder builder(sum);
    train::Build b(builder, sum.getLoc());
    const int64_t terms =
        train::tensorType(sum.getOperand()).getNumElements() / train::tensorType(sum).getNumElements();
    Value wide = b.convert(buffer, train::tensorType(sum).getElementType());
    sum.replaceAllUsesWith(b.scale(wide, static_cast<double>(terms)));
  });
  eraseDead(func);
}

constexpr llvm::StringLiteral kRemedy =
    "; to evaluate what was trained, load <out>/model.safetensors into the module, export it after eval() "
    "(tessera.export(module, inputs, evaluation=True)), and compile that with --evaluate for tessera-run --eval-only";

/// Fails where the module, after eval(), computes something else than the step without dropout.
LogicalResult checkMode(func::FuncOp step) {
  auto module = step->getParentOfType<ModuleOp>();
  auto differs = module->getAttrOfType<StringAttr>(train::kEvaluationDiffers);
  return differs
             ? LogicalResult(refuseEvaluation(module.getLoc())
                             << "after eval() the module computes something else: " << differs.getValue() << kRemedy)
             : success();
}

/// Dropout is off in evaluation; other random numbers are refused.
LogicalResult removeRandomness(func::FuncOp func) {
  auto mode = func->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(train::kMode);
  const bool isEvaluationMode = mode && mode.getValue() == train::kEvaluationMode;
  LogicalResult result = success();
  SmallVector<train::RngUniformOp> randoms;
  func.walk([&](train::RngUniformOp random) { randoms.push_back(random); });
  for (train::RngUniformOp random : randoms) {
    const bool isDropout = random->hasAttr(train::kDropout);
    if (isDropout && removeDropout(random))
      random.erase();
    else if (succeeded(result))
      result =
          refuseEvaluation(random.getLoc())
          << (isDropout ? "it uses random numbers otherwise than dropout that writes zeros"
              : isEvaluationMode
                  ? "it draws random numbers in evaluation mode, too, and an evaluation has none"
                  : "it draws random numbers other than those of dropout, and the step does not say whether the model "
                    "draws them in evaluation, too")
          << (isEvaluationMode ? llvm::StringLiteral("") : kRemedy);
  }
  return result;
}

/// Fails where a batch is normalised by statistics of its own.
LogicalResult checkStatistics(func::FuncOp func) {
  LogicalResult result = success();
  func.walk([&](Operation *op) {
    if (succeeded(result) && op->hasAttr(train::kStatistics))
      result = refuseEvaluation(op->getLoc())
               << "it normalises by statistics of the batch, and has no running ones for evaluation; export it as a "
                  "program of PyTorch (.pt2) with track_running_stats=True, compile with --batch-norm inference, which "
                  "normalises by constants in training, too, or without --evaluate";
  });
  return result;
}

/// A loss that was joined with its gradient is computed alone; what reads the gradient is not evaluated.
static void dropLossGradients(func::FuncOp func) {
  func.walk([](train::LinearCrossEntropyGradOp grad) {
    OpBuilder builder(grad);
    auto loss = train::LinearCrossEntropyOp::create(
        builder, grad.getLoc(), grad.getLoss().getType(), grad.getLse().getType(), grad.getHidden(), grad.getWeight(),
        grad.getTargets(), grad.getWeightDimAttr(), grad.getIgnoreIndexAttr(), grad.getLabelSmoothingAttr());
    grad.getLoss().replaceAllUsesWith(loss.getLoss());
    grad.getLse().replaceAllUsesWith(loss.getLse());
  });
}

/// Training computes no metrics.
void dropMetrics(func::FuncOp step) {
  SmallVector<train::StepResult> results;
  for (auto [index, result] : llvm::enumerate(train::getResults(step)))
    if (train::getResultRole(step, index) != train::ResultRole::Evaluated)
      results.push_back(result);
  if (results.size() == step.getNumResults())
    return;
  train::setResults(step, results);
  eraseDead(step);
}

/// What the runtime makes a number of all batches of.
void AddEvaluation::addResults(const LossAverage &average, StringRef name, train::ResultRole sum,
                               train::ResultRole count, SmallVectorImpl<train::StepResult> &results) {
  Builder builder(&getContext());
  auto attrsOf = [&](train::ResultRole role) {
    NamedAttrList attrs;
    attrs.append(train::getRoleAttr(&getContext(), role));
    attrs.set(train::kName, builder.getStringAttr(name.empty() ? train::stringifyResultRole(role) : name));
    return attrs;
  };
  NamedAttrList ofCount = attrsOf(count);
  if (average.of)
    ofCount.set(train::kOf, average.of);
  if (std::isfinite(average.atLeast))
    ofCount.set(train::kAtLeast, builder.getF64FloatAttr(average.atLeast));
  if (average.plus != 0.0)
    ofCount.set(train::kPlus, builder.getF64FloatAttr(average.plus));
  results.push_back({average.sum, attrsOf(sum).getDictionary(&getContext())});
  results.push_back({average.count, ofCount.getDictionary(&getContext())});
}

LogicalResult AddEvaluation::run(func::FuncOp step) {
  if (getOperation().lookupSymbol(train::kEvaluate))
    return step.emitError() << "there is a function @" << train::kEvaluate << " already";
  if (failed(checkMode(step)))
    return failure();
  func::FuncOp func = step.clone();
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(step);
  builder.insert(func);
  func.setName(train::kEvaluate);
  func->setAttr(train::kProgram, builder.getStringAttr(train::kEvaluate));
  FailureOr<unsigned> loss = train::getLossResult(func);
  if (failed(loss))
    return failure();

  if (func->hasAttr(train::kSamplesMeet))
    step.emitWarning()
        << "samples of a batch may influence each other in front of the loss: the loss of the evaluation is "
           "that of batches of this size, not of all samples as one batch";
  dropLossGradients(func);
  Operation *end = func.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  FailureOr<LossAverage> average = averageLoss(func, end->getOperand(*loss), builder);
  if (failed(average))
    return failure();
  // Where samples meet, those that fill a batch up would meet the others.
  const bool maybeFilled = !func->hasAttr(train::kSamplesMeet);
  if (!maybeFilled)
    average->of = {};
  SmallVector<train::StepResult> results;
  addResults(*average, "", train::ResultRole::LossSum, train::ResultRole::LossCount, results);
  for (auto [index, result] : llvm::enumerate(train::getResults(func))) {
    if (train::getResultRole(func, index) != train::ResultRole::Evaluated)
      continue;
    FailureOr<LossAverage> metric = averageMetric(func, result.value, builder);
    if (failed(metric))
      return failure();
    if (!maybeFilled)
      metric->of = {};
    addResults(*metric, result.attrs.getAs<StringAttr>(train::kName).getValue(), train::ResultRole::MetricSum,
               train::ResultRole::MetricCount, results);
  }
  // What one of them was found to be made of, another one may read.
  for (const train::StepResult &result : results)
    for (Operation *op : opsOf(result.value))
      if (op->hasAttr(train::kMicroBatches))
        return refuseEvaluation(op->getLoc()) << "a sum of the whole batch is read by the loss and by a metric, of "
                                                 "which one needs it for each micro-batch; leave such a "
                                                 "metric out";
  dropMetrics(step);
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) == train::ResultRole::IndexCheck)
      results.push_back(result);
  train::setResults(func, results);
  func->removeAttr(train::kLossOfBatch);
  func->removeAttr(train::kSamplesMeet);
  func->removeAttr(train::kNumOfBatch);
  func->removeAttr(train::kBatchGroups);
  func->removeAttr(train::kBatchParts);
  eraseDead(func);
  for (BlockArgument arg : func.getArguments())
    if (train::getArgRole(func, arg.getArgNumber()) == train::ArgRole::Buffer && !arg.use_empty())
      return refuseEvaluation(func.getLoc())
             << "its loss depends on '" << train::getArgName(func, arg.getArgNumber())
             << "', which the model changes as it trains; what it does with it in evaluation, the step does not say";
  useRunningStatistics(func);
  if (failed(removeRandomness(func)) || failed(checkStatistics(func)))
    return failure();
  eraseDead(func);
  for (unsigned index = func.getNumArguments(); index-- > 0;) {
    const std::optional<train::ArgRole> role = train::getArgRole(func, index);
    if (role != train::ArgRole::Hyper && role != train::ArgRole::Buffer)
      continue;
    if (role == train::ArgRole::Buffer && !func.getArgument(index).use_empty())
      continue;
    if (!func.getArgument(index).use_empty())
      return refuseEvaluation(func.getLoc())
             << "its loss depends on '" << train::getArgName(func, index) << "', which only training sets";
    if (failed(func.eraseArgument(index)))
      return failure();
  }
  return success();
}

} // namespace
} // namespace tessera
