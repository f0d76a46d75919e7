//===- AnnotateIndexBounds.cpp - what the runtime may load as an index ----===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/IndexParts.h"
#include "passes/simplify/Passes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ANNOTATEINDEXBOUNDS
#include "passes/simplify/Passes.h.inc"

namespace {
/// Values that an integer can have; nullopt ends are unknown.
struct Range {
  std::optional<int64_t> low, high;
};

/// The values that an integer type holds; what is beyond 64 bits is not asked for.
Range rangeOfType(Type type) {
  const unsigned width = type.getIntOrFloatBitWidth();
  if (type.isInteger(1))
    return {0, 1};
  if (type.isUnsignedInteger())
    return {0, width < 64 ? (int64_t{1} << width) - 1 : INT64_MAX};
  return {-1 - llvm::maxIntN(width), llvm::maxIntN(width)};
}

/// Follows the elements of an argument to where they are used as an index, through ops that keep their values.
class IndexUses {
public:
  explicit IndexUses(BlockArgument argument) {
    ArrayRef<int64_t> shape = train::shapeOf(argument);
    Path path;
    path.starts.assign(shape.size(), 0);
    path.limits.assign(shape.begin(), shape.end());
    path.strides.assign(shape.size(), 1);
    whole = path;
    follow(argument, path);
  }

  /// Writes what must hold of all elements, and what must hold of some of them besides.
  void annotate(func::FuncOp func, unsigned argument);

private:
  /// Which elements of each sample come along, and between which values they survive conversions.
  struct Path {
    SmallVector<int64_t> starts, limits, strides;
    bool isBox = true; ///< elements still lie as in the argument: a slice can be told
    int64_t low = INT64_MIN, high = INT64_MAX;

    bool sameBox(const Path &other) const {
      return starts == other.starts && limits == other.limits && strides == other.strides;
    }
  };
  struct Use {
    Path box;
    int64_t bound;
    std::optional<int64_t> ignoreIndex;
  };

  void follow(Value value, const Path &path);
  void add(const Path &path, int64_t bound, std::optional<int64_t> ignoreIndex);

  Path whole;
  SmallVector<Use> uses; ///< one for each box
};

/// An element of a box must suit each use of it; what one use ignores it may be only if all of them ignore it.
void IndexUses::add(const Path &path, int64_t bound, std::optional<int64_t> ignoreIndex) {
  bound = path.high < bound ? path.high + 1 : bound;
  if (ignoreIndex && (*ignoreIndex < path.low || *ignoreIndex > path.high))
    ignoreIndex.reset();
  auto *known = llvm::find_if(uses, [&](const Use &use) { return use.box.sameBox(path); });
  if (known == uses.end()) {
    uses.push_back({path, bound, ignoreIndex});
    return;
  }
  known->bound = std::min(known->bound, bound);
  if (known->ignoreIndex != ignoreIndex)
    known->ignoreIndex.reset();
}

void IndexUses::follow(Value value, const Path &path) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    Path next = path;
    if (auto gather = dyn_cast<train::GatherRowsOp>(user); gather && number == 1) {
      add(path, train::shapeOf(gather.getTable()).front(), std::nullopt);
    } else if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(user); scatter && number == 1) {
      add(path, train::shapeOf(scatter.getInit()).front(), std::nullopt);
    } else if (auto loss = dyn_cast<train::CrossEntropyOp>(user); loss && number == 1) {
      auto ignored = loss.getIgnoreIndex();
      add(path, train::shapeOf(loss.getLogits()).back(),
          ignored ? std::optional<int64_t>(static_cast<int64_t>(*ignored)) : std::nullopt);
    } else if (auto loop = dyn_cast<train::AccumulateOp>(user)) {
      next.isBox = false;
      follow(loop.getBody().getArgument(number + 1), next);
    } else if (auto slice = dyn_cast<train::SliceOp>(user)) {
      // Samples differ in nothing: what holds of some holds of all.
      for (size_t dim = 1; path.isBox && dim < path.starts.size(); ++dim) {
        next.starts[dim] = path.starts[dim] + slice.getStarts()[dim] * path.strides[dim];
        next.strides[dim] = path.strides[dim] * slice.getStrides()[dim];
        const int64_t size = slice.getType().getDimSize(static_cast<unsigned>(dim));
        next.limits[dim] = size == 0 ? next.starts[dim] : next.starts[dim] + (size - 1) * next.strides[dim] + 1;
        if (size <= 1)
          next.strides[dim] = 1;
      }
      follow(slice, next);
    } else if (isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp>(user)) {
      next.isBox = false;
      follow(user->getResult(0), next);
    } else if (isa<train::StopGradientOp>(user)) {
      follow(user->getResult(0), next);
    } else if (auto convert = dyn_cast<train::ConvertOp>(user)) {
      Type type = convert.getType().getElementType();
      if (!type.isInteger())
        continue;
      next.low = std::max(path.low, *rangeOfType(type).low);
      next.high = std::min(path.high, *rangeOfType(type).high);
      follow(convert.getResult(), next);
    }
  }
}

