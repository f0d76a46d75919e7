//===- DecomposeEmpty.cpp - what becomes of tensors without elements ------===//

#include "passes/lower/DecomposeEmpty.h"

#include "compiler/dialect/train/Builders.h"

#include <limits>

using namespace mlir;

namespace tessera {

namespace {

bool isEmpty(Value value) { return train::tensorType(value).getNumElements() == 0; }

struct ReduceNothing : OpRewritePattern<train::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ReduceOp op, PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getOperand()) || isEmpty(op.getResult()) || !isa<FloatType>(op.getType().getElementType()))
      return failure();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double value = op.getKind() == train::ReduceKind::Max   ? -kInfinity
                         : op.getKind() == train::ReduceKind::Min ? kInfinity
                         : op.getKind() == train::ReduceKind::Mul ? 1.0
                                                                  : 0.0;
    rewriter.replaceOp(op, train::Build(rewriter, op.getLoc()).splat(op.getType(), value));
    return success();
  }
};

struct PadNothing : OpRewritePattern<train::PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::PadOp op, PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getOperand()) || isEmpty(op.getResult()))
      return failure();
    const double value = op.getValue().convertToDouble();
    rewriter.replaceOp(op, train::Build(rewriter, op.getLoc()).splat(op.getType(), value));
    return success();
  }
};

struct ConcatNothing : OpRewritePattern<train::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ConcatOp op, PatternRewriter &rewriter) const override {
    if (llvm::none_of(op.getOperands(), isEmpty) || isEmpty(op.getResult()))
      return failure();
    SmallVector<Value> parts;
    llvm::copy_if(op.getOperands(), std::back_inserter(parts), [](Value part) { return !isEmpty(part); });
    rewriter.modifyOpInPlace(op, [&] { op.getOperandsMutable().assign(parts); });
    return success();
  }
};

struct ScatterNothing : OpRewritePattern<train::ScatterAddRowsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ScatterAddRowsOp op, PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getUpdates()) || isEmpty(op.getResult()))
      return failure();
    rewriter.replaceOp(op, op.getInit());
    return success();
  }
};

} // namespace

void addEmptyDecomposition(RewritePatternSet &patterns) {
  patterns.add<ReduceNothing, PadNothing, ConcatNothing, ScatterNothing>(patterns.getContext());
}

} // namespace tessera
