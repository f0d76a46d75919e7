//===- DocumentRuns.cpp - ids of which equal ones lie side by side --------===//

#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Running.h"
#include "passes/simplify/Documents.h"
#include "passes/simplify/IndexRange.h"
#include "passes/simplify/MaskTerms.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
/// Whether a slice cuts nothing but the last dimension, of which it takes [start, limit).
bool takesLast(SliceOp slice, int64_t start, int64_t limit) {
  const ArrayRef<int64_t> shape = shapeOf(slice.getOperand());
  for (auto [dim, size] : llvm::enumerate(shape)) {
    const bool isLast = dim + 1 == shape.size();
    if (slice.getStarts()[dim] != (isLast ? start : 0) || slice.getLimits()[dim] != (isLast ? limit : size) ||
        slice.getStrides()[dim] != 1)
      return false;
  }
  return true;
}

/// A value with one element in front along the last dimension.
struct Prepended {
  Value rest;
  std::optional<double> first; ///< where it is known
};
std::optional<Prepended> prepended(Value value) {
  const size_t rank = shapeOf(value).size();
  if (auto pad = value.getDefiningOp<PadOp>()) {
    for (auto [dim, low, high, gap] : llvm::enumerate(pad.getLow(), pad.getHigh(), pad.getInterior()))
      if (low != (dim + 1 == rank) || high != 0 || gap != 0)
        return std::nullopt;
    return Prepended{pad.getOperand(), pad.getValue().convertToDouble()};
  }
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat || concat.getNumOperands() != 2 || static_cast<size_t>(concat.getDim()) + 1 != rank ||
      shapeOf(concat->getOperand(0)).back() != 1)
    return std::nullopt;
  return Prepended{concat->getOperand(1), uniformConstant(concat->getOperand(0))};
}

/// The value of which each element but the first is the one before in the other, and the first one. Both have one
/// shape.
std::optional<Prepended> shiftedBack(Value value) {
  const int64_t length = shapeOf(value).back();
  if (auto slice = value.getDefiningOp<SliceOp>()) {
    auto whole = prepended(slice.getOperand());
    if (whole && takesLast(slice, 0, length) && shapeOf(whole->rest) == shapeOf(value))
      return whole;
  }
  auto joined = prepended(value);
  auto rest = joined ? joined->rest.getDefiningOp<SliceOp>() : SliceOp();
  if (!rest || shapeOf(rest.getOperand()) != shapeOf(value) || !takesLast(rest, 0, length - 1))
    return std::nullopt;
  return Prepended{rest.getOperand(), joined->first};
}

/// What a boolean value becomes a number of, or itself.
Value withoutConverts(Value value) {
  while (auto convert = value.getDefiningOp<ConvertOp>())
    value = convert.getOperand();
  return value;
}

/// The largest element, of what is not negative and exact when it is added up.
std::optional<double> largestStep(Value steps) {
  if (isa<FloatType>(tensorType(steps).getElementType())) {
    auto shifted = shiftedBack(steps);
    if (!shifted)
      shifted = prepended(steps);
    if (shifted)
      return shifted->first == 0.0 || shifted->first == 1.0 ? largestStep(shifted->rest) : std::nullopt;
    auto convert = steps.getDefiningOp<ConvertOp>();
    return convert && tensorType(convert.getOperand()).getElementType().isInteger(1) ? std::optional(1.0)
                                                                                     : std::nullopt;
  }
  IndexRanges ranges;
  const Range range = ranges.of(steps);
  if (!range.low || !range.high || *range.low < 0)
    return std::nullopt;
  return static_cast<double>(*range.high);
}

/// What adds up to a value without its own step, or with it.
std::optional<RunningSums> sumsOf(Value value) {
  if (auto sums = matchRunningSums(value))
    return sums;
  // x + … without x.
  if (auto sub = value.getDefiningOp<SubOp>())
    if (auto sums = matchRunningSums(sub.getLhs());
        sums && !sums->direction.exclusive && sums->operand == sub.getRhs()) {
      sums->direction.exclusive = true;
      return sums;
    }
  // 0 in front of sums that begin with the first step, without the last of them: they are what is before each place.
  auto shifted = shiftedBack(value);
  if (!shifted)
    shifted = prepended(value);
  if (shifted && shifted->first == 0.0)
    if (auto sums = matchRunningSums(shifted->rest); sums && !sums->direction.exclusive && !sums->direction.reverse) {
      sums->direction.exclusive = true;
      return sums;
    }
  return std::nullopt;
}