void IndexUses::annotate(func::FuncOp func, unsigned argument) {
  Builder builder(func.getContext());
  llvm::stable_sort(uses, [](const Use &a, const Use &b) {
    return std::tie(a.box.starts, a.box.limits, a.box.strides) < std::tie(b.box.starts, b.box.limits, b.box.strides);
  });
  const Use *all = llvm::find_if(uses, [&](const Use &use) { return use.box.sameBox(whole); });
  if (all == uses.end())
    all = nullptr;
  SmallVector<Attribute> parts;
  for (const Use &use : uses) {
    const bool isImplied = all && all->bound <= use.bound && (!all->ignoreIndex || all->ignoreIndex == use.ignoreIndex);
    if (&use == all || isImplied)
      continue;
    NamedAttrList part;
    part.set("bound", builder.getI64IntegerAttr(use.bound));
    if (use.ignoreIndex)
      part.set("ignore_index", builder.getI64IntegerAttr(*use.ignoreIndex));
    part.set("starts", builder.getDenseI64ArrayAttr(ArrayRef(use.box.starts).drop_front()));
    part.set("limits", builder.getDenseI64ArrayAttr(ArrayRef(use.box.limits).drop_front()));
    part.set("strides", builder.getDenseI64ArrayAttr(ArrayRef(use.box.strides).drop_front()));
    parts.push_back(part.getDictionary(func.getContext()));
  }
  if (all)
    func.setArgAttr(argument, train::kIndexBound, builder.getI64IntegerAttr(all->bound));
  if (all && all->ignoreIndex)
    func.setArgAttr(argument, train::kIgnoreIndex, builder.getI64IntegerAttr(*all->ignoreIndex));
  if (!parts.empty())
    func.setArgAttr(argument, train::kIndexParts, builder.getArrayAttr(parts));
}

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

/// The argument whose own elements, unchanged, `value` holds; null if there is none.
BlockArgument argumentOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool keeps = isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp,
                           train::StopGradientOp, train::ConvertOp>(op);
    if (!keeps || !train::tensorType(op->getOperand(0)).getElementType().isInteger())
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
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

