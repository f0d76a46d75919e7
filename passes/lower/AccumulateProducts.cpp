//===- AccumulateProducts.cpp - products that add to sums -----------------===//
//
// Moves additions to the products that they add; see Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ACCUMULATEPRODUCTS
#include "passes/lower/Passes.h.inc"

namespace {

/// The op that computes `value`, if it is in `block` and nothing else reads it.
Operation *onlyUse(Value value, Block *block) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == block && value.hasOneUse() ? op : nullptr;
}

bool isZero(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
  if (!splat)
    return false;
  if (auto real = dyn_cast<FloatAttr>(splat.getSplatValue<Attribute>()))
    return real.getValue().isPosZero();
  return cast<IntegerAttr>(splat.getSplatValue<Attribute>()).getValue().isZero();
}

/// Whether the op is a product that is not added to anything yet.
bool isProduct(Operation *op) {
  auto scaled = dyn_cast_or_null<exec::ScaledProductOp>(op);
  return scaled ? !scaled.getAccumulator() : isa_and_nonnull<train::DotGeneralOp>(op);
}

/// Whether a product could add something to `value` by itself.
bool takesAddition(Value value, Block *block) {
  Operation *op = onlyUse(value, block);
  if (!op)
    return false;
  if (isProduct(op))
    return true;
  if (isa<train::ReshapeOp, train::TransposeOp>(op))
    return takesAddition(op->getOperand(0), block);
  if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(op))
    return isZero(scatter.getInit()) || takesAddition(scatter.getInit(), block);
  auto concat = dyn_cast<train::ConcatOp>(op);
  return concat && concat.getDim() == 0 &&
         llvm::any_of(concat.getOperands(), [&](Value part) { return takesAddition(part, block); });
}

/// `sum + product(…)`, in the product's place.
Value addProduct(Value sum, Operation *product) {
  OpBuilder builder(product);
  if (auto scaled = dyn_cast<exec::ScaledProductOp>(product)) {
    auto result = cast<exec::ScaledProductOp>(builder.clone(*product));
    result.getAccumulatorMutable().assign(sum);
    return result;
  }
  auto dot = cast<train::DotGeneralOp>(product);
  auto result =
      exec::AddProductOp::create(builder, dot.getLoc(), dot.getType(), sum, dot.getLhs(), dot.getRhs(),
                                 dot.getLhsBatch(), dot.getRhsBatch(), dot.getLhsContract(), dot.getRhsContract());
  result->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
  return result;
}

/// Makes the view of a carried sum that a value is to be added to, where the builder stands.
using MakeSum = llvm::function_ref<Value(OpBuilder &, Location)>;
/// `sum + value`, for `reader`: defined where `value` is, or right before `reader`.
Value addTo(MakeSum sum, Value value, Operation *reader) {
  Block *block = reader->getBlock();
  Operation *op = onlyUse(value, block);
  OpBuilder builder(reader);
  if (isZero(value))
    return sum(builder, value.getLoc());
  if (isProduct(op)) {
    builder.setInsertionPoint(op);
    return addProduct(sum(builder, op->getLoc()), op);
  }
  if (takesAddition(value, block)) {
    Value inner = op->getOperand(0);
    auto inside = [&](OpBuilder &at, Location loc) {
      train::Build build(at, loc);
      Value whole = sum(at, loc);
      if (isa<train::ReshapeOp>(op))
        return build.reshape(whole, train::shapeOf(inner));
      if (auto transpose = dyn_cast<train::TransposeOp>(op)) {
        SmallVector<int64_t> inverse(transpose.getPermutation().size());
        for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
          inverse[from] = to;
        return build.transpose(whole, inverse);
      }
      return whole;
    };
    if (isa<train::ReshapeOp, train::TransposeOp, train::ScatterAddRowsOp>(op)) {
      // A table of zeros is the sum itself, where the scatter is.
      builder.setInsertionPoint(op);
      bool zeros = isa<train::ScatterAddRowsOp>(op) && isZero(inner);
      op->setOperand(0, zeros ? inside(builder, op->getLoc()) : addTo(inside, inner, op));
      return value;
    }
    auto concat = cast<train::ConcatOp>(op);
    SmallVector<Value> parts;
    int64_t start = 0;
    for (Value part : llvm::to_vector(concat.getOperands())) {
      SmallVector<int64_t> starts(train::shapeOf(part).size(), 0), limits(train::shapeOf(part));
      starts[0] = start;
      limits[0] += start;
      start = limits[0];
      auto slice = [&](OpBuilder &at, Location loc) {
        return train::Build(at, loc).slice(sum(at, loc), starts, limits);
      };
      parts.push_back(addTo(slice, part, concat));
    }
    concat.getOperandsMutable().assign(parts);
    return value;
  }
  if (Operation *source = value.getDefiningOp(); source && source->getBlock() == block)
    builder.setInsertionPointAfter(source);
  else
    builder.setInsertionPointToStart(block);
  train::Build build(builder, value.getLoc());
  return build.add(sum(builder, value.getLoc()), value);
}

/// Sums that a repetition carries on from one iteration to the next.
void accumulateCarried(exec::RepeatOp repeat) {
  Block *body = &repeat.getBody().front();
  unsigned first = 1 + repeat.getBatch().size();
  for (OpOperand &next : body->getTerminator()->getOpOperands()) {
    BlockArgument sum = body->getArgument(first + next.getOperandNumber());
    auto add = next.get().getDefiningOp<train::AddOp>();
    if (!add || !add->hasOneUse() || !sum.hasOneUse() || *sum.user_begin() != add)
      continue;
    Value value = add.getLhs() == sum ? add.getRhs() : add.getLhs();
    if (!takesAddition(value, body))
      continue;
    next.set(addTo([&](OpBuilder &, Location) -> Value { return sum; }, value, body->getTerminator()));
    add.erase();
  }
}

/// A sum of two products.
void accumulatePair(train::AddOp add) {
  auto isAnyProduct = [&](Value value) {
    return isa_and_nonnull<train::DotGeneralOp, exec::AddProductOp, exec::ScaledProductOp>(
        onlyUse(value, add->getBlock()));
  };
  if (!isAnyProduct(add.getLhs()) || !isAnyProduct(add.getRhs()))
    return;
  Operation *first = add.getLhs().getDefiningOp(), *last = add.getRhs().getDefiningOp();
  if (!first->isBeforeInBlock(last))
    std::swap(first, last);
  if (isProduct(last))
    add.replaceAllUsesWith(addProduct(first->getResult(0), last));
}

struct AccumulateProducts : impl::AccumulateProductsBase<AccumulateProducts> {
  void runOnOperation() override {
    getOperation().walk([](exec::RepeatOp repeat) { accumulateCarried(repeat); });
    getOperation().walk([](train::AddOp add) { accumulatePair(add); });
    SmallVector<Operation *> replaced;
    getOperation().walk([&](Operation *op) {
      if (isProduct(op) || isa<train::AddOp>(op))
        replaced.push_back(op);
    });
    for (Operation *op : llvm::reverse(replaced))
      if (op->use_empty())
        op->erase();
  }
};

} // namespace
} // namespace tessera
