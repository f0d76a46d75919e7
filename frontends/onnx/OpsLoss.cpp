//===- OpsLoss.cpp - losses that are part of a model ----------------------===//

#include "frontends/common/Loss.h"
#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Scores of rank >= 2, integer targets of the scores' shape without dimension 1, class weights if given.
LogicalResult check(Node &n) {
  if (n.rank(0) < 2 || !n.isFloat(0) || n.isFloat(1) || n.element(1).isInteger(1))
    return n.fail("expected floating-point scores [N, C, ...] and integer targets");
  SmallVector<int64_t> expected(n.shape(0));
  expected.erase(expected.begin() + 1);
  if (n.shape(1) != ArrayRef<int64_t>(expected))
    return n.fail("targets have shape " + shapeText(n.shape(1)) + ", expected " + shapeText(expected));
  if (n.type(0).getNumElements() == 0)
    return n.fail("scores are empty");
  if (n.has(2) && (n.rank(2) != 1 || n.shape(2)[0] != n.shape(0)[1] || n.element(2) != n.element(0)))
    return n.fail("weights have shape " + shapeText(n.shape(2)) + ", expected [" + Twine(n.shape(0)[1]) + "]");
  return success();
}

/// Applies class weights and the reduction to one loss per row (already 0 where the target is ignored).
LogicalResult finish(Node &n, Value rows, Value targets, IntegerAttr ignored) {
  Build &b = n.b;
  const std::string reduction = n.attrString("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return n.fail("reduction is '" + reduction + "', expected 'mean', 'sum' or 'none'");
  Value weights;
  if (n.has(2)) {
    weights = targetWeights(b, n.input(2), targets, ignored);
    rows = b.mul(rows, weights);
  }
  if (reduction == "none")
    return n.set(b.reshape(rows, n.shape(1)));
  return n.set(reduceRows(b, rows, weights, targets, ignored, reduction == "sum" ? Reduction::Sum : Reduction::Mean));
}

IntegerAttr ignoredIndex(Node &n) {
  if (!n.attribute("ignore_index"))
    return {};
  return n.b.builder.getI64IntegerAttr(n.attr("ignore_index", 0));
}

LogicalResult opSoftmaxCrossEntropyLoss(Node &n) {
  if (failed(check(n)))
    return failure();
  Build &b = n.b;
  Value logits = classRows(b, n.input(0));
  Value targets = b.reshape(n.input(1), {shapeOf(logits)[0]});
  auto perRow = RankedTensorType::get({shapeOf(logits)[0]}, accumulationType(n.element(0)));
  IntegerAttr ignored = ignoredIndex(n);
  auto loss = CrossEntropyOp::create(b.builder, b.loc, perRow, perRow, logits, targets, ignored, llvm::APFloat(0.0));
  if (n.wants(1)) {
    // Log-probabilities in the layout of the scores: the logits less their log-sum-exp.
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(0)));
    dims.erase(dims.begin() + 1);
    Value lse = b.reshape(b.convert(loss.getLse(), n.element(0)), n.shape(1));
    if (failed(n.set(b.sub(n.input(0), b.broadcast(lse, n.shape(0), dims)), 1)))
      return failure();
  }
  return finish(n, b.convert(loss.getLoss(), n.element(0)), targets, ignored);
}

LogicalResult opNegativeLogLikelihoodLoss(Node &n) {
  if (failed(check(n)))
    return failure();
  Build &b = n.b;
  Value scores = classRows(b, n.input(0));
  Value targets = b.reshape(n.input(1), {shapeOf(scores)[0]});
  IntegerAttr ignored = ignoredIndex(n);
  return finish(n, pickedLoss(b, scores, targets, ignored), targets, ignored);
}

const OpRow kLossOps[] = {
    {"", "NegativeLogLikelihoodLoss", 12, kMaxOpset, 2, opNegativeLogLikelihoodLoss},
    {"", "SoftmaxCrossEntropyLoss", 12, kMaxOpset, 2, opSoftmaxCrossEntropyLoss},
};
} // namespace

ArrayRef<OpRow> lossOps() { return kLossOps; }

} // namespace tessera::onnx_import
