//===- TileProducts.cpp - wide values of some rows at a time --------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/interfaces/Interfaces.h"
#include "passes/lower/Passes.h"
#include "passes/lower/RowRegion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_TILEPRODUCTS
#include "passes/lower/Passes.h.inc"

namespace {
using lower::RowRegion;

/// Each range is written out: of more there are too many instructions.
constexpr int64_t kMostRowRanges = 256;
/// Ranges are a multiple of it where they are longer: tiles of products on GPUs have 128 or 256 rows.
constexpr int64_t kRowsOfTile = 128;

/// Writes out a region, for one range of rows after the other.
class RegionTiler {
public:
  /// Ranges of values of at most `bytes`.
  RegionTiler(const RowRegion &region, int64_t bytes)
      : region(region), builder(region.ops.front()),
        tile(std::max<int64_t>(bytes / llvm::divideCeil(region.widest, region.rows), 1)) {
    if (tile > kRowsOfTile)
      tile -= tile % kRowsOfTile;
    const int64_t least = llvm::divideCeil(region.rows, kMostRowRanges);
    if (tile < least)
      tile = least > kRowsOfTile ? llvm::alignTo(least, kRowsOfTile) : least;
  }

  LogicalResult run() {
    Operation *start = lastInput();
    const SmallVector<Operation *> dependents = region.dependentsBefore(start->getNextNode());
    builder.setInsertionPointAfter(start);
    for (int64_t first = 0; first < region.rows; first += tile)
      if (failed(add(first, std::min(first + tile, region.rows))))
        return failure();
    for (Operation *op : region.ops)
      for (OpResult result : op->getResults())
        finish(result);
    Operation *last = &*std::prev(builder.getInsertionPoint());
    for (Operation *op : dependents) {
      op->moveAfter(last);
      last = op;
    }
    for (Operation *op : llvm::reverse(region.ops)) {
      op->dropAllUses();
      op->erase();
    }
    return success();
  }

private:
  bool isInside(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && region.ops.contains(op);
  }

  /// The op behind which everything is there that the region reads.
  Operation *lastInput() const {
    Operation *last = nullptr;
    for (Operation *op : region.ops)
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp(); source && !isInside(operand) &&
                                                         source->getBlock() == op->getBlock() &&
                                                         (!last || last->isBeforeInBlock(source)))
          last = source;
    return last ? last : region.ops.front();
  }

  /// Rows [first, end) of a value from outside.
  FailureOr<Value> range(Value value, RowsOf rows, int64_t first, int64_t end) {
    if (Operation *source = value.getDefiningOp(); repeatsRows(source, rows)) {
      auto results = build(source, source->getOperands(), {typeOf(value, rows, first, end)});
      return failed(results) ? FailureOr<Value>(failure()) : FailureOr<Value>(results->front());
    }
    SmallVector<int64_t> starts(tensorType(value).getRank(), 0), limits(shapeOf(value));
    starts[rows.dim] = first * rows.inner;
    limits[rows.dim] = end * rows.inner;
    return Build(builder, value.getLoc()).slice(value, starts, limits);
  }

  LogicalResult add(int64_t first, int64_t end) {
    IRMapping mapping;
    for (Operation *op : region.ops) {
      // What was made for the backward pass alone is kept apart from the forward pass.
      MarkBackward mark;
      builder.setListener(isMarkedBackward(op) ? &mark : nullptr);
      for (Value operand : op->getOperands())
        if (const std::optional<RowsOf> rows = region.rowsOf(operand); rows && !mapping.contains(operand)) {
          FailureOr<Value> part = range(operand, *rows, first, end);
          if (failed(part))
            return failure();
          mapping.map(operand, *part);
        }
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(mapping.lookupOrDefault(operand));
      SmallVector<Type> types;
      for (Value result : op->getResults())
        types.push_back(typeOf(result, first, end));
      FailureOr<SmallVector<Value>> results = build(op, operands, types);
      if (failed(results))
        return failure();
      mapping.map(op->getResults(), *results);
      for (auto [whole, part] : llvm::zip_equal(op->getResults(), *results))
        take(whole, part);
    }
    builder.setListener(nullptr);
    return success();
  }

  FailureOr<SmallVector<Value>> build(Operation *op, ValueRange operands, TypeRange types) {
    return buildForRows(op, builder, operands, types);
  }

  static Type typeOf(Value value, RowsOf rows, int64_t first, int64_t end) {
    SmallVector<int64_t> shape(shapeOf(value));
    shape[rows.dim] = (end - first) * rows.inner;
    return tensorType(value).clone(shape);
  }

  Type typeOf(Value result, int64_t first, int64_t end) const {
    RankedTensorType type = tensorType(result);
    return region.isSum(result) ? type.clone(accumulationType(type.getElementType()))
                                : typeOf(result, *region.rowsOf(result), first, end);
  }

  bool leaves(Value result) const {
    return llvm::any_of(result.getUsers(), [&](Operation *user) { return !region.ops.contains(user); });
  }

  void take(Value whole, Value part) {
    if (!leaves(whole))
      return;
    SmallVector<Value> &all = parts[whole];
    if (region.isSum(whole) && !all.empty())
      all.front() = Build(builder, whole.getLoc()).add(all.front(), part);
    else
      all.push_back(part);
  }

  void finish(OpResult result) {
    if (!leaves(result))
      return;
    MarkBackward mark;
    builder.setListener(isMarkedBackward(result.getOwner()) ? &mark : nullptr);
    Build build(builder, result.getLoc());
    const SmallVector<Value> &all = parts[result];
    Value whole = region.isSum(result) ? build.convert(all.front(), tensorType(result).getElementType())
                                       : build.concat(all, region.rowsOf(result)->dim);
    result.replaceUsesWithIf(whole, [&](OpOperand &use) { return !region.ops.contains(use.getOwner()); });
    builder.setListener(nullptr);
  }

  const RowRegion &region;
  OpBuilder builder;
  int64_t tile;
  llvm::MapVector<Value, SmallVector<Value>> parts; ///< of what is read outside; of a sum, its sum so far
};

/// Whether the result is larger than the operand that its rows, its first dimension that is not 1, come from.
bool widens(DotGeneralOp product) {
  const ArrayRef<int64_t> shape = shapeOf(product.getResult());
  const int64_t rows = llvm::find_if(shape, [](int64_t size) { return size > 1; }) - shape.begin();
  const auto leftDims = static_cast<int64_t>(shapeOf(product.getLhs()).size() - product.getLhsContract().size());
  return lower::bytesOf(rows < leftDims ? product.getLhs() : product.getRhs()) < lower::bytesOf(product.getResult());
}

struct TileProducts : impl::TileProductsBase<TileProducts> {
  using TileProductsBase::TileProductsBase;
  void runOnOperation() override {
    SmallVector<DotGeneralOp> products;
    getOperation().walk([&](DotGeneralOp product) {
      if (lower::bytesOf(product.getResult()) > bytes && widens(product))
        products.push_back(product);
    });
    llvm::DenseSet<Operation *> done;
    for (DotGeneralOp product : products) {
      if (done.contains(product))
        continue;
      const RowRegion region(product, bytes);
      if (!region.whyNot.empty()) {
        product.emitRemark() << "its result, " << lower::bytesOf(product.getResult())
                             << " bytes, is not computed for some rows at a time: " << region.whyNot;
        continue;
      }
      done.insert_range(region.ops);
      if (failed(RegionTiler(region, bytes).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera
