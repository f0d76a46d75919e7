//===- VjpNeural.cpp - gradient rules of neural and quantisation ops ------===//
//
// The rules are composed of elementwise ops and reductions on what the forward
// op saved (probabilities, mean, rstd, lse), so that fusion makes one kernel of
// each and no second tensor of the operand's size is stored.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/CrossEntropyGrad.h"
#include "passes/differentiate/vjp/Vjp.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

LogicalResult softmaxRule(SoftmaxOp op, Vjp &vjp) {
  Value y = op.getResult(), weighted = vjp.mul(vjp.cotangent(), y);
  int64_t dim = op.getDim();
  Value total = vjp.broadcastReduced(vjp.sum(weighted, {dim}), shapeOf(y), {dim});
  vjp.set(0, vjp.sub(weighted, vjp.mul(y, total)));
  return success();
}

/// With n = (x - mean)·rstd and d = the cotangent of n: dx = rstd·(d - mean(d) - n·mean(d·n)), without mean(d) for
/// mode rms. A cotangent of the saved `mean` adds its mean, one of `rstd` adds -rstd²·n/size times itself.
LogicalResult layerNormRule(LayerNormOp op, Vjp &vjp) {
  Value x = op.getOperand();
  Type narrow = tensorType(x).getElementType(), wide = tensorType(op.getRstd()).getElementType();
  ArrayRef<int64_t> shape = shapeOf(x);
  int64_t last = shape.size() - 1, size = shape[last];
  bool isLayer = op.getMode() == NormMode::Layer;
  auto perRow = [&](Value row) { return vjp.broadcastReduced(row, shape, {last}); };

  Value centred = vjp.convert(x, wide);
  if (isLayer)
    centred = vjp.sub(centred, perRow(op.getMean()));
  Value normalised = vjp.mul(centred, perRow(op.getRstd()));
  unsigned scaleIndex = 1, biasIndex = op.getScale() ? 2 : 1;
  Value dx;
  auto accumulate = [&](Value term) { dx = dx ? vjp.add(dx, term) : term; };

  if (vjp.cotangent(0)) {
    Value g = vjp.convert(vjp.cotangent(0), wide);
    SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, last));
    if (op.getScale() && vjp.wants(scaleIndex))
      vjp.set(scaleIndex,
              vjp.convert(vjp.sum(vjp.mul(g, normalised), rows), tensorType(op.getScale()).getElementType()));
    if (op.getBias() && vjp.wants(biasIndex))
      vjp.set(biasIndex, vjp.convert(vjp.sum(g, rows), tensorType(op.getBias()).getElementType()));
    if (vjp.wants(0)) {
      Value d = g;
      if (op.getScale())
        d = vjp.mul(g, vjp.broadcast(vjp.convert(op.getScale(), wide), shape, {last}));
      Value meanOfProduct = vjp.scale(vjp.sum(vjp.mul(d, normalised), {last}), 1.0 / size);
      Value inner = d;
      if (isLayer)
        inner = vjp.sub(inner, perRow(vjp.scale(vjp.sum(d, {last}), 1.0 / size)));
      inner = vjp.sub(inner, vjp.mul(normalised, perRow(meanOfProduct)));
      accumulate(vjp.mul(inner, perRow(op.getRstd())));
    }
  }
  if (vjp.wants(0) && vjp.cotangent(1) && isLayer)
    accumulate(perRow(vjp.scale(vjp.cotangent(1), 1.0 / size)));
  if (vjp.wants(0) && vjp.cotangent(2)) {
    Value factor = vjp.mul(vjp.scale(vjp.cotangent(2), -1.0 / size), vjp.mul(op.getRstd(), op.getRstd()));
    accumulate(vjp.mul(normalised, perRow(factor)));
  }
  if (dx)
    vjp.set(0, vjp.convert(dx, narrow));
  return success();
}

