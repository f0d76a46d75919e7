//===- BatchSizes.cpp - what of a step follows from its batch -------------===//
//
// See BatchSizes.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/BatchSizes.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/BatchNumbers.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/differentiate/RepeatedElements.h"

#include "llvm/ADT/DenseSet.h"

#include <numeric>

using namespace mlir;
using namespace tessera::train;

namespace tessera {

namespace {

/// Importers evaluate no table beyond this size (kMaxConstantElements of frontends/common/HostTensor.h).
constexpr int64_t kEvaluated = int64_t{4} << 20;

/// Whether a slice with a stride along `dim` takes the same elements of each group of as many samples.
bool takesOfEach(SliceOp op, int64_t dim) {
  const int64_t size = shapeOf(op.getOperand())[dim], stride = op.getStrides()[dim];
  return op.getStarts()[dim] < stride && size % stride == 0 && shapeOf(op.getResult())[dim] == size / stride;
}

/// A number of `small` whose value for the whole batch is another one.
struct Number {
  enum class Growth { Batch, Inverse, Other };
  ConstantOp op;
  double whole;
  Growth growth; ///< as the batch, as its inverse, or otherwise
};

class BatchSizes {
public:
  BatchSizes(func::FuncOp step, func::FuncOp larger, int64_t times)
      : step(step), larger(larger), times(times), groups(getBatchSize(step)) {}

  /// False: the steps are not the same, from `different` on, if it is an op of the step.
  bool find();
  bool isEvaluatedAlike() const;
  void mark();

  Operation *different = nullptr;

private:
  /// What a constant of the larger step is to one of `step`.
  struct Relation {
    enum Kind {
      None,    ///< another one
      Same,    ///< the same, perhaps longer
      ByPlace, ///< a longer one that has other values for other samples
      Number,  ///< a number, of another value: `whole`
    } kind = None;
    double whole = 0;

    bool operator==(const Relation &) const = default;
  };

  bool match(Operation &small, Operation &large);
  bool matchOperands(Operation &small, Operation &large);
  bool matchConstants(ConstantOp small, ConstantOp large);
  Relation relate(ConstantOp small, ConstantOp large) const;
  int64_t grownDim(Value small, Value large) const;
  bool growsAlike(Operation &small, Operation &large, int64_t dim) const;
  bool isOfPart(OpOperand &use) const;
  bool followsBatch(Operation &small, Operation &large) const;
  void replace(const Number &number);
  void markByPlace(ConstantOp op);

  func::FuncOp step, larger;
  int64_t times;
  int64_t groups;                                ///< of consecutive samples that the program keeps together
  llvm::DenseMap<Value, Value> same;             ///< what of the larger step a value corresponds to, but for constants
  llvm::DenseMap<Operation *, Relation> related; ///< what the larger step has in place of a constant
  SmallVector<Number> numbers;
  SmallVector<std::pair<Operation *, int64_t>> grown; ///< ops that arrange elements, with the dimension that grows
  SmallVector<ConstantOp> byPlace;                    ///< constants that have other values for other samples
  llvm::SetVector<Operation *> following; ///< ops with another result for a batch of another size, and what reads them
  llvm::DenseSet<Value> ofSamples;        ///< inputs that grow, and what is computed of them
  llvm::DenseSet<Location> statistics;    ///< nodes that are defined by the micro-batch
  llvm::SetVector<Operation *> ofBuffers; ///< what the next values of buffers are computed by
};

/// The only dimension that is larger, by as much as the batch is; -1 if there is none.
int64_t BatchSizes::grownDim(Value small, Value large) const {
  int64_t found = -1;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(shapeOf(small), shapeOf(large)))) {
    auto [size, more] = sizes;
    if (size == more)
      continue;
    if (found >= 0 || more != size * times)
      return -1;
    found = static_cast<int64_t>(dim);
  }
  return found;
}

