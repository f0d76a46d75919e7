//===- LossAverage.cpp - the loss of several batches ----------------------===//
//
// See LossAverage.h.
//
//===----------------------------------------------------------------------===//

#include "passes/optimize/LossAverage.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/differentiate/WholeBatch.h"
#include "passes/simplify/Match.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tessera {

namespace {

/// A divisor max(C, atLeast) + plus, where `counted` is what a batch adds to C.
struct Divisor {
  Value counted;
  double atLeast = -std::numeric_limits<double>::infinity(), plus = 0.0;
};

/// What stands for a number of the whole batch.
bool isOfWholeBatch(Operation *op) {
  return isa<train::CountValidOp>(op) || op->hasAttr(train::kOfBatch) || op->hasAttr(train::kMicroBatches) ||
         op->hasAttr(train::kOfBatchNumber);
}

Operation *findOfWholeBatch(Value value) {
  llvm::SetVector<Operation *> ops = opsOf(value);
  const auto *found = llvm::find_if(ops, isOfWholeBatch);
  return found == ops.end() ? nullptr : *found;
}

bool isOnlyReshaped(Operation *op) {
  if (isa<train::ConvertOp>(op))
    return isa<FloatType>(train::tensorType(op->getResult(0)).getElementType());
  return isa<train::ReshapeOp, train::StopGradientOp>(op);
}

/// The finite number that all elements of a constant have, which was not made an integer.
std::optional<double> readConstant(Value value) {
  Value at = value;
  for (Operation *op = at.getDefiningOp(); isa_and_nonnull<train::BroadcastOp, train::ReshapeOp, train::ConvertOp>(op);
       op = at.getDefiningOp()) {
    if (isa<train::ConvertOp>(op) && !isa<FloatType>(train::tensorType(at).getElementType()))
      return std::nullopt;
    at = op->getOperand(0);
  }
  std::optional<double> number = simplify::uniformConstant(at);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// A number, or (perBatch) one that add-loss divided by the number of micro-batches, so that their sum is that number.
std::optional<double> readNumber(Value value, bool perBatch) {
  auto share = perBatch ? value.getDefiningOp<train::DivOp>() : train::DivOp();
  if (!share)
    return perBatch ? std::nullopt : readConstant(value);
  Value parts = share.getRhs();
  while (isa_and_nonnull<train::BroadcastOp, train::ReshapeOp>(parts.getDefiningOp()))
    parts = parts.getDefiningOp()->getOperand(0);
  Operation *op = parts.getDefiningOp();
  return op && op->hasAttr(train::kMicroBatches) ? readConstant(share.getLhs()) : std::nullopt;
}

/// Of `x <= number ? number : x`, as a clamp is imported: x and the number.
std::optional<std::pair<Value, double>> readClamp(Operation *op) {
  auto select = dyn_cast<train::SelectOp>(op);
  auto compare = select ? select.getPredicate().getDefiningOp<train::CompareOp>() : train::CompareOp();
  if (!compare || compare.getDirection() != train::CompareDirection::Le || compare.getLhs() != select.getOnFalse())
    return std::nullopt;
  std::optional<double> bound = readConstant(compare.getRhs());
  if (!bound || readConstant(select.getOnTrue()) != bound)
    return std::nullopt;
  return std::pair(compare.getLhs(), *bound);
}

/// Takes the last op off `value`, which `divisor` is made of. False: it cannot be taken off.
bool takeOff(Value &value, Divisor &divisor, bool perBatch) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isOnlyReshaped(op)) {
    value = op->getOperand(0);
    return true;
  }
  if (auto clamp = readClamp(op); clamp && !perBatch) {
    value = clamp->first;
    divisor.atLeast = std::max(divisor.atLeast, clamp->second);
    return true;
  }
  if (!isa<train::MaxOp, train::AddOp, train::SubOp>(op) || (perBatch && isa<train::MaxOp>(op)))
    return false;
  std::optional<double> number = readNumber(op->getOperand(1), perBatch);
  value = op->getOperand(0);
  if (!number && !isa<train::SubOp>(op)) {
    number = readNumber(op->getOperand(0), perBatch);
    value = op->getOperand(1);
  }
  if (!number)
    return false;
  if (isa<train::MaxOp>(op)) {
    divisor.atLeast = std::max(divisor.atLeast, *number);
    return true;
  }
  // max(x + number, atLeast) + plus = max(x, atLeast - number) + plus + number
  const double added = isa<train::AddOp>(op) ? *number : -*number;
  divisor.atLeast -= added;
  divisor.plus += added;
  return true;
}