LogicalResult crossEntropyRule(CrossEntropyOp op, Vjp &vjp) {
  const CrossEntropyRows rows{op.getLogits(), op.getLse(), op.getTargets(), op.getIgnoreIndex(),
                              op.getLabelSmoothing().convertToDouble()};
  Value probability = crossEntropyProbability(vjp, rows);
  Value dx;
  if (Value g = vjp.cotangent(0))
    dx = crossEntropyGrad(vjp, rows, probability, g);
  if (Value g = vjp.cotangent(1)) {
    Value term = vjp.mul(probability, vjp.broadcastReduced(g, shapeOf(op.getLogits()), {1}));
    dx = dx ? vjp.add(dx, term) : term;
  }
  vjp.set(0, vjp.convert(dx, tensorType(op.getLogits()).getElementType()));
  return success();
}

/// The logits are computed again with the gradient, or, where join-loss can, once for both.
LogicalResult linearCrossEntropyRule(LinearCrossEntropyOp op, Vjp &vjp) {
  if (vjp.cotangent(1))
    return op.emitError("the log-sum-exp of a linear cross-entropy cannot be differentiated");
  auto grad = LinearCrossEntropyGradOp::create(vjp.builder, vjp.loc, op.getLoss().getType(), op.getLse().getType(),
                                               op.getHidden().getType(), op.getWeight().getType(), op.getHidden(),
                                               op.getWeight(), op.getTargets(), vjp.cotangent(0), op.getWeightDimAttr(),
                                               op.getIgnoreIndexAttr(), op.getLabelSmoothingAttr());
  if (vjp.wants(0))
    vjp.set(0, grad.getHiddenGrad());
  if (vjp.wants(1))
    vjp.set(1, grad.getWeightGrad());
  return success();
}

/// Gradient of an additive mask, composed of products: scores = scale·QKᵀ + mask, P = softmax(scores) (lse has
/// lost the sum where scores are large) and dmask = P·(g·Vᵀ - rowsum(g·result)), summed over the dimensions along which
/// the mask is repeated.
Value maskGradient(AttentionOp op, Vjp &vjp) {
  Value q = op.getQuery(), k = op.getKey(), v = op.getValue(), g = vjp.cotangent(0), mask = op.getMask();
  ArrayRef<int64_t> qShape = shapeOf(q), kShape = shapeOf(k);
  int64_t batch = qShape[0], heads = qShape[1], queries = qShape[2], groups = kShape[1], keys = kShape[2];
  int64_t perGroup = heads / groups;
  auto grouped = [&](Value x) { return vjp.reshape(x, {batch, groups, perGroup, queries, shapeOf(x)[3]}); };
  auto timesKeys = [&](Value rows, Value columns) {
    Value product = vjp.dot(grouped(rows), columns, {0, 1}, {0, 1}, {4}, {3});
    return vjp.reshape(product, {batch, heads, queries, keys});
  };
  SmallVector<int64_t> full = {batch, heads, queries, keys};
  auto perRow = [&](Value row) { return vjp.broadcastReduced(row, full, {3}); };
  Value scores = vjp.add(vjp.scale(timesKeys(q, k), op.getScale().convertToDouble()), vjp.broadcastTo(mask, full));
  const double hidden = -std::numeric_limits<double>::infinity();
  if (op.getCausal()) {
    RankedTensorType index = tensorType(scores).clone(vjp.builder.getI32Type());
    Value lastKey = vjp.add(vjp.iota(index, 2), vjp.splat(index, static_cast<double>(keys - queries)));
    scores = vjp.select(vjp.compare(CompareDirection::Le, vjp.iota(index, 3), lastKey), scores,
                        vjp.splatLike(scores, hidden));
    if (op.getWindow() && *op.getWindow() < static_cast<uint64_t>(keys)) {
      Value before = vjp.sub(lastKey, vjp.splat(index, static_cast<double>(*op.getWindow())));
      scores = vjp.select(vjp.compare(CompareDirection::Gt, vjp.iota(index, 3), before), scores,
                          vjp.splatLike(scores, hidden));
    }
  }
  if (op.getBegin()) {
    RankedTensorType index = tensorType(scores).clone(vjp.builder.getI64Type());
    Value key = vjp.iota(index, 3);
    for (auto [bound, direction] :
         {std::pair(op.getBegin(), CompareDirection::Ge), std::pair(op.getEnd(), CompareDirection::Lt)}) {
      const ArrayRef<int64_t> of = shapeOf(bound);
      Value perPair = vjp.broadcastTo(vjp.reshape(bound, {of[0], 1, of[1], 1}), full);
      scores = vjp.select(vjp.compare(direction, key, perPair), scores, vjp.splatLike(scores, hidden));
    }
  }
  Value probability = SoftmaxOp::create(vjp.builder, vjp.loc, scores.getType(), scores, /*dim=*/3);
  Value seesNothing = vjp.compare(CompareDirection::Eq, op.getLse(), vjp.splatLike(op.getLse(), hidden));
  probability = vjp.select(perRow(seesNothing), vjp.splatLike(probability, 0.0), probability);
  Value delta = vjp.sum(vjp.mul(g, op.getResult()), {3});
  Value dScores = vjp.mul(probability, vjp.sub(timesKeys(g, v), perRow(delta)));
  SmallVector<int64_t> repeated;
  for (int64_t dim = 0; dim < 4; ++dim)
    if (shapeOf(mask)[dim] == 1 && full[dim] != 1)
      repeated.push_back(dim);
  if (!repeated.empty())
    dScores = vjp.sum(dScores, repeated);
  return vjp.reshape(dScores, shapeOf(mask));
}

LogicalResult attentionRule(AttentionOp op, Vjp &vjp) {
  if (vjp.cotangent(1))
    return op.emitError("the log-sum-exp of an attention cannot be differentiated");
  if (vjp.wants(0) || vjp.wants(1) || vjp.wants(2)) {
    auto grad = AttentionGradOp::create(vjp.builder, vjp.loc, op.getQuery().getType(), op.getKey().getType(),
                                        op.getValue().getType(), op.getQuery(), op.getKey(), op.getValue(),
                                        op.getMask(), op.getBegin(), op.getEnd(), op.getResult(), op.getLse(),
                                        vjp.cotangent(0), op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
                                        op.getDensityAttr(), op.getSplitAttr(), /*partial=*/UnitAttr());
    for (unsigned operand : {0, 1, 2})
      if (vjp.wants(operand))
        vjp.set(operand, grad->getResult(operand));
  }
  if (op.getMask() && vjp.wants(3))
    vjp.set(3, maskGradient(op, vjp));
  return success();
}

/// A scale at every element.
Value likeOperand(Vjp &vjp, Value scale, Value g) {
  return vjp.repeatBlocks(vjp.convert(scale, tensorType(g).getElementType()), shapeOf(g));
}

/// Straight-through: rounding and saturation count as the identity, and scales as constants. The cotangent of the 8-bit
/// value stays in the wide type.
LogicalResult quantizeRule(QuantizeOp op, Vjp &vjp) {
  Value g = vjp.convert(vjp.cotangent(), tensorType(op.getOperand()).getElementType());
  vjp.set(0, vjp.mul(g, likeOperand(vjp, op.getScale(), g)));
  return success();
}

LogicalResult dequantizeRule(DequantizeOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  vjp.set(0, vjp.mul(g, likeOperand(vjp, op.getInverseScale(), g)));
  return success();
}

} // namespace

void attachNeural(MLIRContext *context) {
  attachVjp<SoftmaxOp, softmaxRule>(context);
  attachVjp<LayerNormOp, layerNormRule>(context);
  attachVjp<CrossEntropyOp, crossEntropyRule>(context);
  attachVjp<LinearCrossEntropyOp, linearCrossEntropyRule>(context);
  attachVjp<AttentionOp, attentionRule>(context);
  attachVjp<QuantizeOp, quantizeRule, operandIs<1>>(context);
  attachVjp<DequantizeOp, dequantizeRule, operandIs<1>>(context);
}

} // namespace tessera::vjp
