//===- VjpContract.cpp - gradient rules of products and convolutions ------===//

#include "passes/differentiate/vjp/Vjp.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

/// One operand of a dot_general and how its dimensions are used.
struct Side {
  Value value;
  ArrayRef<int64_t> batch, contract;
  SmallVector<int64_t> free;

  Side(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract)
      : value(value), batch(batch), contract(contract) {
    for (int64_t dim = 0, rank = tensorType(value).getRank(); dim < rank; ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
        free.push_back(dim);
  }
};

/// Position of each dimension of `mine` in the tensor [batch…, first…, second…].
SmallVector<int64_t> permutationTo(int64_t rank, ArrayRef<int64_t> order) {
  SmallVector<int64_t> permutation(rank);
  for (auto [position, dim] : llvm::enumerate(order))
    permutation[dim] = position;
  return permutation;
}

/// Gradient with respect to `mine`: the cotangent contracted with `other` over `other`'s free dimensions. Of the two
/// orders of the operands the one is taken whose result needs no transpose, if there is one; weights' gradients are
/// then plain products whatever the layout of the weight. What the forward product is computed in, this one is, too.
Value productGradient(Vjp &vjp, const Side &mine, const Side &other, bool mineIsLhs, DotGeneralOp forward) {
  Value g = vjp.convert(vjp.cotangent(), tensorType(other.value).getElementType());
  int64_t numBatch = mine.batch.size(), rank = tensorType(mine.value).getRank();
  SmallVector<int64_t> cotangentBatch = llvm::to_vector(llvm::seq<int64_t>(0, numBatch));
  int64_t lhsFree = mineIsLhs ? mine.free.size() : other.free.size();
  int64_t otherBegin = mineIsLhs ? numBatch + lhsFree : numBatch;
  SmallVector<int64_t> cotangentContract =
      llvm::to_vector(llvm::seq<int64_t>(otherBegin, otherBegin + other.free.size()));

  // The contracted dimensions come out in the order in which `other` holds them.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [inOther, inMine] : llvm::zip_equal(other.contract, mine.contract))
    pairs.emplace_back(inOther, inMine);
  llvm::sort(pairs);
  SmallVector<int64_t> contracted;
  for (auto [inOther, inMine] : pairs)
    contracted.push_back(inMine);

  SmallVector<int64_t> cotangentFirst(mine.batch), otherFirst(mine.batch);
  llvm::append_range(cotangentFirst, mine.free);
  llvm::append_range(cotangentFirst, contracted);
  llvm::append_range(otherFirst, contracted);
  llvm::append_range(otherFirst, mine.free);
  SmallVector<int64_t> toCotangentFirst = permutationTo(rank, cotangentFirst);
  SmallVector<int64_t> toOtherFirst = permutationTo(rank, otherFirst);

  const TypeAttr computeType = forward.getComputeTypeAttr();
  const ScalingAttr scaling = forward.getScalingAttr();
  const ProductOperand otherKind = !scaling    ? ProductOperand::Gradient
                                   : mineIsLhs ? scaling.getRhs()
                                               : scaling.getLhs();
  auto scalingOf = [&](ProductOperand lhs, ProductOperand rhs) {
    return scaling ? ScalingAttr::get(scaling.getContext(), scaling.getRecipe(), lhs, rhs) : scaling;
  };
  if (!llvm::is_sorted(toCotangentFirst) && (llvm::is_sorted(toOtherFirst) || !mineIsLhs)) {
    Value product = vjp.dot(other.value, g, other.batch, cotangentBatch, other.free, cotangentContract, computeType,
                            scalingOf(otherKind, ProductOperand::Gradient));
    return llvm::is_sorted(toOtherFirst) ? product : vjp.transpose(product, toOtherFirst);
  }
  Value product = vjp.dot(g, other.value, cotangentBatch, other.batch, cotangentContract, other.free, computeType,
                          scalingOf(ProductOperand::Gradient, otherKind));
  return llvm::is_sorted(toCotangentFirst) ? product : vjp.transpose(product, toCotangentFirst);
}

LogicalResult dotGeneralRule(DotGeneralOp op, Vjp &vjp) {
  Side lhs(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  Side rhs(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
  auto gradient = [&](const Side &mine, const Side &other, bool mineIsLhs) {
    Value product = productGradient(vjp, mine, other, mineIsLhs, op);
    return vjp.convert(product, tensorType(mine.value).getElementType());
  };
  if (vjp.wants(0))
    vjp.set(0, gradient(lhs, rhs, true));
  if (vjp.wants(1))
    vjp.set(1, gradient(rhs, lhs, false));
  return success();
}

LogicalResult conv2dRule(Conv2dOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  if (vjp.wants(0))
    vjp.set(0, Conv2dInputGradOp::create(vjp.builder, vjp.loc, op.getInput().getType(), g, op.getFilter(),
                                         op.getStrides(), op.getPadding(), op.getDilations(), op.getGroups()));
  if (vjp.wants(1))
    vjp.set(1, Conv2dFilterGradOp::create(vjp.builder, vjp.loc, op.getFilter().getType(), op.getInput(), g,
                                          op.getStrides(), op.getPadding(), op.getDilations(), op.getGroups()));
  return success();
}

/// As the forward op of a transposed convolution. It is linear in both operands.
LogicalResult conv2dInputGradRule(Conv2dInputGradOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  if (vjp.wants(0))
    vjp.set(0, Conv2dOp::create(vjp.builder, vjp.loc, op.getOutputGrad().getType(), g, op.getFilter(), op.getStrides(),
                                op.getPadding(), op.getDilations(), op.getGroups()));
  if (vjp.wants(1))
    vjp.set(1, Conv2dFilterGradOp::create(vjp.builder, vjp.loc, op.getFilter().getType(), g, op.getOutputGrad(),
                                          op.getStrides(), op.getPadding(), op.getDilations(), op.getGroups()));
  return success();
}

} // namespace

void attachContract(MLIRContext *context) {
  attachVjp<DotGeneralOp, dotGeneralRule>(context);
  attachVjp<Conv2dOp, conv2dRule>(context);
  attachVjp<Conv2dInputGradOp, conv2dInputGradRule>(context);
}

} // namespace tessera::vjp
