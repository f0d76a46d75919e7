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

constexpr llvm::StringLiteral kMixesSamples = "lets the samples of a batch influence each other";
constexpr llvm::StringLiteral kNoDimension = "leaves no dimension that counts samples";
constexpr llvm::StringLiteral kNotLinear = "is not linear in what was added up over the batch";
constexpr llvm::StringLiteral kUnclearFactor = "multiplies a sum over the batch by a number, which may or may not "
                                               "depend on the size of the batch; write a mean, or "
                                               "multiply before the sum";
constexpr llvm::StringLiteral kUndoneMean =
    "scales a mean over the batch by a number that may be the number of its elements or follow from it; write a sum or "
    "a plain mean, or compile with another --batch if the number is not meant so";
constexpr llvm::StringLiteral kCountedSamples = "scales samples by a number that may be their count; write a mean or a "
                                                "plain sum, or compile with another --batch if "
                                                "the number is not meant so";
constexpr llvm::StringLiteral kPlaces = "combines the samples of a batch with what depends on their place in it";
constexpr llvm::StringLiteral kUnclearCount =
    "adds up equal values, of which there may or may not be as many as samples; write a mean, or multiply";
constexpr llvm::StringLiteral kComputedTargets = "counts targets that are computed";

Dependence other(Operation &op, StringRef why) { return {Kind::Other, 0, &op, why}; }

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

/// Of indices to which the number of the rows before those of their sample was added: samples, whatever the place of
/// one in the batch.
Dependence LossTerms::ofOwnIndices(Value indices) const {
  const Dependence known = of(indices);
  Operation *op = indices.getDefiningOp();
  if (known.kind != Kind::Other || !isa_and_nonnull<train::AddOp, train::MulOp>(op))
    return known;
  const Dependence one = ofOwnIndices(op->getOperand(0)), other = ofOwnIndices(op->getOperand(1));
  const bool areSame = one.kind == other.kind && one.dim == other.dim && one.blocks == other.blocks;
  return other.kind == Kind::None || areSame ? one : one.kind == Kind::None ? other : known;
}

/// Of a lookup of each sample in its own rows.
Dependence LossTerms::ofOwnRows(train::GatherRowsOp op) const {
  const Dependence table = of(op.getTable()), indices = ofOwnIndices(op.getIndices());
  auto isMajor = [](const Dependence &known) {
    return known.kind == Kind::Samples && known.dim == 0 && known.blocks == 1;
  };
  return isMajor(table) && isMajor(indices) ? indices : other(*op, kMixesSamples);
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
  if (auto barrier = dyn_cast<train::BarrierOp>(op))
    if (auto whole = train::getOfBatch(&op, train::kOfBatch)) {
      (whole == train::OfBatch::Sum ? wholeSums : wholeMeans)[barrier.getResult()] = of(barrier.getOperand()).op;
      return {};
    }
  if (!hasSamples && !isReduced)
    return hasUnclearCount(op, batchSize) ? other(op, kUnclearCount) : ofWhole(op);
  if (auto count = dyn_cast<train::CountValidOp>(op)) { // which accumulate-gradients makes one of the whole batch
    if (!findBatchArgument(count.getTargets(), func))
      return other(op, kComputedTargets);
    wholeSums[count.getResult()] = &op;
    return {};
  }
  if (op.hasAttr(train::kStatistics))
    return {};
  if (hasSamples && isReduced)
    return other(op, kMixesSamples);
  if (!hasSamples)
    return hasUnclearCount(op, batchSize) ? other(op, kUnclearCount) : ofReduced(op);
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
    samples = other(*samples.scaledBy, kCountedSamples);
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

/// Whether `value`, of which nothing is a sample, is the same for all of them along a dimension of `blocks` parts.
bool LossTerms::isSameForSamples(Value value, int64_t dim, int64_t blocks) {
  const std::tuple<Value, int64_t, int64_t> key{value, dim, blocks};
  if (auto known = same.find(key); known != same.end())
    return known->second;
  const bool result = findSameForSamples(value, dim, blocks);
  same[key] = result;
  return result;
}

bool LossTerms::findSameForSamples(Value value, int64_t dim, int64_t blocks) {
  if ((batchSize == 1 && !knowsSizes) || train::splatOf(value))
    return true;
  auto result = dyn_cast<OpResult>(value);
  if (!result || of(value).kind == Kind::Samples || train::shapeOf(value)[dim] % (blocks * batchSize) != 0)
    return false;
  Operation *op = result.getOwner();
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return !constant->hasAttr(train::kByPlace) && isConstantAlong(constant, dim, blocks, batchSize);
  if (isa<train::RngUniformOp>(op))
    return true; // each has numbers of its own
  if (auto iota = dyn_cast<train::IotaOp>(op))
    return static_cast<int64_t>(iota.getDim()) != dim;
  if (isa<train::BarrierOp>(op))
    return isSameForSamples(op->getOperand(result.getResultNumber()), dim, blocks);
  if (isa<train::ReshapeOp>(op)) {
    const auto [from, parts] = findParts(train::shapeOf(value), train::shapeOf(op->getOperand(0)), dim, blocks);
    return parts > 0 && isSameForSamples(op->getOperand(0), from, parts);
  }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule || op->getNumOperands() == 0)
    return false;
  const ShardingRule factors = rule.getShardingRule();
  ArrayRef<int64_t> found = factors.results[result.getResultNumber()][dim];
  if (found.size() != 1 || factors.factors[found.front()].kind != FactorKind::PassThrough ||
      factors.factors[found.front()].isOrdered)
    return false;
  return isSameAlong(*op, factors, found.front(), blocks);
}

