//===- TrainCanonicalize.cpp - canonicalisation of the train dialect ------===//
//
// Rewrites that need a new op. The discardable attributes of the rewritten op
// (such as `train.backward`) go to the ops that replace it.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Train.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

/// Replaces `op` by a new op, which inherits its discardable attributes.
static LogicalResult replaceWith(PatternRewriter &rewriter, Operation *op, Value value) {
  if (Operation *made = value.getDefiningOp())
    for (NamedAttribute attr : op->getDiscardableAttrs())
      made->setDiscardableAttr(attr.getName(), attr.getValue());
  rewriter.replaceOp(op, value);
  return success();
}

// --- add -----------------------------------------------------------------------

/// `add(x, scatter_add_rows(zeros, i, u))` is `scatter_add_rows(x, i, u)`: the gradient of a tied embedding needs no
/// second table.
static LogicalResult addIntoScatter(AddOp op, PatternRewriter &rewriter) {
  for (auto [scattered, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    auto scatter = scattered.getDefiningOp<ScatterAddRowsOp>();
    if (!scatter || !scatter->hasOneUse() || splatOf(scatter.getInit()) != 0.0)
      continue;
    return replaceWith(rewriter, op,
                       ScatterAddRowsOp::create(rewriter, scatter.getLoc(), op.getType(), other, scatter.getIndices(),
                                                scatter.getUpdates()));
  }
  return failure();
}

/// The operands of a tree of additions of which only the root is used elsewhere, from left to right; empty if they are
/// not all pads.
static SmallVector<PadOp> addedPads(AddOp root) {
  SmallVector<PadOp> pads;
  SmallVector<Value> open = {root.getRhs(), root.getLhs()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto pad = value.getDefiningOp<PadOp>()) {
      pads.push_back(pad);
      continue;
    }
    auto add = value.getDefiningOp<AddOp>();
    if (!add || !add->hasOneUse())
      return {};
    open.append({add.getRhs(), add.getLhs()});
  }
  return pads;
}

/// The only dimension that a pad with zeros extends, or -1.
static int64_t paddedDim(PadOp pad) {
  int64_t padded = -1;
  for (auto [dim, low, high, gap] : llvm::enumerate(pad.getLow(), pad.getHigh(), pad.getInterior())) {
    if (gap != 0)
      return -1;
    if (low == 0 && high == 0)
      continue;
    if (padded >= 0)
      return -1;
    padded = static_cast<int64_t>(dim);
  }
  return pad.getValue().isZero() ? padded : -1;
}

/// A sum of pads with zeros that do not overlap and together cover a dimension is a concatenation: the gradients of
/// slices that partition a value (query, key and value of one projection).
static LogicalResult padsToConcat(AddOp op, PatternRewriter &rewriter) {
  // Only the root of a tree, so that a part of it is not rewritten first.
  if (op->hasOneUse() && isa<AddOp>(*op->user_begin()))
    return failure();
  SmallVector<PadOp> pads = addedPads(op);
  if (pads.empty())
    return failure();
  int64_t dim = paddedDim(pads.front());
  if (dim < 0 || llvm::any_of(pads, [&](PadOp pad) { return paddedDim(pad) != dim; }))
    return failure();
  llvm::stable_sort(pads, [&](PadOp a, PadOp b) { return a.getLow()[dim] < b.getLow()[dim]; });
  int64_t covered = 0;
  SmallVector<Value> parts;
  for (PadOp pad : pads) {
    if (pad.getLow()[dim] != covered)
      return failure();
    covered += pad.getOperand().getType().getShape()[dim];
    parts.push_back(pad.getOperand());
  }
  if (covered != op.getType().getShape()[dim])
    return failure();
  return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).concat(parts, dim));
}

void AddOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(addIntoScatter);
  patterns.add(padsToConcat);
}

// --- pow -----------------------------------------------------------------------

void PowOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(+[](PowOp op, PatternRewriter &rewriter) -> LogicalResult {
    std::optional<double> exponent = splatOf(op.getRhs());
    if (exponent == 2.0)
      return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).mul(op.getLhs(), op.getLhs()));
    if (exponent == 0.5)
      return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).unary<SqrtOp>(op.getLhs()));
    if (exponent == -0.5)
      return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).unary<RsqrtOp>(op.getLhs()));
    return failure();
  });
}

// --- Shape ---------------------------------------------------------------------

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  // Nested concatenations along one dimension become one; empty operands disappear.
  patterns.add(+[](ConcatOp op, PatternRewriter &rewriter) -> LogicalResult {
    SmallVector<Value> parts;
    bool changed = false;
    for (Value part : op.getOperands()) {
      auto inner = part.getDefiningOp<ConcatOp>();
      if (inner && inner.getDim() == op.getDim() && inner->hasOneUse()) {
        llvm::append_range(parts, inner.getOperands());
        changed = true;
      } else if (shapeOf(part)[op.getDim()] == 0 && op.getOperands().size() > 1) {
        changed = true;
      } else {
        parts.push_back(part);
      }
    }
    if (!changed || parts.empty())
      return failure();
    return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).concat(parts, op.getDim()));
  });
}

void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  // A reduction over dimensions of size 1 is a reshape. In the forward pass it stays: how a loss depends on its batch
  // must be seen of a batch of one sample, too.
  patterns.add(+[](ReduceOp op, PatternRewriter &rewriter) -> LogicalResult {
    ArrayRef<int64_t> shape = shapeOf(op.getOperand());
    if (!op->hasAttr(kBackward) || op.getDimensions().empty() ||
        llvm::any_of(op.getDimensions(), [&](int64_t dim) { return shape[dim] != 1; }))
      return failure();
    return replaceWith(rewriter, op, Build(rewriter, op.getLoc()).reshape(op.getOperand(), op.getType().getShape()));
  });
}