std::optional<int64_t> wholeSplat(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  return dense && dense.isSplat() ? std::optional<int64_t>(dense.getSplatValue<APInt>().getSExtValue()) : std::nullopt;
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

Range rangeOf(Value value, int depth = 0, std::optional<int64_t> excluded = std::nullopt);

/// The range that an op's numbers have without the limits of their type.
Range exactRangeOf(Value value, int depth, std::optional<int64_t> excluded) {
  Type element = train::tensorType(value).getElementType();
  if (element.isInteger(1))
    return {0, 1};
  if (auto argument = dyn_cast<BlockArgument>(value))
    return rangeOfArgument(argument, excluded);
  Operation *op = value.getDefiningOp();
  if (!element.isInteger() || depth > kMaxDepth)
    return {};
  auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), depth + 1); };
  if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastOp, train::StopGradientOp>(op))
    return rangeOf(op->getOperand(0), depth + 1, excluded);
  if (auto convert = dyn_cast<train::ConvertOp>(op)) {
    if (!train::tensorType(convert.getOperand()).getElementType().isInteger())
      return {};
    const Range range = rangeOf(op->getOperand(0), depth + 1, excluded), holds = rangeOfType(element);
    return range.low && range.high && *range.low >= *holds.low && *range.high <= *holds.high ? range : Range{};
  }
  if (auto iota = dyn_cast<train::IotaOp>(op))
    return {0, iota.getType().getDimSize(static_cast<unsigned>(iota.getDim())) - 1};
  if (auto argmax = dyn_cast<train::ArgmaxOp>(op))
    return {0, train::shapeOf(argmax.getOperand())[argmax.getDim()] - 1};
  if (auto sort = dyn_cast<train::SortIndicesOp>(op))
    return {0, std::max<int64_t>(train::shapeOf(sort.getOperand())[sort.getDim()] - 1, 0)};
  if (auto constant = dyn_cast<train::ConstantOp>(op)) {
    auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!values || values.empty())
      return {};
    Range range{INT64_MAX, INT64_MIN};
    for (const APInt &each : values) {
      const int64_t number = element.isUnsignedInteger() ? each.getLimitedValue(INT64_MAX) : each.getSExtValue();
      range.low = std::min(*range.low, number);
      range.high = std::max(*range.high, number);
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
    auto select = cast<train::SelectOp>(op);
    Range a = rangeOf(op->getOperand(1), depth + 1, excludedBy(select, 1));
    Range b = rangeOf(op->getOperand(2), depth + 1, excludedBy(select, 2));
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

/// What is known about the elements of an integer tensor from how it was computed. None of them is `excluded`. Sums and
/// products that may leave their type are unknown: they wrap around.
Range rangeOf(Value value, int depth, std::optional<int64_t> excluded) {
  const Range range = exactRangeOf(value, depth, excluded);
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<train::AddOp, train::SubOp, train::MulOp, train::ReduceOp>(op))
    return range;
  const Range holds = rangeOfType(train::tensorType(value).getElementType());
  return range.low && range.high && *range.low >= *holds.low && *range.high <= *holds.high ? range : Range{};
}

/// Whether the runtime compares the indices with their bound when it loads them: they are a batch argument's own
/// values.
bool isChecked(Value indices) {
  BlockArgument argument = argumentOf(indices);
  auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return func && (func.getArgAttr(argument.getArgNumber(), train::kIndexBound) ||
                  func.getArgAttr(argument.getArgNumber(), train::kIndexParts));
}

/// Indices that are computed from data and may lie outside the table would read other memory: brings them inside.
void clampComputed(Operation *op, OpOperand &operand, int64_t size, std::optional<uint64_t> ignored) {
  Value indices = operand.get();
  Range range = rangeOf(indices);
  if (isChecked(indices) || (range.low && range.high && *range.low >= 0 && *range.high < size))
    return;
  OpBuilder builder(op);
  train::Build b(builder, op->getLoc());
  Value inside = b.max(indices, b.splatLike(indices, 0));
  if (*rangeOfType(train::tensorType(indices).getElementType()).high >= size) { // else no number is too large
    Value last = b.splatLike(indices, static_cast<double>(size - 1));
    inside = b.select(b.compare(train::CompareDirection::Lt, inside, last), inside, last);
  }
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
    for (BlockArgument argument : func.getArguments()) {
      auto role = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kRole);
      if (!role || (role.getValue() != "input" && role.getValue() != "target"))
        continue;
      IndexUses(argument).annotate(func, argument.getArgNumber());
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
