//===- AnnotateIndexBounds.cpp - what the runtime may load as an index ----===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/IndexRange.h"
#include "passes/simplify/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ANNOTATEINDEXBOUNDS
#include "passes/simplify/Passes.h.inc"

namespace {

using simplify::Range;
using simplify::rangeOfType;

/// Follows the elements of an argument to where they are used as an index, through ops that keep their values.
class IndexUses {
public:
  /// `sampleDim`: the argument's dimension that counts samples, or -1.
  IndexUses(BlockArgument argument, int64_t sampleDim) : sampleDim(sampleDim) {
    ArrayRef<int64_t> shape = train::shapeOf(argument);
    Path path;
    path.starts.assign(shape.size(), 0);
    path.limits.assign(shape.begin(), shape.end());
    path.strides.assign(shape.size(), 1);
    whole = path;
    pending.emplace_back(argument, path);
    while (!pending.empty()) {
      auto [value, from] = pending.pop_back_val();
      follow(value, from);
    }
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

  /// Notes uses of a value, and which values hold the same elements.
  void follow(Value value, const Path &path);
  void add(const Path &path, int64_t bound, std::optional<int64_t> ignoreIndex);
  /// Without the dimension that counts samples.
  SmallVector<int64_t> ofSample(SmallVector<int64_t> box) const {
    if (sampleDim >= 0)
      box.erase(box.begin() + sampleDim);
    return box;
  }

  int64_t sampleDim;
  Path whole;
  SmallVector<std::pair<Value, Path>> pending; ///< still to be followed
  SmallVector<Use> uses;                       ///< one for each box
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
      pending.emplace_back(loop.getBody().getArgument(number + 1), next);
    } else if (auto slice = dyn_cast<train::SliceOp>(user)) {
      // Samples differ in nothing: what holds of some holds of all.
      for (size_t dim = 0; path.isBox && dim < path.starts.size(); ++dim) {
        if (static_cast<int64_t>(dim) == sampleDim)
          continue;
        next.starts[dim] = path.starts[dim] + slice.getStarts()[dim] * path.strides[dim];
        next.strides[dim] = path.strides[dim] * slice.getStrides()[dim];
        const int64_t size = slice.getType().getDimSize(static_cast<unsigned>(dim));
        next.limits[dim] = size == 0 ? next.starts[dim] : next.starts[dim] + (size - 1) * next.strides[dim] + 1;
        if (size <= 1)
          next.strides[dim] = 1;
      }
      pending.emplace_back(slice, next);
    } else if (isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp>(user)) {
      next.isBox = false;
      pending.emplace_back(user->getResult(0), next);
    } else if (isa<train::StopGradientOp>(user)) {
      pending.emplace_back(user->getResult(0), next);
    } else if (auto convert = dyn_cast<train::ConvertOp>(user)) {
      Type type = convert.getType().getElementType();
      if (!type.isInteger())
        continue;
      next.low = std::max(path.low, *rangeOfType(type).low);
      next.high = std::min(path.high, *rangeOfType(type).high);
      pending.emplace_back(convert.getResult(), next);
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
    part.set("starts", builder.getDenseI64ArrayAttr(ofSample(use.box.starts)));
    part.set("limits", builder.getDenseI64ArrayAttr(ofSample(use.box.limits)));
    part.set("strides", builder.getDenseI64ArrayAttr(ofSample(use.box.strides)));
    parts.push_back(part.getDictionary(func.getContext()));
  }
  if (all)
    func.setArgAttr(argument, train::kIndexBound, builder.getI64IntegerAttr(all->bound));
  if (all && all->ignoreIndex)
    func.setArgAttr(argument, train::kIgnoreIndex, builder.getI64IntegerAttr(*all->ignoreIndex));
  if (!parts.empty())
    func.setArgAttr(argument, train::kIndexParts, builder.getArrayAttr(parts));
}

/// Whether the runtime compares the indices with their bound when it loads them: they are a batch argument's own
/// values.
bool isChecked(Value indices) {
  BlockArgument argument = simplify::indexArgument(indices);
  auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return func && (func.getArgAttr(argument.getArgNumber(), train::kIndexBound) ||
                  func.getArgAttr(argument.getArgNumber(), train::kIndexParts));
}

/// The ONNX node that an op comes from, or what the op is called.
StringRef nameOfNode(Operation *op) {
  StringRef name = train::getNodeName(op->getLoc());
  return name.empty() ? op->getName().stripDialect() : name;
}

/// The argument that a table is or is a view of; what has no name is called like the node.
StringRef nameOfTable(Value table, Operation *user) {
  while (isa_and_nonnull<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::ConvertOp>(table.getDefiningOp()))
    table = table.getDefiningOp()->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(table))
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (StringRef name = train::getArgName(func, argument.getArgNumber()); !name.empty())
        return name;
  return nameOfNode(user);
}

/// An operand whose elements must be in [0, size), or be `ignored`.
struct Use {
  OpOperand *operand;
  int64_t size;
  std::optional<int64_t> ignored;
  std::string table;
};

/// Keeps the indices of a function inside their tables.
class ComputedIndices {
public:
  ComputedIndices(func::FuncOp func, bool reports) : func(func), reports(reports) {}

  void guard(const Use &use);
  void addResults() {
    if (!checks.empty()) {
      SmallVector<train::StepResult> results = train::getResults(func);
      results.append(checks);
      train::setResults(func, results);
    }
  }

private:
  void clamp(const Use &use);
  void check(const Use &use, Value indices, int64_t low);

  func::FuncOp func;
  bool reports; ///< what lies outside is an error, not the nearest one inside
  SmallVector<train::StepResult> checks;
  /// Only indices are changed, and of an op that gathers the range is that of its table.
  simplify::IndexRanges ranges;
};

