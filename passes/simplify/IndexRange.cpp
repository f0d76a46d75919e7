//===- IndexRange.cpp - which values an integer can have ------------------===//
//
// See IndexRange.h.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/IndexRange.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace tessera::simplify {

/// The values that an integer type holds; what is beyond 64 bits is not asked for.
Range rangeOfType(Type type) {
  const unsigned width = type.getIntOrFloatBitWidth();
  if (type.isInteger(1))
    return {0, 1};
  if (type.isUnsignedInteger())
    return {0, width < 64 ? (int64_t{1} << width) - 1 : INT64_MAX};
  return {-1 - llvm::maxIntN(width), llvm::maxIntN(width)};
}

namespace {
std::optional<int64_t> combine(std::optional<int64_t> a, std::optional<int64_t> b, bool multiply) {
  int64_t result = 0;
  if (!a || !b || (multiply ? llvm::MulOverflow(*a, *b, result) : llvm::AddOverflow(*a, *b, result)))
    return std::nullopt;
  return result;
}

std::optional<int64_t> negated(std::optional<int64_t> value) {
  return value && *value != INT64_MIN ? std::optional<int64_t>(-*value) : std::nullopt;
}

/// The values of an argument that is checked when it is loaded, but for the index that its uses ignore, if `ignored` is
/// it.
Range rangeOfArgument(BlockArgument argument, std::optional<int64_t> excluded) {
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func)
    return {};
  auto bound = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), train::kIndexBound);
  auto ignored = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), train::kIgnoreIndex);
  if (!bound)
    return {};
  Range range{0, bound.getInt() - 1};
  if (ignored && ignored.getInt() != excluded)
    range = {std::min<int64_t>(0, ignored.getInt()), std::max(bound.getInt() - 1, ignored.getInt())};
  return range;
}

/// The number that an element of a constant stands for; nullopt if it exceeds int64_t.
std::optional<int64_t> numberOf(const APInt &bits, Type type) {
  const APSInt number(bits, /*isUnsigned=*/type.isInteger(1) || type.isUnsignedInteger());
  return number.isRepresentableByInt64() ? std::optional<int64_t>(number.getExtValue()) : std::nullopt;
}

std::optional<int64_t> wholeSplat(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  return dense && dense.isSplat() ? numberOf(dense.getSplatValue<APInt>(), dense.getElementType()) : std::nullopt;
}

Range rangeOfConstant(train::ConstantOp constant) {
  auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!values || values.empty())
    return {};
  if (values.isSplat()) {
    const std::optional<int64_t> number = wholeSplat(constant);
    return {number, number};
  }
  Range range{INT64_MAX, INT64_MIN};
  for (const APInt &each : values) {
    const std::optional<int64_t> number = numberOf(each, values.getElementType());
    if (!number)
      return {};
    range = {std::min(*range.low, *number), std::max(*range.high, *number)};
  }
  return range;
}

/// The number that `branch`, operand 1 or 2 of `select`, does not equal where it is taken: targets that do not count
/// are replaced that way.
std::optional<int64_t> excludedBy(train::SelectOp select, unsigned branch) {
  auto compare = select.getPredicate().getDefiningOp<train::CompareOp>();
  const auto wanted = branch == 1 ? train::CompareDirection::Ne : train::CompareDirection::Eq;
  if (!compare || compare.getDirection() != wanted || compare.getLhs() != select->getOperand(branch))
    return std::nullopt;
  return wholeSplat(compare.getRhs());
}

Range unionOf(const Range &a, const Range &b) {
  return {a.low && b.low ? std::min(a.low, b.low) : std::nullopt,
          a.high && b.high ? std::max(a.high, b.high) : std::nullopt};
}

/// What is negative counts from the end.
Range rangeOfWrapped(const Range &bare, int64_t size) {
  if (bare.low && *bare.low >= 0)
    return bare;
  if (!bare.low || !bare.high)
    return {};
  const std::optional<int64_t> low = combine(bare.low, size, false),
                               last = combine(std::min<int64_t>(*bare.high, -1), size, false);
  if (!low || !last || *bare.high < 0)
    return {low, last};
  return {std::min<int64_t>(*low, 0), std::max(*last, *bare.high)};
}

/// A range without the limits of the type: what may lie beyond them wraps around, and anything may come out.
Range fitted(const Range &range, Type type) {
  const Range holds = rangeOfType(type);
  return range.low && range.high && *range.low >= *holds.low && *range.high <= *holds.high ? range : Range{};
}
} // namespace

Range IndexRanges::need(Value value, std::optional<int64_t> excluded) {
  auto found = known.find({value, excluded});
  if (found != known.end())
    return found->second;
  missing.emplace_back(value, excluded);
  return {};
}