/// Reads a divisor, from its last op to the sum over the batch that it is made of; nullopt if it is made otherwise.
std::optional<Divisor> readDivisor(Value value) {
  Divisor found;
  auto isSum = [&] {
    Operation *op = value.getDefiningOp();
    return op && (isa<train::CountValidOp>(op) || train::getOfBatch(op, train::kOfBatch) == train::OfBatch::Sum);
  };
  while (!isSum())
    if (!takeOff(value, found, /*perBatch=*/false))
      return std::nullopt;
  found.counted = value;
  if (value.getDefiningOp<train::CountValidOp>())
    return found;
  value = value.getDefiningOp()->getOperand(0);
  do
    found.counted = value;
  while (takeOff(value, found, /*perBatch=*/true));
  return findOfWholeBatch(found.counted) ? std::nullopt : std::optional(found);
}

/// How many values of `count`'s targets are not ignored: 0 of 0, where the op itself says 1 to be a divisor.
FailureOr<Value> exactCount(train::CountValidOp count, OpBuilder &builder) {
  // Sums of ones in f32 are exact up to here.
  constexpr int64_t kMostCounted = int64_t{1} << 24;
  train::Build b(builder, count.getLoc());
  const auto type = RankedTensorType::get({}, builder.getF32Type());
  const int64_t most = train::tensorType(count.getTargets()).getNumElements();
  if (most > kMostCounted)
    return refuseEvaluation(count.getLoc()) << "a batch has " << most << " targets, which f32 cannot count";
  auto ignored = count.getIgnoreIndex();
  if (!ignored)
    return b.splat(type, static_cast<double>(most));
  Value index = b.splatLike(count.getTargets(), static_cast<double>(static_cast<int64_t>(*ignored)));
  Value counted = b.compare(train::CompareDirection::Ne, count.getTargets(), index);
  return b.sumAll(b.convert(counted, type.getElementType()));
}

/// Whether `sum` adds up losses, or other numbers, of the values of `target` that are not ignored, and nothing else:
/// then a sample whose values are all ignored adds nothing.
bool isSumOverTarget(Value sum, BlockArgument target, std::optional<uint64_t> ignored, func::FuncOp func) {
  auto reduce = sum.getDefiningOp<train::ReduceOp>();
  if (!reduce || reduce.getKind() != train::ReduceKind::Sum || !ignored)
    return false;
  Value losses = reduce.getOperand();
  while (losses.getDefiningOp() && isa<train::ReshapeOp, train::ConvertOp>(losses.getDefiningOp()))
    losses = losses.getDefiningOp()->getOperand(0);
  auto isLossOf = [&](auto loss) {
    return losses == loss.getLoss() && loss.getIgnoreIndex() == ignored &&
           findBatchArgument(loss.getTargets(), func) == target;
  };
  if (!losses.getDefiningOp())
    return false;
  auto isMask = [&](Value value) {
    auto compare = value.getDefiningOp<train::CompareOp>();
    return compare && compare.getDirection() == train::CompareDirection::Ne &&
           findBatchArgument(compare.getLhs(), func) == target &&
           readConstant(compare.getRhs()) == static_cast<double>(static_cast<int64_t>(*ignored));
  };
  return llvm::TypeSwitch<Operation *, bool>(losses.getDefiningOp())
      .Case<train::CrossEntropyOp, train::LinearCrossEntropyOp, train::LinearCrossEntropyGradOp>(isLossOf)
      .Case([&](train::MulOp op) { return llvm::any_of(op->getOperands(), isMask); })
      .Default([](Operation *) { return false; });
}

/// The target that `count` counts, if what is added up are its losses; else null.
StringAttr countedTarget(train::CountValidOp count, Value sum, func::FuncOp func) {
  BlockArgument target = findBatchArgument(count.getTargets(), func);
  if (!target || train::getArgRole(func, target.getArgNumber()) != train::ArgRole::Target ||
      !isSumOverTarget(sum, target, count.getIgnoreIndex(), func))
    return {};
  return StringAttr::get(func.getContext(), train::getArgName(func, target.getArgNumber()));
}

/// Takes constant factors, reshapes and converts off `loss`; returns the product of the factors.
double takeFactors(Value &loss) {
  double factor = 1.0;
  while (Operation *op = loss.getDefiningOp()) {
    if (auto scaled = simplify::scaledBy(loss)) {
      factor *= scaled->second;
      loss = scaled->first;
    } else if (isOnlyReshaped(op) || isa<train::NegOp>(op)) {
      factor = isa<train::NegOp>(op) ? -factor : factor;
      loss = op->getOperand(0);
    } else {
      break;
    }
  }
  return factor;
}