/// Of a slice: its bounds along the dimension grow as the batch does, or its stride divides the dimension and takes the
/// same elements of each sample. Those along other dimensions are the same.
bool BatchSizes::growsAlike(Operation &small, Operation &large, int64_t dim) const {
  auto one = dyn_cast<SliceOp>(small);
  if (!one)
    return small.getAttrDictionary() == large.getAttrDictionary();
  auto more = cast<SliceOp>(large);
  if (one.getStrides() != more.getStrides() || grownDim(one.getOperand(), more.getOperand()) != dim)
    return false;
  for (auto [other, bounds] :
       llvm::enumerate(llvm::zip_equal(one.getStarts(), more.getStarts(), one.getLimits(), more.getLimits()))) {
    auto [start, moreStart, limit, moreLimit] = bounds;
    if (static_cast<int64_t>(other) != dim && (start != moreStart || limit != moreLimit))
      return false;
  }
  const int64_t start = one.getStarts()[dim], limit = one.getLimits()[dim], stride = one.getStrides()[dim];
  if (stride == 1)
    return more.getStarts()[dim] == start * times && more.getLimits()[dim] == limit * times;
  return more.getStarts()[dim] == start && takesOfEach(one, dim);
}

/// Whether the elements of `large` are those of `small`, `times` times along a dimension.
static bool isTiled(DenseElementsAttr small, DenseElementsAttr large, int64_t dim) {
  const int64_t inner = llvm::product_of(small.getType().getShape().drop_front(dim));
  const int64_t wide = llvm::product_of(large.getType().getShape().drop_front(dim));
  auto isRepeated = [&](auto one, auto more, auto areEqual) {
    for (int64_t at = 0, end = large.getNumElements(); at < end; ++at)
      if (!areEqual(*(one + (at / wide * inner + at % wide % inner)), *(more + at)))
        return false;
    return true;
  };
  if (isa<FloatType>(small.getElementType()))
    return isRepeated(small.value_begin<APFloat>(), large.value_begin<APFloat>(),
                      [](const APFloat &a, const APFloat &b) { return a.bitwiseIsEqual(b); });
  return isRepeated(small.value_begin<APInt>(), large.value_begin<APInt>(), std::equal_to<APInt>());
}

BatchSizes::Relation BatchSizes::relate(ConstantOp small, ConstantOp large) const {
  if (shapeOf(small).size() != shapeOf(large).size() ||
      tensorType(small).getElementType() != tensorType(large).getElementType())
    return {};
  const std::optional<double> number = splatOf(small.getValue()), more = splatOf(large.getValue());
  const int64_t dim = grownDim(small, large);
  if ((!number || !more) && dim >= 0) {
    auto one = dyn_cast<DenseElementsAttr>(small.getValue()), other = dyn_cast<DenseElementsAttr>(large.getValue());
    return {one && other && isTiled(one, other, dim) ? Relation::Same : Relation::ByPlace, {}};
  }
  if (!number || !more)
    return {small.getValue() == large.getValue() ? Relation::Same : Relation::None, {}};
  if (*number == *more || llvm::all_of(small->getUses(), [&](OpOperand &use) { return isOfPart(use); }))
    return {Relation::Same, {}};
  if (llvm::any_of(small->getUses(), [&](OpOperand &use) { return ofBuffers.contains(use.getOwner()); }))
    return {}; // what a buffer becomes, it becomes micro-batch by micro-batch
  return {Relation::Number, *more};
}

/// Importers use one constant wherever its type and value are needed, and types that are equal in one step may not be
/// in the other. Then a constant corresponds to several, all of which must be the same to it.
bool BatchSizes::matchConstants(ConstantOp small, ConstantOp large) {
  const Relation relation = relate(small, large);
  const auto [known, isNew] = related.try_emplace(small, relation);
  if (!isNew || relation.kind == Relation::None)
    return relation.kind != Relation::None && relation == known->second;
  if (relation.kind == Relation::ByPlace)
    byPlace.push_back(small);
  if (relation.kind != Relation::Number)
    return true;
  const double number = *splatOf(small.getValue()), factor = static_cast<double>(times);
  const bool isInverse = std::abs(relation.whole * factor - number) <= 1e-6 * std::abs(number);
  numbers.push_back({small, relation.whole,
                     relation.whole == number * factor ? Number::Growth::Batch
                     : isInverse                       ? Number::Growth::Inverse
                                                       : Number::Growth::Other});
  return true;
}

/// Whether a number belongs to what is that of a micro-batch by definition: statistics, and a mean, which is known to
/// be one.
bool BatchSizes::isOfPart(OpOperand &use) const {
  Operation &op = *use.getOwner();
  if (statistics.contains(op.getLoc()))
    return true;
  const std::optional<Scale> scale = op.getNumOperands() == 2 ? scaleOf(op, 1 - use.getOperandNumber()) : std::nullopt;
  return scale && makesMean(op.getOperand(1 - use.getOperandNumber()), scale->factor());
}

