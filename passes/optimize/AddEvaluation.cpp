//===- AddEvaluation.cpp - the loss of a batch without its training -------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/optimize/Passes.h"
#include "passes/simplify/Match.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ADDEVALUATION
#include "passes/optimize/Passes.h.inc"

namespace {

/// The loss of several batches is the sum of `sum` over them divided by the sum of `count`.
struct Average {
  Value sum, count;
  StringAttr of; ///< the target that is counted; null if it is something else
};

struct AddEvaluation : impl::AddEvaluationBase<AddEvaluation> {
  void runOnOperation() override {
    for (func::FuncOp func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (train::isTrainingStep(func) && failed(run(func)))
        return signalPassFailure();
  }
  LogicalResult run(func::FuncOp step);
};

InFlightDiagnostic refuse(Location loc) { return emitError(loc) << "the model cannot be evaluated: "; }

void eraseDead(func::FuncOp func) {
  SmallVector<Operation *> ops; // users and what is inside of an op come after it
  func.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// How many values of `count`'s targets are not ignored: 0 of 0, where the op itself says 1 to be a divisor.
Value exactCount(train::CountValidOp count, OpBuilder &builder) {
  train::Build b(builder, count.getLoc());
  auto type = train::tensorType(count.getResult());
  auto ignored = count.getIgnoreIndex();
  if (!ignored)
    return b.splat(type, static_cast<double>(train::tensorType(count.getTargets()).getNumElements()));
  Value index = b.splatLike(count.getTargets(), static_cast<double>(static_cast<int64_t>(*ignored)));
  Value counted = b.compare(train::CompareDirection::Ne, count.getTargets(), index);
  return b.sumAll(b.convert(counted, type.getElementType()));
}

/// Whether a value follows from the batch and constants alone.
bool isOfData(Value value, func::FuncOp func) {
  auto isData = [&](Value operand) {
    auto arg = dyn_cast<BlockArgument>(operand);
    if (!arg || arg.getOwner() != &func.getBody().front())
      return true;
    return train::isBatch(train::getArgRole(func, arg.getArgNumber()));
  };
  return isData(value) &&
         llvm::all_of(opsOf(value), [&](Operation *op) { return llvm::all_of(op->getOperands(), isData); });
}

/// A divisor that is at least 1, or stands for that of the whole batch, before it was made so.
Value withoutBound(Value divisor) {
  while (true) {
    if (auto barrier = divisor.getDefiningOp<train::BarrierOp>())
      divisor = barrier.getOperand();
    else if (auto most = divisor.getDefiningOp<train::MaxOp>(); most && simplify::uniformConstant(most.getRhs()))
      divisor = most.getLhs();
    else
      return divisor;
  }
}

/// Whether `sum` adds up the losses of the values of `target` that are not ignored, and nothing else: then a sample
/// whose values are all ignored adds nothing.
bool isSumOverTarget(Value sum, BlockArgument target, std::optional<uint64_t> ignored, func::FuncOp func) {
  auto reduce = sum.getDefiningOp<train::ReduceOp>();
  if (!reduce || reduce.getKind() != train::ReduceKind::Sum || !ignored)
    return false;
  Value losses = reduce.getOperand();
  while (losses.getDefiningOp() && isa<train::ReshapeOp, train::ConvertOp>(losses.getDefiningOp()))
    losses = losses.getDefiningOp()->getOperand(0);
  auto loss = losses.getDefiningOp<train::CrossEntropyOp>();
  return loss && losses == loss.getLoss() && loss.getIgnoreIndex() == ignored &&
         findBatchArgument(loss.getTargets(), func) == target;
}

FailureOr<Average> averageOf(func::FuncOp func, Value loss, OpBuilder &builder) {
  // Sums of ones in f32 are exact up to here.
  constexpr int64_t kMostCounted = int64_t{1} << 24;
  train::Build b(builder, loss.getLoc());
  const auto made = train::getOfBatch(func, train::kLossOfBatch);
  if (made == train::OfBatch::Mean)
    return Average{loss, b.splatLike(loss, 1.0), {}};
  auto div = loss.getDefiningOp<train::DivOp>();
  if (made == train::OfBatch::Sum && div) {
    Value divisor = withoutBound(div.getRhs());
    if (auto count = divisor.getDefiningOp<train::CountValidOp>()) {
      if (int64_t most = train::tensorType(count.getTargets()).getNumElements(); most > kMostCounted)
        return refuse(count.getLoc()) << "a batch has " << most << " targets, which f32 cannot count";
      BlockArgument target = findBatchArgument(count.getTargets(), func);
      const bool isTarget = target && isSumOverTarget(div.getLhs(), target, count.getIgnoreIndex(), func) &&
                            train::getArgRole(func, target.getArgNumber()) == train::ArgRole::Target;
      return Average{div.getLhs(), exactCount(count, builder),
                     isTarget ? builder.getStringAttr(train::getArgName(func, target.getArgNumber())) : StringAttr()};
    }
    if (isOfData(divisor, func))
      return Average{div.getLhs(), divisor, {}};
  }
  return refuse(loss.getLoc()) << "the loss of several batches does not follow from theirs; it must be a sum over the "
                                  "batch divided by what it counts there, or a mean over it";
}

/// Inverted dropout, `keep ? x / (1 - p) : 0` with `keep = random >= p`, is `x` in evaluation.
bool removeDropout(train::RngUniformOp random) {
  for (Operation *user : llvm::to_vector(random->getUsers())) {
    auto keep = dyn_cast<train::CompareOp>(user);
    if (!keep || keep.getLhs() != random.getResult() || keep.getDirection() != train::CompareDirection::Ge)
      return false;
    std::optional<double> ratio = simplify::uniformConstant(keep.getRhs());
    if (!ratio || *ratio < 0 || *ratio >= 1)
      return false;
    for (Operation *reader : llvm::to_vector(keep->getUsers())) {
      auto select = dyn_cast<train::SelectOp>(reader);
      if (!select || select.getPredicate() != keep.getResult() ||
          simplify::uniformConstant(select.getOnFalse()) != std::optional<double>(0.0))
        return false;
      auto scaled = simplify::scaledBy(select.getOnTrue());
      // Both constants were rounded, to f32 at the least.
      if (!scaled || std::abs(scaled->second * (1.0 - *ratio) - 1.0) > 1e-2 ||
          scaled->first.getType() != select.getType())
        return false;
      select.replaceAllUsesWith(scaled->first);
      select.erase();
    }
    if (keep.use_empty())
      keep.erase();
  }
  return random.use_empty();
}

/// What evaluation does not do as training does: dropout is off, and all else must be the same.
LogicalResult removeRandomness(func::FuncOp func) {
  LogicalResult result = success();
  SmallVector<train::RngUniformOp> randoms;
  func.walk([&](train::RngUniformOp random) { randoms.push_back(random); });
  for (train::RngUniformOp random : randoms) {
    if (removeDropout(random))
      random.erase();
    else if (succeeded(result))
      result = refuse(random.getLoc()) << "it uses random numbers that are no dropout";
  }
  func.walk([&](Operation *op) {
    if (succeeded(result) && op->hasAttr(train::kStatistics))
      result = refuse(op->getLoc()) << "it normalises by statistics of the batch, and has no running ones to evaluate "
                                       "with; compile with --batch-norm inference, or without --evaluate";
  });
  return result;
}

LogicalResult AddEvaluation::run(func::FuncOp step) {
  if (getOperation().lookupSymbol(train::kEvaluate))
    return step.emitError() << "there is a function @" << train::kEvaluate << " already";
  func::FuncOp func = step.clone();
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(step);
  builder.insert(func);
  func.setName(train::kEvaluate);
  func->setAttr(train::kProgram, builder.getStringAttr(train::kEvaluate));
  FailureOr<unsigned> loss = train::getLossResult(func);
  if (failed(loss))
    return failure();

  Operation *end = func.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  FailureOr<Average> average = averageOf(func, end->getOperand(*loss), builder);
  if (failed(average))
    return failure();
  auto attrsOf = [&](train::ResultRole role, StringAttr of) {
    NamedAttrList attrs;
    attrs.append(train::getRoleAttr(&getContext(), role));
    attrs.set(train::kName, builder.getStringAttr(train::stringifyResultRole(role)));
    if (of)
      attrs.set(train::kOf, of);
    return attrs.getDictionary(&getContext());
  };
  SmallVector<train::StepResult> results = {{average->sum, attrsOf(train::ResultRole::LossSum, {})},
                                            {average->count, attrsOf(train::ResultRole::LossCount, average->of)}};
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) == train::ResultRole::IndexCheck)
      results.push_back(result);
  train::setResults(func, results);
  func->removeAttr(train::kLossOfBatch);
  func->removeAttr(train::kOfBatch);
  eraseDead(func);
  if (failed(removeRandomness(func)))
    return failure();
  eraseDead(func);
  for (unsigned index = func.getNumArguments(); index-- > 0;) {
    if (train::getArgRole(func, index) != train::ArgRole::Hyper)
      continue;
    if (!func.getArgument(index).use_empty())
      return refuse(func.getLoc()) << "its loss depends on '" << train::getArgName(func, index)
                                   << "', which only training sets";
    if (failed(func.eraseArgument(index)))
      return failure();
  }
  return success();
}

} // namespace
} // namespace tessera