/// Indices that are computed from data and may lie outside the table would read other memory.
void ComputedIndices::guard(const Use &use) {
  Value indices = use.operand->get();
  int64_t low = 0;
  if (auto wrapped = simplify::wrappedIndex(indices)) {
    if (const Range bare = ranges.of(wrapped->bare); bare.low && *bare.low >= 0) {
      use.operand->set(wrapped->bare); // never negative
      indices = wrapped->bare;
    } else {
      indices = wrapped->bare;
      low = -wrapped->size;
    }
  }
  const Range range = ranges.of(use.operand->get());
  if (isChecked(use.operand->get()) || (range.low && range.high && *range.low >= 0 && *range.high < use.size))
    return;
  Operation *op = use.operand->getOwner();
  clamp(use);
  if (reports && op->getBlock() == &func.getBody().front())
    return check(use, indices, low);
  op->emitRemark() << "indices are computed from data and not known to be in [0, " << use.size
                   << "): those outside count as the nearest one inside";
}

/// Brings them inside: no kernel reads or writes beyond a table.
void ComputedIndices::clamp(const Use &use) {
  Value indices = use.operand->get();
  OpBuilder builder(use.operand->getOwner());
  train::Build b(builder, use.operand->getOwner()->getLoc());
  Value inside = b.max(indices, b.splatLike(indices, 0));
  if (*rangeOfType(train::tensorType(indices).getElementType()).high >= use.size) { // else no number is too large
    Value last = b.splatLike(indices, static_cast<double>(use.size - 1));
    inside = b.select(b.compare(train::CompareDirection::Lt, inside, last), inside, last);
  }
  if (use.ignored) {
    Value value = b.splatLike(indices, static_cast<double>(*use.ignored));
    inside = b.select(b.compare(train::CompareDirection::Eq, indices, value), indices, inside);
  }
  use.operand->set(inside);
}

/// Adds a result of the step: of each sample the lowest index if it is below `low`, else the highest. The runtime
/// compares it with the bounds when the step is over. Samples are those of the batch, so that nothing is exchanged.
void ComputedIndices::check(const Use &use, Value indices, int64_t low) {
  Operation *op = use.operand->getOwner();
  OpBuilder builder(op);
  train::Build b(builder, op->getLoc());
  if (use.ignored) {
    Value value = b.splatLike(indices, static_cast<double>(*use.ignored));
    indices = b.select(b.compare(train::CompareDirection::Eq, indices, value), b.splatLike(indices, 0), indices);
  }
  const int64_t elements = train::tensorType(indices).getNumElements();
  if (elements == 0)
    return;
  int64_t samples = train::getBatchSize(func);
  if (train::tensorType(indices).getRank() == 0 || train::shapeOf(indices).front() % samples != 0)
    samples = 1;
  Value rows = b.convert(b.reshape(indices, {samples, elements / samples}), builder.getI64Type());
  Value least = b.reduce(train::ReduceKind::Min, rows, {1}), most = b.reduce(train::ReduceKind::Max, rows, {1});
  auto bound = DenseElementsAttr::get(train::tensorType(least), builder.getI64IntegerAttr(low));
  Value isBelow = b.compare(train::CompareDirection::Lt, least, b.constant(bound));
  auto named = [&](StringRef name, Attribute value) { return builder.getNamedAttr(name, value); };
  checks.push_back(
      {b.select(isBelow, least, most), builder.getDictionaryAttr({
                                           train::getRoleAttr(builder.getContext(), train::ResultRole::IndexCheck),
                                           named(train::kName, builder.getStringAttr(nameOfNode(op))),
                                           named(train::kOf, builder.getStringAttr(use.table)),
                                           named(train::kIndexLow, builder.getI64IntegerAttr(low)),
                                           named(train::kIndexBound, builder.getI64IntegerAttr(use.size)),
                                       })});
}

struct AnnotateIndexBounds : impl::AnnotateIndexBoundsBase<AnnotateIndexBounds> {
  using AnnotateIndexBoundsBase::AnnotateIndexBoundsBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (check != "error" && check != "clamp") {
      func.emitError() << "unknown check '" << check << "', expected error or clamp";
      return signalPassFailure();
    }
    for (BlockArgument argument : func.getArguments()) {
      const unsigned index = argument.getArgNumber();
      if (train::isBatchArgument(func, index))
        IndexUses(argument, train::getDims(func, index).getSampleDim()).annotate(func, index);
    }
    SmallVector<Use> uses;
    func.walk([&](Operation *op) {
      if (auto gather = dyn_cast<train::GatherRowsOp>(op)) {
        uses.push_back({&gather.getIndicesMutable(), train::shapeOf(gather.getTable()).front(), std::nullopt,
                        nameOfTable(gather.getTable(), op).str()});
      } else if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(op)) {
        uses.push_back({&scatter.getIndicesMutable(), train::shapeOf(scatter.getInit()).front(), std::nullopt,
                        nameOfTable(scatter.getInit(), op).str()});
      } else if (auto loss = dyn_cast<train::CrossEntropyOp>(op)) {
        auto ignored = loss.getIgnoreIndex();
        uses.push_back({&loss.getTargetsMutable(), train::shapeOf(loss.getLogits()).back(),
                        ignored ? std::optional<int64_t>(static_cast<int64_t>(*ignored)) : std::nullopt,
                        nameOfTable(loss.getLogits(), op).str()});
      }
    });
    ComputedIndices computed(func, check == "error" && train::isStepFunction(func));
    for (const Use &use : uses)
      computed.guard(use);
    computed.addResults();
  }
};

} // namespace
} // namespace tessera
