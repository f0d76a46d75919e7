//===- LossTerms.cpp - how a loss depends on the batch --------------------===//
//
// See LossTerms.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/LossTerms.h"

#include "passes/differentiate/BatchNumbers.h"
#include "passes/differentiate/RepeatedElements.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace tessera {

using Kind = Dependence::Kind;

namespace {

constexpr llvm::StringLiteral kUnclearFactor = "multiplies a sum over the batch by a number, which may or may not "
                                               "depend on the size of the batch; write a mean, or "
                                               "multiply before the sum";
constexpr llvm::StringLiteral kUndoneMean =
    "scales a mean over the batch by a number that may be the number of its elements or follow from it; write a sum or "
    "a plain mean, or compile with another --batch if the number is not meant so";
constexpr llvm::StringLiteral kUnclearCount =
    "adds up equal values, of which there may or may not be as many as samples; write a mean, or multiply";
constexpr llvm::StringLiteral kFollowsSize = "gives another result for a batch of another size";
constexpr llvm::StringLiteral kComputedTargets = "counts targets that are computed";

} // namespace

llvm::SetVector<Operation *> opsOf(Value value, llvm::function_ref<bool(Operation *)> stop) {
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return !stop(op); };
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  return slice;
}

BlockArgument findBatchArgument(Value value, func::FuncOp func) {
  // A recomputed loss reads its targets through a barrier.
  while (isa_and_nonnull<train::ReshapeOp, train::BarrierOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && arg.getOwner() == &func.getBody().front() && train::isBatchArgument(func, arg.getArgNumber())
             ? arg
             : BlockArgument();
}

LossTerms::LossTerms(func::FuncOp func, Mend mend) : func(func), batchSize(train::getBatchSize(func)) {
  if (auto groups = func->getAttrOfType<IntegerAttr>(train::kBatchGroups)) {
    knowsSizes = true;
    batchSize = groups.getInt();
  }
  for (BlockArgument arg : func.getArguments()) {
    const unsigned index = arg.getArgNumber();
    const int64_t dim = train::isBatchArgument(func, index) ? train::getDims(func, index).getSampleDim() : -1;
    // What has no dimension for samples is data that they share.
    values[arg] = dim < 0 ? Dependence{} : Dependence{Kind::Samples, dim, nullptr, {}};
  }
  visit(func.getBody().front(), mend);
}

void LossTerms::visit(Block &block, Mend mend) {
  for (Operation *next = &block.front(); next != block.getTerminator();) {
    Operation &op = *next;
    next = op.getNextNode();
    if (train::isMarkedBackward(&op))
      continue;
    bool isOther = false;
    for (unsigned result = 0; result < op.getNumResults(); ++result) {
      Dependence found = visit(op, result);
      values[op.getResult(result)] = found;
      isOther |= found.kind == Kind::Other && found.op == &op;
    }
    if (isOther && mend)
      if (Operation *first = mend(op, *this))
        next = first;
  }
}

Dependence LossTerms::visit(Operation &op, unsigned result) {
  if (auto gather = dyn_cast<train::GatherRowsOp>(op);
      gather && op.hasAttr(train::kOwnRows) && of(gather.getTable()).kind == Kind::Samples)
    return ofOwnRows(gather);
  bool hasSamples = false, isReduced = false;
  for (Value operand : op.getOperands()) {
    const Dependence known = of(operand);
    if (known.kind == Kind::Other)
      return known;
    hasSamples |= known.kind == Kind::Samples;
    isReduced |= known.isReduced();
  }
  if (op.hasAttr(train::kFollowsBatchSize))
    return Dependence::other(op, kFollowsSize);
  if (auto barrier = dyn_cast<train::BarrierOp>(op))
    if (auto whole = train::getOfBatch(&op, train::kOfBatch)) {
      (whole == train::OfBatch::Sum ? wholeSums : wholeMeans)[barrier.getResult()] = of(barrier.getOperand()).op;
      return {};
    }
  if (!hasSamples && !isReduced)
    return hasUnclearCount(op, batchSize) ? Dependence::other(op, kUnclearCount) : ofWhole(op);
  if (auto count = dyn_cast<train::CountValidOp>(op)) { // which accumulate-gradients makes one of the whole batch
    if (!findBatchArgument(count.getTargets(), func))
      return Dependence::other(op, kComputedTargets);
    wholeSums[count.getResult()] = &op;
    return {};
  }
  if (op.hasAttr(train::kStatistics))
    return {};
  if (hasSamples && isReduced)
    return Dependence::other(op, kMixesSamples);
  if (!hasSamples)
    return hasUnclearCount(op, batchSize) ? Dependence::other(op, kUnclearCount) : ofReduced(op);
  Dependence found = ofSamples(op, result);
  if (found.kind == Kind::Samples)
    noteScale(op, found);
  return found;
}

/// Keeps in mind what numbers and statistics of the whole batch are in `samples`, as long as they are only scaled and
/// added: a number that may be their count must not meet such a statistic.
void LossTerms::noteScale(Operation &op, Dependence &samples) const {
  if (knowsSizes ||
      !isa<train::MulOp, train::DivOp, train::AddOp, train::SubOp, train::NegOp, train::ConvertOp, train::ReshapeOp,
           train::TransposeOp, train::BroadcastOp, train::SelectOp, train::StopGradientOp, train::ReduceOp>(op))
    return;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    samples.usesWhole |= wholeSums.contains(operand) || wholeMeans.contains(operand);
    const Dependence known = of(operand);
    if (known.kind != Kind::Samples)
      continue;
    samples.usesWhole |= known.usesWhole;
    if (known.scaledBy)
      samples.scaledBy = known.scaledBy;
    std::optional<Scale> scale = scaleOf(op, static_cast<unsigned>(index));
    if (scale && !makesMean(operand, scale->factor()) && mayBeCount(*scale, countsAround(operand), Undoes::Either))
      samples.scaledBy = &op;
  }
  if (samples.scaledBy && samples.usesWhole)
    samples = Dependence::other(*samples.scaledBy, kCountedSamples);
  else if (isa<train::AddOp, train::SubOp>(op))
    samples.scaledBy = nullptr;
}