/// Whether an op takes all of its operand, and less than all of a larger one.
static bool takesPartOfLarger(Operation &small, Operation &large) {
  return isa<SliceOp, PadOp>(small) && small.getOperand(0).getType() == small.getResult(0).getType() &&
         large.getOperand(0).getType() != large.getResult(0).getType();
}

/// Whether an op gives another result for a batch of another size, otherwise than that its dimensions are longer.
bool BatchSizes::followsBatch(Operation &small, Operation &large) const {
  bool growsIn = false, growsOut = false;
  for (auto [one, more] : llvm::zip_equal(small.getOperands(), large.getOperands())) {
    growsIn |= one.getType() != more.getType();
    if (following.contains(one.getDefiningOp()))
      return true;
  }
  for (auto [one, more] : llvm::zip_equal(small.getResults(), large.getResults())) {
    if (one.getType() == more.getType())
      continue;
    growsOut = true;
    const int64_t dim = grownDim(one, more);
    if (dim < 0 || (isa<ReshapeOp, SliceOp, ConcatOp>(small) && !growsAlike(small, large, dim)))
      return true;
  }
  const bool isGrownSlice = growsOut && isa<SliceOp>(small);
  if (!isGrownSlice && small.getAttrDictionary() != large.getAttrDictionary())
    return true;
  if (!growsIn || growsOut || llvm::any_of(small.getOperands(), [&](Value value) { return ofSamples.contains(value); }))
    return false;
  // Of values without samples, such as a parameter that is expanded to the batch: only their mean is the same.
  auto reduce = dyn_cast<ReduceOp>(small);
  return !reduce || !reduce->hasAttr(kMean) || !llvm::all_of(reduce.getDimensions(), [&](int64_t dim) {
    return shapeOf(small.getOperand(0))[dim] == shapeOf(large.getOperand(0))[dim] ||
           isRepeatedAlong(small.getOperand(0), dim);
  });
}

bool BatchSizes::match(Operation &small, Operation &large) {
  if (small.getName() != large.getName() || small.getNumResults() != large.getNumResults() ||
      small.getNumRegions() != 0 || takesPartOfLarger(small, large))
    return false;
  for (auto [one, more] : llvm::zip_equal(small.getResults(), large.getResults()))
    if (shapeOf(one).size() != shapeOf(more).size())
      return false;
  if (llvm::any_of(small.getOperands(), [&](Value value) { return ofSamples.contains(value); }))
    ofSamples.insert(small.result_begin(), small.result_end());
  if (followsBatch(small, large)) {
    following.insert(&small);
    return true;
  }
  const int64_t dim = small.getNumResults() == 1 ? grownDim(small.getResult(0), large.getResult(0)) : -1;
  if (dim < 0 || !isa<ReshapeOp, SliceOp, ConcatOp>(small))
    return true;
  groups = std::gcd(groups, shapeOf(small.getResult(0))[dim]);
  grown.emplace_back(&small, dim);
  return true;
}

/// Whether both read the same values.
bool BatchSizes::matchOperands(Operation &small, Operation &large) {
  if (small.getNumOperands() != large.getNumOperands())
    return false;
  return llvm::all_of(llvm::zip_equal(small.getOperands(), large.getOperands()), [&](auto pair) {
    auto [one, other] = pair;
    auto constant = one.template getDefiningOp<ConstantOp>(), more = other.template getDefiningOp<ConstantOp>();
    return constant && more ? matchConstants(constant, more) : same.lookup(one) == other;
  });
}

