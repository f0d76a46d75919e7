//===- JoinChunks.cpp - gradients of chunks of heads, one after the other -===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PartRegion.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_JOINCHUNKS
#include "passes/differentiate/Passes.h.inc"

namespace {

/// The value that `weight` is a slice of, perhaps through views; null if it is none.
Value slicedFrom(Value weight) {
  while (auto reshape = weight.getDefiningOp<ReshapeOp>())
    weight = reshape.getOperand();
  auto slice = weight.getDefiningOp<SliceOp>();
  if (!slice)
    return {};
  weight = slice.getOperand();
  while (auto reshape = weight.getDefiningOp<ReshapeOp>())
    weight = reshape.getOperand();
  return weight;
}

/// Products that differ in one dimension that both sides contract, alone: their sum is one product.
bool areAlike(DotGeneralOp a, DotGeneralOp b) {
  auto agree = [](Value x, Value y, int64_t dim) {
    SmallVector<int64_t> left(shapeOf(x)), right(shapeOf(y));
    if (left.size() != right.size())
      return false;
    left[dim] = right[dim] = 0;
    return left == right;
  };
  return a->getAttrDictionary() == b->getAttrDictionary() && a.getType() == b.getType() &&
         a.getType().getElementType() == a.getLhs().getType().getElementType() && a.getLhsContract().size() == 1 &&
         a.getLhsBatch().empty() && !a.getScalingAttr() && slicedFrom(a.getRhs()) == slicedFrom(b.getRhs()) &&
         agree(a.getLhs(), b.getLhs(), a.getLhsContract().front()) &&
         agree(a.getRhs(), b.getRhs(), a.getRhsContract().front());
}

/// Finds what `sum` adds up, in the order of the IR; inner sums have one reader.
void findAddends(Value sum, SmallVectorImpl<OpOperand *> &addends) {
  auto add = sum.getDefiningOp<AddOp>();
  for (OpOperand &operand : add->getOpOperands())
    if (operand.get().hasOneUse() && operand.get().getDefiningOp<AddOp>())
      findAddends(operand.get(), addends);
    else
      addends.push_back(&operand);
}

/// What follows from `value` through views alone; the last of them, if the gradient of an attention reads it.
Value viewForAttention(Value value, SmallVectorImpl<Operation *> &views) {
  while (value.hasOneUse() && isa<ReshapeOp, TransposeOp>(*value.user_begin())) {
    views.push_back(*value.user_begin());
    value = views.back()->getResult(0);
  }
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isa<AttentionGradOp>(user); }) ? value : Value();
}

/// The dimension that a slice takes a range of; -1 if it takes more than one, or not neighbours.
int64_t slicedDim(SliceOp slice) {
  int64_t found = -1;
  for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getOperand()))) {
    if (slice.getType().getDimSize(dim) == size)
      continue;
    if (found >= 0 || slice.getStrides()[dim] != 1)
      return -1;
    found = static_cast<int64_t>(dim);
  }
  return found;
}

struct JoinChunks : impl::JoinChunksBase<JoinChunks> {
  void runOnOperation() override {
    SmallVector<AddOp> sums;
    getOperation().walk([&](AddOp add) {
      const bool isInner = add->hasOneUse() && isa<AddOp>(*add->user_begin());
      if (isMarkedBackward(add) && !isInner)
        sums.push_back(add);
    });
    for (AddOp sum : sums)
      run(sum);
    llvm::SetVector<Value> sliced;
    getOperation().walk([&](SliceOp slice) {
      SmallVector<Operation *> views;
      if (isMarkedBackward(slice) && viewForAttention(slice, views))
        sliced.insert(slice.getOperand());
    });
    for (Value whole : sliced)
      if (failed(splitProduct(whole)))
        return signalPassFailure();
  }