/// The sizes that a program may take for the number of samples or of their elements.
SmallVector<int64_t> LossTerms::countsAround(Value samples) const {
  const Dependence known = of(samples);
  return countsOf(train::shapeOf(samples), known.kind == Kind::Samples ? known.dim : -1, batchSize);
}

/// Whether the number that `op` scales samples by may make a sum of a mean over them, or a mean of a sum.
bool LossTerms::scaledUndoes(Operation &op, bool isMean) const {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (std::optional<Scale> scale = scaleOf(op, static_cast<unsigned>(index));
        scale && of(operand).kind == Kind::Samples)
      return mayBeCount(*scale, countsAround(operand), isMean ? Undoes::Mean : Undoes::Sum);
  return false;
}

/// Of values that have no samples any more: linear functions of sums and means are such themselves.
Dependence LossTerms::ofReduced(Operation &op) {
  if (isa<train::BroadcastOp, train::ConvertOp>(op))
    return isa<FloatType>(train::tensorType(op.getResult(0)).getElementType()) || isa<train::BroadcastOp>(op)
               ? of(op.getOperand(0))
               : Dependence::other(op, kNotLinear);
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule || op.getNumResults() != 1)
    return Dependence::other(op, kNotLinear);
  const ShardingRule factors = rule.getShardingRule();
  if (factors.linear.empty())
    return Dependence::other(op, kNotLinear);
  if (factors.jointlyLinear)
    return ofSum(op, factors.linear);
  Dependence found;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const Dependence known = of(operand);
    if (!known.isReduced())
      continue;
    if (found.isReduced() || !factors.linear[index])
      return Dependence::other(op, kNotLinear);
    const bool isAverage = known.kind == Kind::Mean || known.isAverage;
    if (!isAverage && !knowsSizes && hasUnclearFactor(op, static_cast<unsigned>(index)))
      return Dependence::other(op, kUnclearFactor);
    if (isAverage && mayUndo(op, static_cast<unsigned>(index), known.op))
      return Dependence::other(op, kUndoneMean);
    found = known;
  }
  if (isa<train::DivOp>(op) && wholeSums.contains(op.getOperand(1)))
    found.isAverage = true;
  return found;
}

/// A mean times or divided by a number that may follow from the number of its elements.
bool LossTerms::mayUndo(Operation &op, unsigned mean, Operation *reduction) const {
  std::optional<Scale> scale = scaleOf(op, mean);
  if (knowsSizes || !scale || makesMean(op.getOperand(mean), scale->factor()))
    return false;
  SmallVector<int64_t> counts = {batchSize};
  // Means are made of means, too: all elements that they are made of count.
  for (int steps = 0; reduction && reduction->getNumOperands() > 0 && steps < 16; ++steps) {
    Value operand = reduction->getOperand(0);
    if (isa<train::ReduceOp, train::CountValidOp>(reduction))
      llvm::append_range(counts, countsAround(operand));
    Operation *inner = operand.getDefiningOp();
    reduction = isa_and_nonnull<train::ReduceOp, train::ReshapeOp, train::MulOp, train::DivOp, train::NegOp>(inner)
                    ? inner
                    : nullptr;
  }
  return mayBeCount(*scale, counts, Undoes::Mean) || mayCorrectMean(*scale, counts);
}

/// Numbers that multiply a sum or mean of the whole batch are as unclear as where it is split.
Dependence LossTerms::ofWhole(Operation &op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const bool isSum = wholeSums.contains(operand), isMean = wholeMeans.contains(operand);
    if (isSum && !knowsSizes && hasUnclearFactor(op, static_cast<unsigned>(index)))
      return Dependence::other(op, kUnclearFactor);
    if (isMean && mayUndo(op, static_cast<unsigned>(index), wholeMeans.lookup(operand)))
      return Dependence::other(op, kUndoneMean);
    for (Value result : op.getResults()) {
      if (isSum)
        wholeSums[result] = wholeSums.lookup(operand);
      if (isMean)
        wholeMeans[result] = wholeMeans.lookup(operand);
    }
  }
  return {};
}

Dependence LossTerms::ofSum(Operation &op, ArrayRef<bool> linear) {
  bool isSum = false, isAverage = true;
  Operation *reduction = nullptr;
  SmallVector<OpOperand *> means;
  for (auto [isLinear, operand] : llvm::zip_equal(linear, op.getOpOperands())) {
    const Kind kind = of(operand.get()).kind;
    if (kind == Kind::Sum || kind == Kind::Mean)
      reduction = of(operand.get()).op;
    if (!isLinear && kind != Kind::None)
      return Dependence::other(op, kNotLinear);
    isSum |= kind == Kind::Sum;
    isAverage &= kind != Kind::Sum || of(operand.get()).isAverage;
    if (isLinear && kind != Kind::Sum && train::splatOf(operand.get()) != 0.0)
      means.push_back(&operand);
  }
  if (!isSum)
    return {Kind::Mean, 0, reduction, {}};
  if (!means.empty() && !isa<FloatType>(train::tensorType(op.getResult(0)).getElementType()))
    return Dependence::other(op, kNotLinear);
  llvm::append_range(mixed, means);
  Dependence sum{Kind::Sum, 0, reduction, {}};
  sum.isAverage = isAverage;
  return sum;
}

bool LossTerms::isData(Value value) const {
  func::FuncOp step = func;
  auto isKnown = [&](Value source) {
    auto arg = dyn_cast<BlockArgument>(source);
    if (!arg)
      return true;
    return train::isBatchArgument(step, arg.getArgNumber()) ||
           train::getArgRole(step, arg.getArgNumber()) == train::ArgRole::Frozen;
  };
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == &step.getBody().front() && llvm::all_of(opsOf(value), [&](Operation *each) {
           return each->getNumRegions() == 0 && llvm::all_of(each->getOperands(), isKnown);
         });
}

llvm::SetVector<Value> LossTerms::dataOf(Operation &op) const {
  llvm::SetVector<Value> data;
  const bool isOnlyUnclear = llvm::any_of(op.getResults(), [&](Value result) {
    const Dependence known = of(result);
    return known.why == kUnclearFactor || known.why == kUndoneMean || known.why == kCountedSamples;
  });
  if (!isOnlyUnclear)
    for (Value operand : op.getOperands())
      if (of(operand).isReduced() && isData(operand))
        data.insert(operand);
  return data;
}

SmallVector<OpOperand *> LossTerms::meansAmongSums(Value loss) const {
  const llvm::SetVector<Operation *> slice = opsOf(loss);
  return llvm::to_vector(
      llvm::make_filter_range(mixed, [&](OpOperand *operand) { return slice.contains(operand->getOwner()); }));
}

LogicalResult LossTerms::reject(Value loss) const {
  const Dependence known = of(loss);
  return emitError(known.op->getLoc()) << "the loss cannot be split into micro-batches: '" << known.op->getName()
                                       << "' " << known.why
                                       << "; with --accumulate 1 and a larger --batch it stays whole";
}

} // namespace tessera