/// Whether `value` and `other` are the same elements along the last dimension, the one perhaps repeated along others.
bool isSame(Value value, Value other) {
  if (value == other)
    return true;
  const View x = sourceOf(viewOf(value)), y = sourceOf(viewOf(other));
  auto keepsOrder = [](const View &view, Value whole) {
    int64_t before = -1;
    for (int64_t dim : view.dims)
      if (dim >= 0 && std::exchange(before, dim) >= dim)
        return false;
    return before + 1 == static_cast<int64_t>(shapeOf(whole).size());
  };
  return x.value == y.value && keepsOrder(x, value) && keepsOrder(y, other);
}

/// `direction` and its operands, with a comparison of its result with false taken in.
std::optional<std::pair<CompareDirection, CompareOp>> comparison(Value value) {
  auto compare = value.getDefiningOp<CompareOp>();
  if (!compare)
    return std::nullopt;
  const CompareDirection direction = compare.getDirection();
  if (auto inner = compare.getLhs().getDefiningOp<CompareOp>();
      inner && direction == CompareDirection::Eq && splatOf(compare.getRhs()) == 0.0) {
    if (inner.getDirection() == CompareDirection::Eq)
      return std::pair(CompareDirection::Ne, inner);
    if (inner.getDirection() == CompareDirection::Ne)
      return std::pair(CompareDirection::Eq, inner);
    return std::nullopt;
  }
  return std::pair(direction, compare);
}
} // namespace

std::optional<Runs> runsOf(Value value) {
  if (shapeOf(value).empty())
    return std::nullopt;
  const auto sums = sumsOf(value);
  const auto step = sums ? largestStep(sums->operand) : std::nullopt;
  if (!step)
    return std::nullopt;
  const bool isAfter = sums->direction.exclusive != sums->direction.reverse;
  const int64_t steps = shapeOf(sums->operand).back();
  int64_t length = 1;
  for (int64_t size : shapeOf(value))
    length = size != 1 ? size : length;
  if (steps != length && !(isAfter && steps + 1 == length))
    return std::nullopt;
  // Sums that no longer fit would come back.
  const double most = *step * static_cast<double>(steps);
  if (!holdsWhole(tensorType(value).getElementType(), most))
    return std::nullopt;
  return Runs{sums->operand, isAfter, most};
}

BlockArgument inputOf(Value ids) {
  while (Operation *op = ids.getDefiningOp()) {
    const unsigned width = tensorType(ids).getElementTypeBitWidth();
    auto wide = dyn_cast<ConvertOp>(op);
    auto reshape = dyn_cast<ReshapeOp>(op);
    if (wide ? !tensorType(op->getOperand(0)).getElementType().isInteger() : !reshape)
      return {};
    // Sizes of 1 come and go; others keep their order.
    auto isWide = [](int64_t size) { return size != 1; };
    if (reshape && !llvm::equal(llvm::make_filter_range(shapeOf(op->getOperand(0)), isWide),
                                llvm::make_filter_range(shapeOf(ids), isWide)))
      return {};
    ids = op->getOperand(0);
    if (tensorType(ids).getElementTypeBitWidth() > width)
      return {};
  }
  auto input = dyn_cast<BlockArgument>(ids);
  auto func = input ? dyn_cast<func::FuncOp>(input.getOwner()->getParentOp()) : func::FuncOp();
  const int64_t rank = tensorType(ids).getRank();
  if (!func || !isBatchArgument(func, input.getArgNumber()) || !tensorType(ids).getElementType().isInteger() ||
      tensorType(ids).getElementType().isInteger(1) || rank == 0 ||
      getDims(func, input.getArgNumber()).getPositionDim() != rank - 1)
    return {};
  return input;
}

bool countsInRuns(Value positions, const Runs &runs) {
  const int64_t length = shapeOf(positions).back();
  Value steps = withoutConverts(runs.steps);
  // Differences of all neighbours, and perhaps anything for the first element.
  bool isOfNeighbours = runs.isAfter;
  if (const auto first = runs.isAfter ? std::nullopt : prepended(steps)) {
    steps = withoutConverts(first->rest);
    isOfNeighbours = true;
  }
  auto breaks = comparison(steps);
  auto difference = breaks ? breaks->second.getLhs().getDefiningOp<SubOp>() : SubOp();
  if (!difference || breaks->first != CompareDirection::Ne || uniformConstant(breaks->second.getRhs()) != 1.0 ||
      tensorType(difference).getElementType() != tensorType(positions).getElementType())
    return false;
  if (!isOfNeighbours) {
    auto before = shiftedBack(difference.getRhs());
    return before && isSame(difference.getLhs(), positions) && isSame(before->rest, positions);
  }
  auto later = difference.getLhs().getDefiningOp<SliceOp>(), earlier = difference.getRhs().getDefiningOp<SliceOp>();
  return later && earlier && takesLast(later, 1, length) && takesLast(earlier, 0, length - 1) &&
         isSame(later.getOperand(), positions) && isSame(earlier.getOperand(), positions);
}

} // namespace tessera::simplify