bool BatchSizes::find() {
  Block &block = step.getBody().front(), &more = larger.getBody().front();
  if (getBatchSize(larger) != groups * times || step.getNumArguments() != larger.getNumArguments())
    return false;
  for (auto [one, other] : llvm::zip_equal(step.getArguments(), larger.getArguments())) {
    if (shapeOf(one).size() != shapeOf(other).size())
      return false;
    same[one] = other;
    if (one.getType() != other.getType())
      ofSamples.insert(one);
  }
  for (Operation &op : block)
    if (op.hasAttr(kStatistics))
      statistics.insert(op.getLoc());
  for (const StepResult &result : getResults(step))
    if (result.attrs.contains(kAlias))
      ofBuffers.insert_range(opsOf(result.value));
  auto isNoConstant = [](Operation &op) { return !isa<ConstantOp>(op); };
  auto others = llvm::make_filter_range(more, isNoConstant);
  auto other = others.begin();
  for (Operation &op : llvm::make_filter_range(block, isNoConstant)) {
    different = &op;
    if (other == others.end() || !matchOperands(op, *other))
      return false;
    if (op.hasTrait<OpTrait::IsTerminator>())
      return other->hasTrait<OpTrait::IsTerminator>();
    if (!match(op, *other))
      return false;
    for (auto [one, another] : llvm::zip_equal(op.getResults(), other->getResults()))
      same[one] = another;
    ++other;
  }
  llvm_unreachable("a step has a terminator");
}

/// Whether all that follows from constants was evaluated in the larger step, too: tables beyond a size are not.
bool BatchSizes::isEvaluatedAlike() const {
  llvm::DenseSet<Value> known;
  func::FuncOp whole = larger;
  for (Operation &op : whole.getBody().front().without_terminator()) {
    const bool isKnown = op.getNumOperands() > 0
                             ? llvm::all_of(op.getOperands(), [&](Value value) { return known.contains(value); })
                             : isa<ConstantOp, IotaOp>(op);
    if (!isKnown)
      continue;
    known.insert(op.result_begin(), op.result_end());
    if (llvm::any_of(op.getResultTypes(),
                     [](Type type) { return cast<RankedTensorType>(type).getNumElements() > kEvaluated; }))
      return false;
  }
  return true;
}

/// A number n that grows with the batch is the sum of those of the micro-batches; what it divides, n * batch / batch.
void BatchSizes::replace(const Number &number) {
  ConstantOp op = number.op;
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(op);
  Build b(builder, op.getLoc());
  const RankedTensorType scalar = tensorType(op).clone(ArrayRef<int64_t>());
  const bool isInverse = number.growth == Number::Growth::Inverse;
  const double value = *splatOf(op.getValue()), size = static_cast<double>(getBatchSize(step));
  auto whole = BarrierOp::create(builder, op.getLoc(), scalar, b.splat(scalar, isInverse ? size : value), StringAttr());
  if (number.growth == Number::Growth::Other)
    whole->setAttr(kOfBatchNumber, builder.getF64FloatAttr(number.whole));
  else
    setOfBatch(whole, kOfBatch, OfBatch::Sum);
  Value scaled = isInverse ? b.div(b.splat(scalar, value * size), whole) : whole.getResult();
  Value wide = b.broadcastTo(scaled, shapeOf(op));
  op.getResult().replaceUsesWithIf(wide, [&](OpOperand &use) { return !isOfPart(use); });
}

/// What is computed of a constant could be folded away with what tells that it has other values for other samples.
void BatchSizes::markByPlace(ConstantOp op) {
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(op);
  auto barrier = BarrierOp::create(builder, op.getLoc(), op.getType(), op.getResult(), StringAttr());
  op.getResult().replaceAllUsesExcept(barrier, barrier);
  barrier->setAttr(kByPlace, builder.getUnitAttr());
}

void BatchSizes::mark() {
  for (const Number &number : numbers)
    replace(number);
  Builder builder(step.getContext());
  for (auto [op, dim] : grown)
    op->setAttr(kGrows, builder.getI64IntegerAttr(dim));
  for (Operation *op : following)
    op->setAttr(kFollowsBatchSize, builder.getUnitAttr());
  for (ConstantOp op : byPlace)
    markByPlace(op);
  step->setAttr(kBatchGroups, builder.getI64IntegerAttr(groups));
  step->setAttr(kBatchParts, builder.getI64IntegerAttr(times));
}

} // namespace

FailureOr<bool> markBatchSizes(func::FuncOp step, func::FuncOp larger, int64_t times) {
  BatchSizes sizes(step, larger, times);
  if (sizes.find()) {
    sizes.mark();
    return true;
  }
  if (!sizes.different || !sizes.isEvaluatedAlike())
    return false;
  return emitError(sizes.different->getLoc())
         << "from here on the step of a batch " << times
         << " times as large computes otherwise than by longer dimensions, so that neither micro-batches nor several "
            "batches of an evaluation make the whole one; another --batch may not be such a special case";
}

} // namespace tessera
