//===- BackwardEpilogues.cpp - gradients of biases and GELU into products -===//
//
// Finds what a product of the backward pass is multiplied by, and what is summed of it or of its factors.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/EpilogueProduct.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera::epilogue {

using exec::Epilogue;

static unsigned widthOf(Value value) { return elementOf(value).getIntOrFloatBitWidth(); }

/// The sums that read `value`, wide or as it is, over `dims`: in one step, or in the two of `decompose` over chunks
/// of rows, where the last step counts.
static void findSums(Value value, Value current, ArrayRef<int64_t> dims, SmallVectorImpl<train::ReduceOp> &found) {
  for (Operation *user : current.getUsers()) {
    if (isa<train::ReshapeOp>(user) || (isa<train::ConvertOp>(user) && widthOf(user->getResult(0)) >= widthOf(value)))
      findSums(value, user->getResult(0), dims, found);
    auto reduce = dyn_cast<train::ReduceOp>(user);
    if (!reduce || reduce.getKind() != train::ReduceKind::Sum)
      continue;
    ArrayRef<int64_t> shape = shapeOf(current);
    if (shape == shapeOf(value)) {
      SmallVector<int64_t> reduced(reduce.getDimensions());
      llvm::sort(reduced);
      if (ArrayRef(reduced) == dims)
        found.push_back(reduce);
      continue;
    }
    bool isLeading = llvm::equal(dims, llvm::seq<int64_t>(0, dims.size()));
    int64_t columns = elementsOf(shapeOf(value).drop_front(dims.size()));
    auto last = reduce->hasOneUse() ? dyn_cast<train::ReduceOp>(*reduce->user_begin()) : nullptr;
    if (isLeading && shape.size() == 3 && shape[2] == columns && reduce.getDimensions() == ArrayRef<int64_t>{1} &&
        last && last.getKind() == train::ReduceKind::Sum && last.getDimensions() == ArrayRef<int64_t>{0})
      found.push_back(last);
  }
}

/// What stands before `product` and needs `op`, if all of it can be computed behind the product.
static bool findEarly(Operation *op, Operation *product, SmallVectorImpl<Operation *> &early) {
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = product->getBlock()->findAncestorOpInBlock(*user);
    if (inBlock && product->isBeforeInBlock(inBlock))
      continue;
    if (inBlock != user || !isa<train::AddOp, train::ReshapeOp>(user) || !findEarly(user, product, early))
      return false;
    if (!llvm::is_contained(early, user))
      early.push_back(user);
  }
  return true;
}

/// The sum of `value` over `dims` if the product can write it: in its own type, and not needed before it.
static train::ReduceOp columnSum(Value value, const Product &product, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  SmallVector<train::ReduceOp> sums;
  findSums(value, value, sorted, sums);
  for (train::ReduceOp reduce : sums) {
    if (reduce->getBlock() != product.op->getBlock())
      continue;
    if (elementOf(reduce.getResult()) != elementOf(product.result)) {
      if (value != product.lhs && value != product.rhs)
        continue; // the product that contracts the terms may take it
      reduce.emitRemark() << "bias gradient not fused into the product that contracts its terms: the sum is "
                          << elementOf(reduce.getResult()) << ", the product writes " << elementOf(product.result);
      continue;
    }
    SmallVector<Operation *> early;
    bool isEarly = !findEarly(reduce, product.op, early);
    if (isEarly) {
      reduce.emitRemark() << "bias gradient not fused into the product: it is needed before the product";
      continue;
    }
    return reduce;
  }
  return nullptr;
}

/// The sum is an output of `made` now, and what it is added to follows it.
static void replaceSum(train::ReduceOp sum, exec::EpilogueProductOp made) {
  SmallVector<Operation *> early;
  findEarly(sum, made, early);
  llvm::sort(early, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(made->getContext());
  builder.setInsertionPointAfter(made);
  train::Build build(builder, sum.getLoc());
  Value vector = build.reshape(made.getOutput(), shapeOf(sum.getResult()));
  sum.replaceAllUsesWith(vector);
  Operation *last = vector.getDefiningOp();
  for (Operation *op : early) {
    op->moveAfter(last);
    last = op;
  }
}

static void buildGeluGrad(const Product &product, Value z, Value gradient) {
  train::ReduceOp sum =
      columnSum(gradient, product,
                llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(gradient).size() - product.columnShape().size())));
  // Recomputation may have put the product that writes z behind this one, whose only reader is the gradient.
  Operation *source = z.getDefiningOp(), *before = nullptr;
  if (source->getBlock() == product.op->getBlock() && product.op->isBeforeInBlock(source))
    before = gradient.getDefiningOp();
  exec::EpilogueProductOp made = sum ? product.build(Epilogue::GeluGradBiasGrad, z, sum.getType(), before)
                                     : product.build(Epilogue::GeluGrad, z, Type(), before);
  if (sum)
    sum.replaceAllUsesWith(made.getOutput());
  gradient.replaceAllUsesWith(made.getResult());
}

/// The gradient of GELU is computed from the product alone, and in its type.
bool fuseGeluGrad(const Product &product) {
  if (product.accumulator)
    return false;
  SmallVector<Operation *> readers = readersOf(product.result);
  for (Operation *reader : readers) {
    auto gelu = dyn_cast<train::GeluGradOp>(reader);
    Value gradient =
        gelu && gelu.getForm() == train::GeluForm::Tanh && withoutConversions(gelu.getGrad()) == product.result
            ? inType(gelu.getResult(), product.elementType())
            : nullptr;
    if (!gradient)
      continue;
    Value z = withoutConversions(gelu.getOperand());
    if (!z.getDefiningOp<exec::EpilogueProductOp>() && !z.getDefiningOp<train::DotGeneralOp>()) {
      gelu.emitRemark() << "GELU's gradient not fused into the product: no product writes the pre-activation";
      return false;
    }
    if (z.getType() != product.result.getType() || !product.hasAlignedColumns()) {
      gelu.emitRemark() << "GELU's gradient not fused into the product: the pre-activation is " << z.getType()
                        << ", the product " << product.result.getType() << " of " << product.columns() << " columns";
      return false;
    }
    if (readers.size() != 1 || (gradient != gelu.getResult() && !gelu->hasOneUse())) {
      gelu.emitRemark() << "GELU's gradient not fused into the product: the product has other readers";
      return false;
    }
    buildGeluGrad(product, z, gradient);
    return true;
  }
  return false;
}

void fuseBiasGrad(const Product &product) {
  for (bool isLhs : {true, false}) {
    Value terms = isLhs ? product.lhs : product.rhs;
    train::ReduceOp sum = columnSum(terms, product, isLhs ? product.lhsContract : product.rhsContract);
    if (!sum)
      continue;
    exec::EpilogueProductOp made =
        product.build(isLhs ? Epilogue::BiasGradA : Epilogue::BiasGradB, nullptr, product.vectorType(isLhs));
    replaceSum(sum, made);
    product.op->replaceAllUsesWith(ValueRange{made.getResult()});
    return;
  }
}

} // namespace tessera::epilogue