  /// Where gradients of attentions alone read disjoint slices of a product, each is computed right before it is read.
  static LogicalResult splitProduct(Value whole) {
    SmallVector<SliceOp> slices;
    int64_t dim = -1, total = 0;
    for (Operation *user : whole.getUsers()) {
      auto slice = dyn_cast<SliceOp>(user);
      SmallVector<Operation *> views;
      if (!slice || !viewForAttention(slice, views) || slicedDim(slice) < 0 || (dim >= 0 && slicedDim(slice) != dim))
        return success();
      dim = slicedDim(slice);
      total += slice.getType().getDimSize(dim);
      slices.push_back(slice);
    }
    const int64_t count = shapeOf(whole)[dim];
    PartRegion region(count);
    for (SliceOp slice : slices)
      region.addReader(slice.getOperandMutable(), {dim, 1, 1});
    region.close();
    if (total > count || llvm::none_of(region.getOps(), [](Operation *op) { return isa<DotGeneralOp>(op); }))
      return success();
    for (SliceOp slice : slices) {
      SmallVector<Operation *> views;
      Value last = viewForAttention(slice, views);
      Operation *reader = *last.user_begin();
      for (Operation *user : last.getUsers())
        reader = user->isBeforeInBlock(reader) ? user : reader;
      MarkBackward mark;
      OpBuilder builder(reader);
      builder.setListener(&mark);
      PartBuilder parts(region, builder, slice.getStarts()[dim], slice.getType().getDimSize(dim));
      FailureOr<Value> part = parts.get(whole, {dim, 1, 1});
      if (failed(part))
        return failure();
      slice.replaceAllUsesWith(*part);
      for (Operation *view : views)
        view->moveBefore(reader);
    }
    for (SliceOp slice : slices)
      slice->erase();
    for (Operation *op : llvm::reverse(region.getOps()))
      op->erase();
    return success();
  }

  void run(AddOp sum) {
    SmallVector<OpOperand *> addends;
    findAddends(sum.getResult(), addends);
    SmallVector<bool> taken(addends.size(), false);
    auto productOf = [&](size_t index) {
      auto product = addends[index]->get().getDefiningOp<DotGeneralOp>();
      return product && product->hasOneUse() && product->getBlock() == sum->getBlock() && slicedFrom(product.getRhs())
                 ? product
                 : DotGeneralOp();
    };
    SmallVector<Value> left; // what is still added up
    bool changed = false;
    for (size_t index = 0; index < addends.size(); ++index) {
      if (taken[index])
        continue;
      DotGeneralOp product = productOf(index);
      SmallVector<DotGeneralOp> alike;
      for (size_t other = index; product && other < addends.size(); ++other)
        if (DotGeneralOp second = taken[other] ? DotGeneralOp() : productOf(other);
            second && areAlike(product, second)) {
          taken[other] = true;
          alike.push_back(second);
        }
      if (alike.size() > 1) {
        changed = true;
        left.push_back(join(alike, sum));
      } else {
        left.push_back(addends[index]->get());
      }
    }
    if (!changed)
      return;
    MarkBackward mark;
    OpBuilder builder(sum);
    builder.setListener(&mark);
    Value total = left.front();
    for (Value one : ArrayRef(left).drop_front())
      total = Build(builder, sum.getLoc()).add(total, one);
    sum.replaceAllUsesWith(total);
    SmallVector<Operation *> dead{sum};
    while (!dead.empty()) {
      Operation *op = dead.pop_back_val();
      if (!op->use_empty() || !isa<AddOp, DotGeneralOp>(op))
        continue;
      SmallVector<Operation *> sources;
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp(); source && !llvm::is_contained(sources, source))
          sources.push_back(source);
      op->erase();
      llvm::append_range(dead, sources);
    }
  }

  static Value join(ArrayRef<DotGeneralOp> products, AddOp sum) {
    MarkBackward mark;
    OpBuilder builder(sum);
    builder.setListener(&mark);
    DotGeneralOp first = products.front();
    Build build(builder, first.getLoc());
    SmallVector<Value> left, right;
    for (DotGeneralOp product : products) {
      left.push_back(product.getLhs());
      right.push_back(product.getRhs());
    }
    return build.dot(build.concat(left, first.getLhsContract().front()),
                     build.concat(right, first.getRhsContract().front()), {}, {}, first.getLhsContract(),
                     first.getRhsContract(), first.getComputeTypeAttr());
  }
};

} // namespace
} // namespace tessera