/// Whether the operands that have a factor are the same along it.
bool LossTerms::isSameAlong(Operation &op, const ShardingRule &factors, int64_t factor, int64_t blocks) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    for (auto [dim, found] : llvm::enumerate(factors.operands[index]))
      if (llvm::is_contained(found, factor) &&
          (found.size() != 1 || !isSameForSamples(operand, static_cast<int64_t>(dim), blocks)))
        return false;
  return true;
}

/// Reshapes keep the order of elements: as many parts lie outside of the samples as before, dimensions and blocks
/// together. Returns the dimension of `to` that has the samples of dimension `dim` of `from`, and how many blocks of it
/// have all of them each; 0 if there is none. `grows`: the dimension of `to` that grows with the batch, if it is known.
std::pair<int64_t, int64_t> LossTerms::findParts(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim,
                                                 int64_t blocks, std::optional<int64_t> grows) const {
  const int64_t before = llvm::product_of(from.take_front(dim)) * blocks;
  auto blocksAt = [&](size_t at) -> int64_t {
    const int64_t outside = llvm::product_of(to.take_front(at));
    const int64_t parts = outside > 0 && before % outside == 0 ? before / outside : 0;
    return parts > 0 && to[at] % (parts * batchSize) == 0 ? parts : 0;
  };
  if (grows)
    return {*grows, blocksAt(static_cast<size_t>(*grows))};
  auto same = static_cast<size_t>(dim);
  if (same < to.size() && blocksAt(same) == blocks && from.take_front(same + 1) == to.take_front(same + 1))
    return {dim, blocks};
  std::pair<int64_t, int64_t> found{0, 0};
  for (size_t at = 0; at < to.size(); ++at)
    if (const int64_t parts = blocksAt(at); parts > 0 && (found.second == 0 || parts < found.second))
      found = {static_cast<int64_t>(at), parts};
  return found;
}

/// The dimension of an op's result that is known to grow as the batch does.
static std::optional<int64_t> growsAt(Operation &op) {
  auto dim = op.getAttrOfType<IntegerAttr>(train::kGrows);
  return dim ? std::optional(dim.getInt()) : std::nullopt;
}

/// Of samples: whole blocks, or every so many of the elements of each sample.
Dependence LossTerms::ofSlice(train::SliceOp op, const Dependence &samples) const {
  const int64_t dim = samples.dim, size = train::shapeOf(op.getOperand())[dim], block = size / samples.blocks;
  const int64_t start = op.getStarts()[dim], limit = op.getLimits()[dim], stride = op.getStrides()[dim];
  if (growsAt(*op) != dim)
    return other(*op, kMixesSamples);
  Dependence part = samples;
  if (stride != 1)
    return block % (batchSize * stride) == 0 ? part : other(*op, kMixesSamples);
  if (start % block != 0 || limit % block != 0)
    return other(*op, kMixesSamples);
  part.blocks = (limit - start) / block;
  return part;
}

/// Of samples along their dimension: the blocks of all operands.
Dependence LossTerms::ofConcat(train::ConcatOp op) const {
  const auto dim = static_cast<int64_t>(op.getDim());
  Dependence joined;
  int64_t block = 0, blocks = 0;
  for (Value operand : op.getOperands()) {
    const Dependence known = of(operand);
    if (known.kind != Kind::Samples || known.dim != dim)
      return other(*op, kMixesSamples);
    const int64_t size = train::shapeOf(operand)[dim] / known.blocks;
    if (block != 0 && size != block)
      return other(*op, kMixesSamples);
    block = size;
    blocks += known.blocks;
    joined = known;
  }
  joined.blocks = blocks;
  return growsAt(*op) == dim ? joined : other(*op, kMixesSamples);
}

