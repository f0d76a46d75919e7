//===- PartRegion.cpp - what can be computed for a part at a time ---------===//

#include "compiler/dialect/train/PartRegion.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Rows.h"
#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera::train {

void PartRegion::addReader(OpOperand &use, PartOf place) {
  readers[&use] = place;
  add(use.get(), place);
}

std::optional<PartOf> PartRegion::placeOf(OpOperand &use) const {
  const auto *found = readers.find(&use);
  return found == readers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PartOf> PartRegion::placeIn(const Cut &cut, const TensorFactors &dims) const {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    const auto *found = llvm::find(factors, cut.factor);
    if (found == factors.end())
      continue;
    PartOf place{static_cast<int64_t>(dim), cut.outer, cut.inner};
    for (int64_t major : llvm::make_range(factors.begin(), found))
      place.outer *= cut.rule.factors[major].size;
    for (int64_t minor : llvm::make_range(found + 1, factors.end()))
      place.inner *= cut.rule.factors[minor].size;
    return place;
  }
  return std::nullopt;
}

void PartRegion::add(Value value, PartOf place) {
  Operation *op = value.getDefiningOp();
  if (auto [first, isNew] = known.try_emplace(value, place); !isNew) {
    if (!(first->second == place) && op)
      drop(op, "has parts of it read in two ways");
    return;
  }
  if (!op || repeatsRows(op, {place.dim, place.inner}) || ops.contains(op))
    return;
  if (!cut(op, value, place)) {
    if (!isa<ConstantOp>(op))
      reasons.try_emplace(value, "does not keep parts apart");
    return;
  }
  if (auto product = dyn_cast<DotGeneralOp>(op); product && product.getScalingAttr()) {
    reasons[value] = "is scaled to 8 bits as a whole";
    return;
  }
  ops.insert(op);
  const Cut own = cuts[op];
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), own.rule.operands))
    if (std::optional<PartOf> inside = placeIn(own, dims))
      add(operand, *inside);
}

/// Finds the factor of `value`, one of the results of `op`, that parts are ranges of.
bool PartRegion::cut(Operation *op, Value value, PartOf place) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || op->getBlock() != value.getParentBlock() || op->getNumRegions() != 0 || knowsPlaces(op))
    return false;
  Cut made{interface.getShardingRule()};
  int64_t outer = place.outer;
  for (int64_t number : made.rule.results[cast<OpResult>(value).getResultNumber()][place.dim]) {
    const Factor &factor = made.rule.factors[number];
    if (factor.size % (outer * count) == 0) {
      if (factor.kind != FactorKind::PassThrough || factor.isOrdered || factor.isRun)
        return false;
      made.factor = number;
      made.outer = outer;
      made.inner = factor.size / (outer * count);
      break;
    }
    if (outer % factor.size != 0)
      return false;
    outer /= factor.size;
  }
  if (made.factor < 0 ||
      !llvm::all_of(made.rule.results, [&](const TensorFactors &dims) { return placeIn(made, dims).has_value(); }))
    return false;
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), made.rule.results))
    if (auto [other, isNew] = known.try_emplace(result, *placeIn(made, dims)); !(other->second == *placeIn(made, dims)))
      return false;
  cuts[op] = std::move(made);
  return true;
}

void PartRegion::drop(Operation *op, StringRef why) {
  if (ops.remove(op))
    for (Value result : op->getResults())
      reasons[result] = why;
}

/// Whether `use`, of a result of an op of the region, is of the part that is known of it, and not of all.
bool PartRegion::readsPart(OpOperand &use) const {
  if (readers.contains(&use))
    return true;
  if (!ops.contains(use.getOwner()))
    return false;
  const Cut &cut = cuts.find(use.getOwner())->second;
  const std::optional<PartOf> place = placeIn(cut, cut.rule.operands[use.getOperandNumber()]);
  return place && *place == known.find(use.get())->second;
}

void PartRegion::close() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::to_vector(ops))
      if (!llvm::all_of(op->getUses(), [&](OpOperand &use) { return readsPart(use); })) {
        drop(op, "has other readers");
        changed = true;
      }
  }
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  ops.insert_range(sorted);
}

void PartRegion::forEachWhole(llvm::function_ref<void(Value, StringRef)> report) const {
  auto isRead = [&](OpOperand &use) { return readers.contains(&use) || ops.contains(use.getOwner()); };
  for (auto [whole, why] : reasons)
    if (llvm::any_of(whole.getUses(), isRead)) // else what reads it is whole itself
      report(whole, why);
}

RankedTensorType PartBuilder::typeOf(Value whole, PartOf place) const {
  SmallVector<int64_t> shape(shapeOf(whole));
  shape[place.dim] = place.outer * taken * place.inner;
  return tensorType(whole).clone(shape);
}

FailureOr<Value> PartBuilder::get(Value whole, PartOf place) {
  if (Value known = made.lookup(whole))
    return known;
  Operation *op = whole.getDefiningOp();
  if (repeatsRows(op, {place.dim, place.inner})) {
    FailureOr<SmallVector<Value>> built = buildForRows(op, builder, op->getOperands(), {typeOf(whole, place)});
    return failed(built) ? FailureOr<Value>(failure()) : built->front();
  }
  auto isKnown = region.known.find(whole);
  if (!op || !region.ops.contains(op) || isKnown == region.known.end() || !(isKnown->second == place))
    return slice(whole, place);
  const PartRegion::Cut &cut = region.cuts.find(op)->second;
  SmallVector<Value> operands;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), cut.rule.operands)) {
    const std::optional<PartOf> inside = region.placeIn(cut, dims);
    FailureOr<Value> value = inside ? get(operand, *inside) : operand;
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  SmallVector<Type> types;
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), cut.rule.results))
    types.push_back(typeOf(result, *region.placeIn(cut, dims)));
  FailureOr<SmallVector<Value>> built = buildForRows(op, builder, operands, types);
  if (failed(built))
    return failure();
  for (auto [result, one] : llvm::zip_equal(op->getResults(), *built))
    made[result] = one;
  return made[whole];
}

Value PartBuilder::slice(Value whole, PartOf place) {
  Build build(builder, whole.getLoc());
  SmallVector<int64_t> shape(shapeOf(whole));
  int64_t dim = place.dim, inner = place.inner;
  if (place.outer > 1) {
    shape[dim] = place.outer;
    shape.insert(shape.begin() + dim + 1, {region.count, inner});
    whole = build.reshape(whole, shape);
    ++dim;
    inner = 1;
  }
  SmallVector<int64_t> starts(shape.size(), 0);
  starts[dim] = first * inner;
  shape[dim] = (first + taken) * inner;
  Value part = build.slice(whole, starts, shape);
  if (place.outer == 1)
    return part;
  shape[place.dim] = place.outer * taken * place.inner;
  shape.erase(shape.begin() + dim, shape.begin() + dim + 2);
  return build.reshape(part, shape);
}

Value joinParts(OpBuilder &builder, ArrayRef<Value> parts, PartOf place, ArrayRef<int64_t> shape) {
  Build build(builder, parts.front().getLoc());
  if (place.outer == 1)
    return build.concat(parts, place.dim);
  SmallVector<Value> apart;
  for (Value part : parts) {
    SmallVector<int64_t> own(shapeOf(part));
    own.insert(own.begin() + place.dim + 1, own[place.dim] / place.outer);
    own[place.dim] = place.outer;
    apart.push_back(build.reshape(part, own));
  }
  return build.reshape(build.concat(apart, place.dim + 1), shape);
}

} // namespace tessera::train
