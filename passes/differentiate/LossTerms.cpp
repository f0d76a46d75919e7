//===- LossTerms.cpp - how a loss depends on the batch --------------------===//
//
// See LossTerms.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/LossTerms.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Loss.h"
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
    "multiplies a mean over the batch by a number that equals its size; write a "
    "sum, or compile with another --batch if the number is not meant so";
constexpr llvm::StringLiteral kUnclearCount =
    "adds up equal values, of which there may or may not be as many as samples; write a mean, or multiply";
constexpr llvm::StringLiteral kComputedTargets = "counts targets that are computed";

Dependence other(Operation &op, StringRef why) { return {Kind::Other, 0, &op, why}; }

bool isBatchArgument(func::FuncOp func, BlockArgument arg) {
  StringRef role = train::getArgRole(func, arg.getArgNumber());
  return role == "input" || role == "target";
}

/// The number that all elements of a constant equal.
std::optional<double> splatOf(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat())
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>()))
    return number.getValueAsDouble();
  return static_cast<double>(dense.getSplatValue<APInt>().getSExtValue());
}

/// Whether `factor` is what turns `sum` into the mean that it belongs to.
bool makesMean(Value sum, double factor) {
  auto reduce = sum.getDefiningOp<train::ReduceOp>();
  if (!reduce || !reduce->hasAttr(train::kMean))
    return false;
  double count = 1;
  for (int64_t dim : reduce.getDimensions())
    count *= static_cast<double>(train::shapeOf(reduce.getOperand())[dim]);
  return factor == 1.0 / count || factor == static_cast<double>(static_cast<float>(1.0 / count));
}

/// A product or quotient of a sum over the batch and a number that cannot be told from the size of the batch.
bool hasUnclearFactor(Operation &op, unsigned sum) {
  if (!isa<train::MulOp, train::DivOp>(op))
    return false;
  std::optional<double> number = splatOf(op.getOperand(1 - sum));
  if (!number || std::abs(*number) == 1.0)
    return false;
  return !makesMean(op.getOperand(sum), isa<train::DivOp>(op) ? 1.0 / *number : *number);
}

/// A mean times a number that equals the size of the batch: it may have been meant as a sum.
bool mayUndoMean(Operation &op, unsigned mean, int64_t batchSize) {
  if (!isa<train::MulOp, train::DivOp>(op) || batchSize == 1)
    return false;
  std::optional<double> number = splatOf(op.getOperand(1 - mean));
  return number && std::abs(isa<train::DivOp>(op) ? 1.0 / *number : *number) == static_cast<double>(batchSize);
}

/// Whether all elements along a dimension are equal because they were repeated.
class Repeated {
public:
  bool along(Value value, int64_t dim) {
    if (auto known = found.find({value, dim}); known != found.end())
      return known->second;
    const bool result = look(value, dim);
    found[{value, dim}] = result;
    return result;
  }

private:
  bool look(Value value, int64_t dim) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1)
      return false;
    if (splatOf(value))
      return true;
    if (auto broadcast = dyn_cast<train::BroadcastOp>(op)) {
      auto *source = llvm::find(broadcast.getBroadcastDimensions(), dim);
      if (source == broadcast.getBroadcastDimensions().end())
        return true;
      const int64_t from = source - broadcast.getBroadcastDimensions().begin();
      return train::shapeOf(broadcast.getOperand())[from] != train::shapeOf(value)[dim] ||
             along(broadcast.getOperand(), from);
    }
    return op->hasTrait<OpTrait::Elementwise>() &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return along(operand, dim); });
  }

  llvm::DenseMap<std::pair<Value, int64_t>, bool> found;
};