Range IndexRanges::computeExact(const Query &query) {
  auto [value, excluded] = query;
  Type element = train::tensorType(value).getElementType();
  if (element.isInteger(1))
    return {0, 1};
  if (auto argument = dyn_cast<BlockArgument>(value))
    return rangeOfArgument(argument, excluded);
  Operation *op = value.getDefiningOp();
  if (!element.isInteger())
    return {};
  auto operand = [&](unsigned i) { return need(op->getOperand(i)); };
  if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp, train::StopGradientOp>(op))
    return need(op->getOperand(0), excluded);
  if (auto convert = dyn_cast<train::ConvertOp>(op))
    return train::tensorType(convert.getOperand()).getElementType().isInteger() ? need(convert.getOperand(), excluded)
                                                                                : Range{};
  if (auto gather = dyn_cast<train::GatherRowsOp>(op))
    return need(gather.getTable());
  if (auto pad = dyn_cast<train::PadOp>(op)) {
    const double fill = pad.getValue().convertToDouble();
    if (fill != std::trunc(fill) || std::abs(fill) > static_cast<double>(INT32_MAX))
      return {};
    return unionOf(operand(0), {static_cast<int64_t>(fill), static_cast<int64_t>(fill)});
  }
  if (isa<train::ConcatOp>(op)) {
    Range all = operand(0);
    for (unsigned i = 1; i < op->getNumOperands(); ++i)
      all = unionOf(all, operand(i));
    return all;
  }
  if (auto iota = dyn_cast<train::IotaOp>(op))
    return {0, std::max<int64_t>(iota.getType().getDimSize(static_cast<unsigned>(iota.getDim())) - 1, 0)};
  if (auto argmax = dyn_cast<train::ArgmaxOp>(op))
    return {0, std::max<int64_t>(train::shapeOf(argmax.getOperand())[argmax.getDim()] - 1, 0)};
  if (auto sort = dyn_cast<train::SortIndicesOp>(op))
    return {0, std::max<int64_t>(train::shapeOf(sort.getOperand())[sort.getDim()] - 1, 0)};
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return rangeOfConstant(constant);
  if (isa<train::AddOp, train::SubOp>(op)) {
    Range a = operand(0), b = operand(1);
    if (isa<train::AddOp>(op))
      return {combine(a.low, b.low, false), combine(a.high, b.high, false)};
    return {combine(a.low, negated(b.high), false), combine(a.high, negated(b.low), false)};
  }
  if (isa<train::MulOp>(op)) {
    Range a = operand(0), b = operand(1);
    std::optional<int64_t> ends[] = {combine(a.low, b.low, true), combine(a.low, b.high, true),
                                     combine(a.high, b.low, true), combine(a.high, b.high, true)};
    if (!llvm::all_of(ends, [](auto end) { return end.has_value(); }))
      return {};
    return {*llvm::min_element(ends), *llvm::max_element(ends)};
  }
  if (isa<train::MaxOp>(op)) {
    Range a = operand(0), b = operand(1);
    return {a.low && b.low ? std::max(a.low, b.low)
            : a.low        ? a.low
                           : b.low,
            a.high && b.high ? std::max(a.high, b.high) : std::nullopt};
  }
  if (isa<train::SelectOp>(op)) {
    auto select = cast<train::SelectOp>(op);
    if (auto wrapped = wrappedIndex(value))
      return rangeOfWrapped(need(wrapped->bare), wrapped->size);
    Range a = need(op->getOperand(1), excludedBy(select, 1));
    Range b = need(op->getOperand(2), excludedBy(select, 2));
    return unionOf(a, b);
  }
  if (auto reduce = dyn_cast<train::ReduceOp>(op)) {
    Range range = operand(0);
    if (reduce.getKind() == train::ReduceKind::Max || reduce.getKind() == train::ReduceKind::Min)
      return range;
    if (reduce.getKind() != train::ReduceKind::Sum)
      return {};
    int64_t count = 1;
    for (int64_t dim : reduce.getDimensions())
      count *= train::shapeOf(op->getOperand(0))[dim];
    return {combine(range.low, count, true), combine(range.high, count, true)};
  }
  return {};
}

Range IndexRanges::compute(const Query &query) {
  const Range range = computeExact(query);
  Operation *op = query.first.getDefiningOp();
  const bool mayLeaveType = isa_and_nonnull<train::AddOp, train::SubOp, train::MulOp, train::ReduceOp, train::IotaOp,
                                            train::ArgmaxOp, train::SortIndicesOp, train::ConvertOp>(op);
  return mayLeaveType ? fitted(range, train::tensorType(query.first).getElementType()) : range;
}

Range IndexRanges::of(Value value) {
  // On a stack of its own, for chains of any length.
  SmallVector<Query> pending{{value, std::nullopt}};
  while (!pending.empty()) {
    const Query query = pending.back();
    missing.clear();
    const Range range = known.contains(query) ? known.lookup(query) : compute(query);
    if (missing.empty()) {
      known[query] = range;
      pending.pop_back();
    }
    pending.append(missing);
  }
  return known.lookup({value, std::nullopt});
}

/// The argument whose own elements, unchanged, `value` holds; null if there is none.
BlockArgument indexArgument(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool keeps = isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp,
                           train::StopGradientOp, train::ConvertOp>(op);
    if (!keeps || !train::tensorType(op->getOperand(0)).getElementType().isInteger())
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

std::optional<WrappedIndex> wrappedIndex(Value value) {
  auto select = value.getDefiningOp<train::SelectOp>();
  auto compare = select ? select.getPredicate().getDefiningOp<train::CompareOp>() : nullptr;
  auto add = select ? select.getOnTrue().getDefiningOp<train::AddOp>() : nullptr;
  if (!compare || !add || compare.getDirection() != train::CompareDirection::Lt)
    return std::nullopt;
  Value bare = select.getOnFalse();
  const std::optional<int64_t> size = wholeSplat(add.getRhs());
  if (compare.getLhs() != bare || wholeSplat(compare.getRhs()) != 0 || add.getLhs() != bare || !size || *size < 0)
    return std::nullopt;
  return WrappedIndex{bare, *size};
}

} // namespace tessera::simplify