Value toScalar(train::Build &b, Value value) { return b.convert(b.reshape(value, {}), b.builder.getF32Type()); }

/// Of a sum over the batch that is divided by another one; null values if it is made otherwise.
FailureOr<LossAverage> averageQuotient(func::FuncOp func, Value loss, OpBuilder &builder) {
  train::Build b(builder, loss.getLoc());
  auto scalar = [&](Value value) { return toScalar(b, value); };
  const double factor = takeFactors(loss);
  auto div = loss.getDefiningOp<train::DivOp>();
  std::optional<Divisor> divisor = div ? readDivisor(div.getRhs()) : std::nullopt;
  if (!divisor || findOfWholeBatch(div.getLhs()))
    return LossAverage{};
  LossAverage average{scalar(div.getLhs()), {}, {}, divisor->atLeast, divisor->plus};
  if (factor != 1.0)
    average.sum = b.mul(average.sum, b.splatLike(average.sum, factor));
  auto count = divisor->counted.getDefiningOp<train::CountValidOp>();
  if (!count) {
    average.count = scalar(divisor->counted);
    return average;
  }
  FailureOr<Value> exact = exactCount(count, builder);
  if (failed(exact))
    return failure();
  average.count = *exact;
  average.of = countedTarget(count, div.getLhs(), func);
  return average;
}

} // namespace

InFlightDiagnostic refuseEvaluation(Location loc) { return emitError(loc) << "the model cannot be evaluated: "; }

FailureOr<LossAverage> averageLoss(func::FuncOp func, Value loss, OpBuilder &builder) {
  const auto made = train::getOfBatch(func, train::kLossOfBatch);
  if (made == train::OfBatch::Mean) {
    if (Operation *whole = findOfWholeBatch(loss))
      return refuseEvaluation(whole->getLoc())
             << "its loss is a mean over the batch that also depends on this number of the whole "
                "batch, so that the loss of several batches does not follow from theirs";
    train::Build b(builder, loss.getLoc());
    Value mean = toScalar(b, loss);
    return LossAverage{mean, b.splatLike(mean, 1.0), {}};
  }
  FailureOr<LossAverage> quotient = averageQuotient(func, loss, builder);
  if (failed(quotient) || (made && quotient->sum))
    return quotient;
  return refuseEvaluation(loss.getLoc())
         << "the loss of several batches does not follow from theirs; it must be a sum over the batch divided by "
            "another one, or a mean over it; a sum of several terms is evaluated term by term: let the model return "
            "each, and compile for tessera-run --eval-only with --loss output:<one> and --metric output:<another>";
}

FailureOr<LossAverage> averageMetric(func::FuncOp func, Value metric, OpBuilder &builder) {
  llvm::SetVector<Operation *> slice = opsOf(metric);
  LossTerms terms(func, [&](Operation &op, const LossTerms &known) {
    return slice.contains(&op) ? takeOfWholeBatch(op, known, slice) : nullptr;
  });
  const Dependence known = terms.of(metric);
  if (known.kind == Dependence::Kind::Samples)
    return refuseEvaluation(metric.getLoc()) << "a metric is one number of a batch, not one for each sample";
  // As the loss: where samples meet in front of it, it is that of batches of this size.
  if (known.kind == Dependence::Kind::Other && !func->hasAttr(train::kSamplesMeet))
    return refuseEvaluation(known.op->getLoc())
           << "a metric of several batches does not follow from theirs: '" << known.op->getName() << "' " << known.why;
  const bool hasMeans = shareMeans(terms, metric);
  const bool isMean = known.kind == Dependence::Kind::Mean || known.kind == Dependence::Kind::None;
  Operation *whole = findOfWholeBatch(metric);
  train::Build b(builder, metric.getLoc());
  if (isMean && !whole) {
    Value mean = toScalar(b, metric);
    return LossAverage{mean, b.splatLike(mean, 1.0), {}};
  }
  FailureOr<LossAverage> quotient = isMean ? LossAverage{} : averageQuotient(func, metric, builder);
  if (failed(quotient) || quotient->sum)
    return quotient;
  if (whole || hasMeans || known.kind != Dependence::Kind::Sum)
    return refuseEvaluation(metric.getLoc())
           << "a metric of several batches does not follow from theirs; it must be a sum over the batch, perhaps "
              "divided by another one, or a mean over it";
  LossAverage sum{toScalar(b, metric), {}, {}};
  sum.count = b.zeros(train::tensorType(sum.sum));
  sum.plus = 1.0;
  return sum;
}

} // namespace tessera