/// A sum, with no sample in it, over what may nevertheless be repeated for each of them.
bool hasUnclearCount(Operation &op, int64_t batchSize) {
  auto reduce = dyn_cast<train::ReduceOp>(op);
  Repeated repeated;
  return reduce && reduce.getKind() == train::ReduceKind::Sum && !reduce->hasAttr(train::kMean) &&
         llvm::any_of(reduce.getDimensions(), [&](int64_t dim) {
           return train::shapeOf(reduce.getOperand())[dim] % batchSize == 0 && repeated.along(reduce.getOperand(), dim);
         });
}

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
  return arg && arg.getOwner() == &func.getBody().front() && isBatchArgument(func, arg) ? arg : BlockArgument();
}

LossTerms::LossTerms(func::FuncOp func) : func(func) {
  for (BlockArgument arg : func.getArguments())
    if (isBatchArgument(func, arg) && train::tensorType(arg).getRank() > 0) {
      batchSize = std::max<int64_t>(1, train::shapeOf(arg).front());
      break;
    }
  for (BlockArgument arg : func.getArguments()) {
    // What lacks the dimension of the batch is data that its samples share.
    const bool hasSamples =
        isBatchArgument(func, arg) && train::tensorType(arg).getRank() > 0 && train::shapeOf(arg).front() == batchSize;
    values[arg] = {hasSamples ? Kind::Samples : Kind::None, 0, nullptr, {}};
  }
  visit(func.getBody().front());
}

void LossTerms::visit(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (op.hasAttr(train::kBackward))
      continue;
    if (auto checkpoint = dyn_cast<train::CheckpointOp>(op)) {
      Block &body = checkpoint.getBody().front();
      visit(body);
      for (auto [result, yielded] : llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
        values[result] = values.lookup(yielded);
      continue;
    }
    for (unsigned result = 0; result < op.getNumResults(); ++result) {
      Dependence found = visit(op, result);
      values[op.getResult(result)] = found;
    }
  }
}

Dependence LossTerms::visit(Operation &op, unsigned result) {
  bool hasSamples = false, isReduced = false;
  for (Value operand : op.getOperands()) {
    const Dependence known = of(operand);
    if (known.kind == Kind::Other)
      return known;
    hasSamples |= known.kind == Kind::Samples;
    isReduced |= known.isReduced();
  }
  if (auto barrier = dyn_cast<train::BarrierOp>(op))
    if (auto whole = op.getAttrOfType<StringAttr>(train::kOfBatch)) {
      (whole.getValue() == "sum" ? wholeSums : wholeMeans).insert(barrier.getResult());
      return {};
    }
  if (!hasSamples && !isReduced)
    return hasUnclearCount(op, batchSize) ? other(op, kUnclearCount) : ofWhole(op);
  if (auto count = dyn_cast<train::CountValidOp>(op)) { // which accumulate-gradients makes one of the whole batch
    wholeSums.insert(count.getResult());
    return findBatchArgument(count.getTargets(), func) ? Dependence() : other(op, kComputedTargets);
  }
  if (op.hasAttr(train::kStatistics))
    return {};
  if (hasSamples && isReduced)
    return other(op, kMixesSamples);
  return hasSamples ? ofSamples(op, result) : ofReduced(op);
}

/// Reshapes keep the order of elements: as many parts lie outside of the samples as before, dimensions and blocks
/// together.
Dependence LossTerms::ofReshape(Operation &op, const Dependence &samples) const {
  ArrayRef<int64_t> in = train::shapeOf(op.getOperand(0)), out = train::shapeOf(op.getResult(0));
  const int64_t before = llvm::product_of(in.take_front(samples.dim)) * samples.blocks;
  // How many blocks of dimension `at` have all samples each; 0 if it does not count samples.
  auto blocksAt = [&](size_t at) -> int64_t {
    const int64_t outside = llvm::product_of(out.take_front(at));
    const int64_t blocks = outside > 0 && before % outside == 0 ? before / outside : 0;
    return blocks > 0 && out[at] % (blocks * batchSize) == 0 ? blocks : 0;
  };
  auto dim = static_cast<size_t>(samples.dim);
  if (dim < out.size() && blocksAt(dim) == samples.blocks && in.take_front(dim + 1) == out.take_front(dim + 1))
    return samples;
  Dependence found = other(op, kNoDimension);
  for (size_t at = 0; at < out.size(); ++at)
    if (const int64_t blocks = blocksAt(at); blocks > 0 && (found.kind == Kind::Other || blocks < found.blocks))
      found = {Kind::Samples, static_cast<int64_t>(at), nullptr, {}, blocks};
  return found;
}

