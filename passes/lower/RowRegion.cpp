//===- RowRegion.cpp - ops between a widening and a narrowing product -----===//

#include "passes/lower/RowRegion.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/interfaces/Interfaces.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::lower {

int64_t bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

namespace {
/// Sums of parts are added up in f32 or wider: only a product of narrower elements can be told to make such.
bool isExactSum(OpResult result) {
  const Type element = tensorType(result).getElementType();
  return isa<DotGeneralOp>(result.getOwner()) || accumulationType(element) == element;
}
} // namespace

std::optional<RowsOf> RowRegion::rowsOf(Value value) const {
  auto found = places.find(value);
  return found == places.end() ? std::nullopt : std::optional<RowsOf>(found->second);
}

SmallVector<Operation *> RowRegion::dependentsBefore(Operation *end) const {
  SmallVector<Operation *> before;
  llvm::copy_if(dependents, std::back_inserter(before), [&](Operation *op) { return op->isBeforeInBlock(end); });
  return before;
}

RowRegion::RowRegion(DotGeneralOp product, int64_t limit) {
  // Rows are the first dimension of the result that is not 1, so that a range of them is a range of memory.
  const ArrayRef<int64_t> shape = shapeOf(product.getResult());
  const auto *first = llvm::find_if(shape, [](int64_t size) { return size > 1; });
  if (first == shape.end()) {
    whyNot = "there is one row";
    return;
  }
  rows = *first;
  places[product.getResult()] = {first - shape.begin(), 1};
  wide.insert(product.getResult());
  for (size_t next = 0; next < wide.size(); ++next) {
    Value value = wide[next];
    SmallVector<Operation *> around(value.user_begin(), value.user_end());
    around.push_back(value.getDefiningOp());
    for (Operation *op : around)
      if (!ops.contains(op) && !add(op, value, limit))
        return;
    widest = std::max(widest, bytesOf(value));
  }
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  ops.insert_range(sorted);
  checkReads();
  if (whyNot.empty())
    checkOrder();
}

/// What has rows is read by its rows everywhere in the region: a product of it with itself reads all of it, too.
void RowRegion::checkReads() {
  for (Operation *op : ops) {
    const ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
      bool isMajor = true;
      if (auto known = places.find(operand);
          known != places.end() && placeOf(rule, dims, factors[op], isMajor) != std::optional(known->second))
        whyNot = "'" + op->getName().getStringRef().str() + "' reads all rows of what has them";
    }
  }
}

bool RowRegion::setRows(Value value, RowsOf place) {
  auto [known, isNew] = places.try_emplace(value, place);
  return isNew || known->second == place;
}

bool RowRegion::add(Operation *op, Value value, int64_t limit) {
  auto interface = dyn_cast_or_null<ShardingRuleOpInterface>(op);
  // Ops that know the place of a row among all are not cut.
  if (!interface || op->getBlock() != value.getParentBlock() || op->getNumRegions() != 0 || knowsPlaces(op)) {
    whyNot = op ? "'" + op->getName().getStringRef().str() + "' needs all rows" : "an argument has them";
    return false;
  }
  whyNot = "'" + op->getName().getStringRef().str() + "' does not keep rows apart";
  const ShardingRule rule = interface.getShardingRule();
  int64_t factor = -1;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    if (operand == value)
      factor = rowFactor(rule, dims, places[value], rows);
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results))
    if (result == value)
      factor = rowFactor(rule, dims, places[value], rows);
  if (factor < 0 || rule.factors[factor].size != rows)
    return false;
  // A product's other side belongs to it where it is no narrower than what is known to be wide.
  const int64_t least = std::max(limit + 1, isa<DotGeneralOp, ScaledDotOp>(op) ? bytesOf(value) : 0);
  bool isMajor = true;
  auto take = [&](Value other, RowsOf place) {
    if (bytesOf(other) >= least && !repeatsRows(other.getDefiningOp(), place))
      wide.insert(other);
    return isMajor && setRows(other, place);
  };
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    if (std::optional<RowsOf> place = placeOf(rule, dims, factor, isMajor); place && !take(operand, *place))
      return false;
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
    if (std::optional<RowsOf> place = placeOf(rule, dims, factor, isMajor)) {
      if (!take(result, *place))
        return false;
    } else if (rule.reductionOf(result.getResultNumber(), factor) == dist::ReductionKind::Sum && isExactSum(result)) {
      sums.insert(result);
    } else {
      return false;
    }
  }
  whyNot.clear();
  ops.insert(op);
  factors[op] = factor;
  return true;
}

/// Nothing that the region needs may follow, outside of it, from what it makes.
void RowRegion::checkOrder() {
  llvm::DenseSet<Operation *> depends(ops.begin(), ops.end());
  for (Operation *op = ops.front(); op; op = op->getNextNode()) {
    auto isDependent = [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source && depends.contains(source);
    };
    auto isOutside = [&](Value operand) { return isDependent(operand) && !ops.contains(operand.getDefiningOp()); };
    if (ops.contains(op)) {
      // A sum over the rows is there when all of them are.
      if (llvm::any_of(op->getOperands(), isOutside) ||
          llvm::any_of(op->getOperands(), [&](Value operand) { return sums.contains(operand); })) {
        whyNot = "what it makes is needed outside before it ends: it is kept for the backward pass, or summed up";
        return;
      }
    } else if (op->walk([&](Operation *inner) {
                   return llvm::any_of(inner->getOperands(), isDependent) ? WalkResult::interrupt()
                                                                          : WalkResult::advance();
                 }).wasInterrupted()) {
      dependents.push_back(op);
      depends.insert(op);
    }
  }
}

} // namespace tessera::lower