Dependence LossTerms::ofSamples(Operation &op, unsigned result) {
  if (isa<train::ReshapeOp>(op)) {
    const Dependence known = of(op.getOperand(0));
    const std::optional<int64_t> grows = growsAt(op);
    if (knowsSizes && !grows)
      return other(op, kNoDimension);
    const auto [dim, blocks] =
        findParts(train::shapeOf(op.getOperand(0)), train::shapeOf(op.getResult(0)), known.dim, known.blocks, grows);
    return blocks > 0 ? Dependence{Kind::Samples, dim, nullptr, {}, blocks} : other(op, kNoDimension);
  }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule)
    return other(op, kMixesSamples);
  if (auto concat = dyn_cast<train::ConcatOp>(op);
      concat && of(op.getOperand(0)).dim == static_cast<int64_t>(concat.getDim()))
    return ofConcat(concat);
  if (auto slice = dyn_cast<train::SliceOp>(op)) {
    const Dependence known = of(slice.getOperand());
    if (train::shapeOf(slice.getResult())[known.dim] != train::shapeOf(slice.getOperand())[known.dim])
      return ofSlice(slice, known);
  }
  const ShardingRule factors = rule.getShardingRule();
  int64_t samples = -1, blocks = 1;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const Dependence known = of(operand);
    if (known.kind != Kind::Samples)
      continue;
    ArrayRef<int64_t> found = factors.operands[index][known.dim];
    if (found.empty() || (samples >= 0 && (found.front() != samples || known.blocks != blocks)))
      return other(op, kMixesSamples);
    samples = found.front();
    blocks = known.blocks;
  }
  const std::optional<dist::ReductionKind> reduction = factors.reductionOf(result, samples);
  const bool isReduction = reduction == dist::ReductionKind::Sum;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    if (of(operand).kind == Kind::Samples)
      continue;
    for (auto [dim, found] : llvm::enumerate(factors.operands[index]))
      if (llvm::is_contained(found, samples) &&
          (found.size() != 1 || !isSameForSamples(operand, static_cast<int64_t>(dim), blocks) ||
           (isReduction && batchSize == 1 && !operand.getDefiningOp<train::BroadcastOp>())))
        return other(op, kPlaces);
  }
  if (isReduction) {
    auto scatter = dyn_cast<train::ScatterAddRowsOp>(op);
    if (scatter && train::splatOf(scatter.getInit()) != 0.0)
      return other(op, kNotLinear);
    const bool isMean = op.hasAttr(train::kMean);
    for (Value operand : op.getOperands())
      if (Operation *scaledBy = of(operand).scaledBy; scaledBy && scaledUndoes(*scaledBy, isMean))
        return other(*scaledBy, kCountedSamples);
    return {isMean ? Kind::Mean : Kind::Sum, 0, &op, {}};
  }
  if (factors.factors[samples].kind == FactorKind::PassThrough)
    for (auto [dim, found] : llvm::enumerate(factors.results[result]))
      if (!found.empty() && found.front() == samples)
        return {Kind::Samples, static_cast<int64_t>(dim), nullptr, {}, blocks};
  return other(op, kMixesSamples);
}

/// Of values that have no samples any more: linear functions of sums and means are such themselves.
Dependence LossTerms::ofReduced(Operation &op) {
  if (isa<train::BroadcastOp, train::ConvertOp>(op))
    return isa<FloatType>(train::tensorType(op.getResult(0)).getElementType()) || isa<train::BroadcastOp>(op)
               ? of(op.getOperand(0))
               : other(op, kNotLinear);
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule || op.getNumResults() != 1)
    return other(op, kNotLinear);
  const ShardingRule factors = rule.getShardingRule();
  if (factors.linear.empty())
    return other(op, kNotLinear);
  if (factors.jointlyLinear)
    return ofSum(op, factors.linear);
  Dependence found;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const Dependence known = of(operand);
    if (!known.isReduced())
      continue;
    if (found.isReduced() || !factors.linear[index])
      return other(op, kNotLinear);
    const bool isAverage = known.kind == Kind::Mean || known.isAverage;
    if (!isAverage && !knowsSizes && hasUnclearFactor(op, static_cast<unsigned>(index)))
      return other(op, kUnclearFactor);
    if (isAverage && mayUndo(op, static_cast<unsigned>(index), known.op))
      return other(op, kUndoneMean);
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
      return other(op, kUnclearFactor);
    if (isMean && mayUndo(op, static_cast<unsigned>(index), wholeMeans.lookup(operand)))
      return other(op, kUndoneMean);
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
      return other(op, kNotLinear);
    isSum |= kind == Kind::Sum;
    isAverage &= kind != Kind::Sum || of(operand.get()).isAverage;
    if (isLinear && kind != Kind::Sum && train::splatOf(operand.get()) != 0.0)
      means.push_back(&operand);
  }
  if (!isSum)
    return {Kind::Mean, 0, reduction, {}};
  if (!means.empty() && !isa<FloatType>(train::tensorType(op.getResult(0)).getElementType()))
    return other(op, kNotLinear);
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