Dependence LossTerms::ofSamples(Operation &op, unsigned result) const {
  if (isa<train::ReshapeOp>(op))
    return ofReshape(op, of(op.getOperand(0)));
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule)
    return other(op, kMixesSamples);
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
  if (factors.factors[samples].kind == FactorKind::Reduction) {
    auto scatter = dyn_cast<train::ScatterAddRowsOp>(op);
    if (scatter && splatOf(scatter.getInit()) != 0.0)
      return other(op, kNotLinear);
    return {op.hasAttr(train::kMean) ? Kind::Mean : Kind::Sum, 0, nullptr, {}};
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
    if (!isAverage && hasUnclearFactor(op, static_cast<unsigned>(index)))
      return other(op, kUnclearFactor);
    if (isAverage && mayUndoMean(op, static_cast<unsigned>(index), batchSize))
      return other(op, kUndoneMean);
    found = known;
  }
  if (isa<train::DivOp>(op) && wholeSums.contains(op.getOperand(1)))
    found.isAverage = true;
  return found;
}

/// Numbers that multiply a sum or mean of the whole batch are as unclear as where it is split.
Dependence LossTerms::ofWhole(Operation &op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const bool isSum = wholeSums.contains(operand), isMean = wholeMeans.contains(operand);
    if (isSum && hasUnclearFactor(op, static_cast<unsigned>(index)))
      return other(op, kUnclearFactor);
    if (isMean && mayUndoMean(op, static_cast<unsigned>(index), batchSize))
      return other(op, kUndoneMean);
    if (isSum)
      wholeSums.insert_range(op.getResults());
    if (isMean)
      wholeMeans.insert_range(op.getResults());
  }
  return {};
}

Dependence LossTerms::ofSum(Operation &op, ArrayRef<bool> linear) {
  bool isSum = false, isAverage = true;
  SmallVector<OpOperand *> means;
  for (auto [isLinear, operand] : llvm::zip_equal(linear, op.getOpOperands())) {
    const Kind kind = of(operand.get()).kind;
    if (!isLinear && kind != Kind::None)
      return other(op, kNotLinear);
    isSum |= kind == Kind::Sum;
    isAverage &= kind != Kind::Sum || of(operand.get()).isAverage;
    if (isLinear && kind != Kind::Sum && splatOf(operand.get()) != 0.0)
      means.push_back(&operand);
  }
  if (!isSum)
    return {Kind::Mean, 0, nullptr, {}};
  if (!means.empty() && !isa<FloatType>(train::tensorType(op.getResult(0)).getElementType()))
    return other(op, kNotLinear);
  llvm::append_range(mixed, means);
  Dependence sum{Kind::Sum, 0, nullptr, {}};
  sum.isAverage = isAverage;
  return sum;
}

bool LossTerms::isData(Value value) const {
  func::FuncOp step = func;
  auto isKnown = [&](Value source) {
    auto arg = dyn_cast<BlockArgument>(source);
    if (!arg)
      return true;
    return isBatchArgument(step, arg) || train::getArgRole(step, arg.getArgNumber()) == "frozen";
  };
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == &step.getBody().front() && llvm::all_of(opsOf(value), [&](Operation *each) {
           return each->getNumRegions() == 0 && llvm::all_of(each->getOperands(), isKnown);
         });
}

llvm::SetVector<Value> LossTerms::dataOf(const Dependence &other) const {
  llvm::SetVector<Value> data;
  if (other.kind == Kind::Other && other.why != kUnclearFactor && other.why != kUndoneMean)
    for (Value operand : other.op->getOperands())
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
                                       << "' " << known.why;
}

} // namespace tessera
