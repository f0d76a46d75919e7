//===- AnnotateIndexBounds.cpp - what the runtime may load as an index ----===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/simplify/Passes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ANNOTATEINDEXBOUNDS
#include "passes/simplify/Passes.h.inc"

namespace {
/// What the uses of an argument as an index say about its values.
struct Bounds {
  std::optional<int64_t> bound;
  std::optional<int64_t> ignoreIndex;

  void limit(int64_t size) { bound = std::min(bound.value_or(size), size); }
};

/// Follows a value through ops that keep its elements' values.
void follow(Value value, Bounds &bounds) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto gather = dyn_cast<train::GatherRowsOp>(user); gather && number == 1) {
      bounds.limit(train::shapeOf(gather.getTable()).front());
    } else if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(user); scatter && number == 1) {
      bounds.limit(train::shapeOf(scatter.getInit()).front());
    } else if (auto loss = dyn_cast<train::CrossEntropyOp>(user); loss && number == 1) {
      bounds.limit(train::shapeOf(loss.getLogits()).back());
      if (auto ignored = loss.getIgnoreIndex())
        bounds.ignoreIndex = *ignored;
    } else if (auto loop = dyn_cast<train::AccumulateOp>(user)) {
      follow(loop.getBody().getArgument(number + 1), bounds);
    } else if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp, train::StopGradientOp>(
                   user)) {
      follow(user->getResult(0), bounds);
    } else if (auto convert = dyn_cast<train::ConvertOp>(user)) {
      if (convert.getType().getElementType().isInteger())
        follow(convert.getResult(), bounds);
    }
  }
}

/// Values that an integer can have; nullopt ends are unknown.
struct Range {
  std::optional<int64_t> low, high;
};

std::optional<int64_t> combine(std::optional<int64_t> a, std::optional<int64_t> b, bool multiply) {
  int64_t result = 0;
  if (!a || !b || (multiply ? llvm::MulOverflow(*a, *b, result) : llvm::AddOverflow(*a, *b, result)))
    return std::nullopt;
  return result;
}

std::optional<int64_t> negated(std::optional<int64_t> value) {
  return value && *value != INT64_MIN ? std::optional<int64_t>(-*value) : std::nullopt;
}

constexpr int kMaxDepth = 32;

/// What is known about the elements of an integer tensor from how it was computed.
Range rangeOf(Value value, int depth = 0) {
  Type element = train::tensorType(value).getElementType();
  if (element.isInteger(1))
    return {0, 1};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto bound = func ? func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), train::kIndexBound) : IntegerAttr();
    return bound ? Range{0, bound.getInt() - 1} : Range{};
  }
  Operation *op = value.getDefiningOp();
  if (!element.isInteger() || depth > kMaxDepth)
    return {};
  auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), depth + 1); };
  if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp, train::StopGradientOp>(op))
    return operand(0);
  if (auto convert = dyn_cast<train::ConvertOp>(op))
    return train::tensorType(convert.getOperand()).getElementType().isInteger() ? operand(0) : Range{};
  if (auto iota = dyn_cast<train::IotaOp>(op))
    return {0, iota.getType().getDimSize(static_cast<unsigned>(iota.getDim())) - 1};
  if (auto argmax = dyn_cast<train::ArgmaxOp>(op))
    return {0, train::shapeOf(argmax.getOperand())[argmax.getDim()] - 1};
  if (auto constant = dyn_cast<train::ConstantOp>(op)) {
    auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!values || values.empty())
      return {};
    Range range{INT64_MAX, INT64_MIN};
    for (const APInt &each : values) {
      range.low = std::min(*range.low, each.getSExtValue());
      range.high = std::max(*range.high, each.getSExtValue());
    }
    return range;
  }
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
    Range a = operand(1), b = operand(2);
    return {a.low && b.low ? std::min(a.low, b.low) : std::nullopt,
            a.high && b.high ? std::max(a.high, b.high) : std::nullopt};
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

/// Whether the runtime compares the indices with their bound when it loads them: they are an argument's own values.
bool isChecked(Value indices) {
  while (Operation *op = indices.getDefiningOp()) {
    const bool keeps = isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp,
                           train::StopGradientOp, train::ConvertOp>(op);
    if (!keeps || !train::tensorType(op->getOperand(0)).getElementType().isInteger())
      return false;
    indices = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(indices);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return func && func.getArgAttr(argument.getArgNumber(), train::kIndexBound);
}

/// Indices that are computed from data and may lie outside the table would read other memory: brings them inside.
void clampComputed(Operation *op, OpOperand &operand, int64_t size, std::optional<uint64_t> ignored) {
  Value indices = operand.get();
  Range range = rangeOf(indices);
  if (isChecked(indices) || (range.low && range.high && *range.low >= 0 && *range.high < size))
    return;
  OpBuilder builder(op);
  train::Build b(builder, op->getLoc());
  Value last = b.splatLike(indices, static_cast<double>(size - 1));
  Value inside = b.max(indices, b.splatLike(indices, 0));
  inside = b.select(b.compare(train::CompareDirection::Lt, inside, last), inside, last);
  if (ignored) {
    Value value = b.splatLike(indices, static_cast<double>(static_cast<int64_t>(*ignored)));
    inside = b.select(b.compare(train::CompareDirection::Eq, indices, value), indices, inside);
  }
  operand.set(inside);
  op->emitRemark() << "indices are computed from data and not known to be in [0, " << size
                   << "): those outside count as the nearest one inside";
}

struct AnnotateIndexBounds : impl::AnnotateIndexBoundsBase<AnnotateIndexBounds> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    Builder builder(&getContext());
    for (BlockArgument argument : func.getArguments()) {
      auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kRole);
      if (!role || (role.getValue() != "input" && role.getValue() != "target"))
        continue;
      Bounds bounds;
      follow(argument, bounds);
      if (bounds.bound)
        func.setArgAttr(argument.getArgNumber(), train::kIndexBound, builder.getI64IntegerAttr(*bounds.bound));
      if (bounds.ignoreIndex)
        func.setArgAttr(argument.getArgNumber(), train::kIgnoreIndex, builder.getI64IntegerAttr(*bounds.ignoreIndex));
    }
    func.walk([](Operation *op) {
      if (auto gather = dyn_cast<train::GatherRowsOp>(op))
        clampComputed(op, gather.getIndicesMutable(), train::shapeOf(gather.getTable()).front(), std::nullopt);
      else if (auto loss = dyn_cast<train::CrossEntropyOp>(op))
        clampComputed(op, loss.getTargetsMutable(), train::shapeOf(loss.getLogits()).back(), loss.getIgnoreIndex());
    });
  }
};

} // namespace
} // namespace tessera
