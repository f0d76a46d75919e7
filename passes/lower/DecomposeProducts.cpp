//===- DecomposeProducts.cpp - library calls as libraries take them -------===//

#include "passes/lower/DecomposeProducts.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/lower/LibraryLayouts.h"

using namespace mlir;

namespace tessera {

using train::shapeOf;
using train::tensorType;

namespace {

/// Replaces `op`; what was made since `before` belongs to the pass that the op belonged to.
LogicalResult replace(Operation *op, Operation *before, ValueRange results, PatternRewriter &rewriter) {
  if (train::isMarkedBackward(op))
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op;
         made = made->getNextNode())
      rewriter.modifyOpInPlace(made, [&] { train::markBackward(made); });
  rewriter.replaceOp(op, results);
  return success();
}

/// The dimensions of a product's operand that are neither mapped over nor summed.
SmallVector<int64_t> freeDims(Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, rank = tensorType(operand).getRank(); dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

/// sum over k of lhs[…, k] · rhs[…, k], where no library computes the product.
struct ProductAsSum : OpRewritePattern<train::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(train::DotGeneralOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorType(op.getResult());
    const bool isEmpty = type.getNumElements() == 0 || tensorType(op.getLhs()).getNumElements() == 0;
    Type element = tensorType(op.getLhs()).getElementType();
    if (!isEmpty && (element != type.getElementType() || !(element.isF64() || isa<IntegerType>(element))))
      return failure();
    Operation *before = op->getPrevNode();
    train::Build b(rewriter, op.getLoc());
    if (isEmpty)
      return replace(op, before, b.zeros(type), rewriter);
    SmallVector<int64_t> lhsFree = freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
    SmallVector<int64_t> rhsFree = freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
    const int64_t numBatch = op.getLhsBatch().size(), numLhs = lhsFree.size(), rank = type.getRank();
    SmallVector<int64_t> shape(type.getShape()), summed;
    for (int64_t dim : op.getLhsContract()) {
      summed.push_back(shape.size());
      shape.push_back(shapeOf(op.getLhs())[dim]);
    }
    // Both operands as [batch…, own…, summed…], repeated along what only the other one has.
    auto widen = [&](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> own, ArrayRef<int64_t> contract,
                     int64_t ownFrom) {
      SmallVector<int64_t> order(batch), to = llvm::to_vector(llvm::seq<int64_t>(0, numBatch));
      llvm::append_range(order, own);
      llvm::append_range(order, contract);
      for (size_t i = 0; i < own.size(); ++i)
        to.push_back(ownFrom + static_cast<int64_t>(i));
      for (size_t i = 0; i < contract.size(); ++i)
        to.push_back(rank + static_cast<int64_t>(i));
      return b.broadcast(b.transpose(operand, order), shape, to);
    };
    Value lhs = widen(op.getLhs(), op.getLhsBatch(), lhsFree, op.getLhsContract(), numBatch);
    Value rhs = widen(op.getRhs(), op.getRhsBatch(), rhsFree, op.getRhsContract(), numBatch + numLhs);
    Value product = b.mul(lhs, rhs);
    return replace(op, before, summed.empty() ? product : b.sum(product, summed), rewriter);
  }
};

/// Computes a library call on narrow floats in f32 and rounds its results.
struct WidenLibraryCall : RewritePattern {
  WidenLibraryCall(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  /// Convolutions and masks of attention are f32 in libraries; what else there is may be bf16.
  static bool isNarrow(Operation *op, Value value) {
    const bool isConvolution = isa<train::Conv2dOp, train::Conv2dInputGradOp, train::Conv2dFilterGradOp>(op);
    Value mask;
    if (auto attention = dyn_cast<train::AttentionOp>(op))
      mask = attention.getMask();
    else if (auto grad = dyn_cast<train::AttentionGradOp>(op))
      mask = grad.getMask();
    Type element = tensorType(value).getElementType();
    return element.isF16() || (element.isBF16() && (isConvolution || value == mask));
  }

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<train::DotGeneralOp, train::Conv2dOp, train::Conv2dInputGradOp, train::Conv2dFilterGradOp,
             train::AttentionOp, train::AttentionGradOp>(op))
      return failure();
    auto narrow = [&](Value value) { return isNarrow(op, value); };
    if (llvm::none_of(op->getOperands(), narrow) && llvm::none_of(op->getResults(), narrow))
      return failure();
    Operation *before = op->getPrevNode();
    train::Build b(rewriter, op->getLoc());
    Type f32 = rewriter.getF32Type();
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(narrow(operand) ? b.convert(operand, f32) : operand);
    for (Value result : op->getResults())
      state.types.push_back(narrow(result) ? Type(tensorType(result).clone(f32)) : result.getType());
    state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Operation *wide = rewriter.create(state);
    SmallVector<Value> results;
    for (auto [result, like] : llvm::zip_equal(wide->getResults(), op->getResults()))
      results.push_back(b.convert(result, tensorType(like).getElementType()));
    return replace(op, before, results, rewriter);
  }
};

/// Brings an operand whose dimensions do not merge into rows and columns into an order in which they do. What it is a
/// view of, or the kernel that computes it, decides whether anything is moved.
struct MergeProductDims : OpRewritePattern<train::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(train::DotGeneralOp op, PatternRewriter &rewriter) const override {
    const lower::Contraction product = *lower::Contraction::of(op);
    auto merges = [&](lower::GemmSide side, Value operand) {
      return lower::gemmLayout(product, side, lower::Layout::contiguous(shapeOf(operand))).has_value();
    };
    const bool lhsMerges = merges(lower::GemmSide::Lhs, op.getLhs()),
               rhsMerges = merges(lower::GemmSide::Rhs, op.getRhs());
    if (lhsMerges && rhsMerges)
      return failure();
    Operation *before = op->getPrevNode();
    train::Build b(rewriter, op.getLoc());
    Value lhs = op.getLhs(), rhs = op.getRhs();
    SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch()), lhsContract(op.getLhsContract()),
        rhsContract(op.getRhsContract());
    // [batch…, summed…, own…]; the own dimensions keep their order, which is that of the result.
    auto reorder = [&](Value &operand, SmallVector<int64_t> &batch, SmallVector<int64_t> &contract) {
      SmallVector<int64_t> order(batch), own = freeDims(operand, batch, contract);
      llvm::append_range(order, contract);
      llvm::append_range(order, own);
      operand = b.transpose(operand, order);
      for (auto [i, dim] : llvm::enumerate(batch))
        dim = static_cast<int64_t>(i);
      for (auto [i, dim] : llvm::enumerate(contract))
        dim = static_cast<int64_t>(batch.size() + i);
    };
    if (!lhsMerges)
      reorder(lhs, lhsBatch, lhsContract);
    if (!rhsMerges)
      reorder(rhs, rhsBatch, rhsContract);
    auto merged = train::DotGeneralOp::create(rewriter, op.getLoc(), op.getType(), lhs, rhs, lhsBatch, rhsBatch,
                                              lhsContract, rhsContract, op.getComputeTypeAttr(), op.getScalingAttr());
    merged->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return replace(op, before, merged.getResult(), rewriter);
  }
};

} // namespace

void addProductDecomposition(RewritePatternSet &patterns) {
  patterns.add<ProductAsSum, WidenLibraryCall, MergeProductDims>(patterns.getContext());
}

} // namespace tessera
