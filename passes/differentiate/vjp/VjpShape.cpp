//===- VjpShape.cpp - gradient rules of shape and index ops ---------------===//

#include "passes/differentiate/vjp/Vjp.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

LogicalResult reshapeRule(ReshapeOp op, Vjp &vjp) {
  vjp.set(0, vjp.reshape(vjp.cotangent(), shapeOf(op.getOperand())));
  return success();
}

/// The product whose result is the transpose of a product without batch dimensions, by exchanging its operands; null if
/// the permutation does not exchange them.
Value exchangeOperands(Vjp &vjp, Value product, ArrayRef<int64_t> permutation) {
  auto dot = product.getDefiningOp<DotGeneralOp>();
  if (!dot || !dot.getLhsBatch().empty())
    return Value();
  int64_t rank = permutation.size();
  int64_t lhsFree = tensorType(dot.getLhs()).getRank() - static_cast<int64_t>(dot.getLhsContract().size());
  for (auto [to, from] : llvm::enumerate(permutation))
    if (from != (static_cast<int64_t>(to) + lhsFree) % rank)
      return Value();
  ScalingAttr scaling = dot.getScalingAttr();
  if (scaling)
    scaling = ScalingAttr::get(scaling.getContext(), scaling.getRecipe(), scaling.getRhs(), scaling.getLhs());
  return vjp.dot(dot.getRhs(), dot.getLhs(), {}, {}, dot.getRhsContract(), dot.getLhsContract(),
                 dot.getComputeTypeAttr(), scaling);
}

/// The gradient of a transposed weight is a product; it is built in the weight's own layout.
LogicalResult transposeRule(TransposeOp op, Vjp &vjp) {
  SmallVector<int64_t> inverse(op.getPermutation().size());
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    inverse[from] = to;
  Value exchanged = exchangeOperands(vjp, vjp.cotangent(), inverse);
  vjp.set(0, exchanged ? exchanged : vjp.transpose(vjp.cotangent(), inverse));
  return success();
}

LogicalResult broadcastRule(BroadcastOp op, Vjp &vjp) {
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
  SmallVector<int64_t> repeated;
  for (int64_t dim = 0, rank = to.size(); dim < rank; ++dim) {
    const auto *source = llvm::find(op.getBroadcastDimensions(), dim);
    bool isNew = source == op.getBroadcastDimensions().end();
    if (isNew || from[source - op.getBroadcastDimensions().begin()] != to[dim])
      repeated.push_back(dim);
  }
  Value g = vjp.cotangent();
  if (!repeated.empty())
    g = vjp.sum(g, repeated);
  vjp.set(0, vjp.reshape(g, from));
  return success();
}

LogicalResult sliceRule(SliceOp op, Vjp &vjp) {
  SmallVector<int64_t> high, interior;
  for (auto [size, taken, start, stride] :
       llvm::zip_equal(shapeOf(op.getOperand()), shapeOf(op.getResult()), op.getStarts(), op.getStrides())) {
    int64_t spread = taken > 0 ? (taken - 1) * stride + 1 : 0;
    interior.push_back(stride - 1);
    high.push_back(size - start - spread);
  }
  vjp.set(0, vjp.pad(vjp.cotangent(), op.getStarts(), high, interior));
  return success();
}

LogicalResult padRule(PadOp op, Vjp &vjp) {
  SmallVector<int64_t> limits, strides;
  for (auto [size, low, interior] : llvm::zip_equal(shapeOf(op.getOperand()), op.getLow(), op.getInterior())) {
    strides.push_back(interior + 1);
    limits.push_back(size > 0 ? low + (size - 1) * (interior + 1) + 1 : low);
  }
  vjp.set(0, vjp.slice(vjp.cotangent(), op.getLow(), limits, strides));
  return success();
}

LogicalResult concatRule(ConcatOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  int64_t dim = op.getDim(), offset = 0;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    int64_t size = shapeOf(operand)[dim];
    if (vjp.wants(index)) {
      SmallVector<int64_t> starts(tensorType(g).getRank(), 0), limits(shapeOf(g));
      starts[dim] = offset;
      limits[dim] = offset + size;
      vjp.set(index, vjp.slice(g, starts, limits));
    }
    offset += size;
  }
  return success();
}

LogicalResult dynamicSliceRule(DynamicSliceOp op, Vjp &vjp) {
  Value zeros = vjp.splatLike(op.getOperand(), 0.0);
  vjp.set(0,
          DynamicUpdateSliceOp::create(vjp.builder, vjp.loc, zeros.getType(), zeros, vjp.cotangent(), op.getStarts()));
  return success();
}

LogicalResult dynamicUpdateSliceRule(DynamicUpdateSliceOp op, Vjp &vjp) {
  Value g = vjp.cotangent();
  if (vjp.wants(0)) {
    Value zeros = vjp.splatLike(op.getUpdate(), 0.0);
    vjp.set(0, DynamicUpdateSliceOp::create(vjp.builder, vjp.loc, g.getType(), g, zeros, op.getStarts()));
  }
  if (vjp.wants(1))
    vjp.set(1, DynamicSliceOp::create(vjp.builder, vjp.loc, op.getUpdate().getType(), g, op.getStarts(),
                                      shapeOf(op.getUpdate())));
  return success();
}

LogicalResult gatherRowsRule(GatherRowsOp op, Vjp &vjp) {
  Value zeros = vjp.splatLike(op.getTable(), 0.0), updates = vjp.cotangent(), indices = op.getIndices();
  if (auto row = op.getPaddingIndex()) {
    Value keep = vjp.compare(CompareDirection::Ne, indices, vjp.splatLike(indices, static_cast<double>(*row)));
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(indices).getRank()));
    updates = vjp.select(vjp.broadcast(keep, shapeOf(updates), dims), updates, vjp.splatLike(updates, 0.0));
  }
  vjp.set(0, ScatterAddRowsOp::create(vjp.builder, vjp.loc, zeros.getType(), zeros, indices, updates));
  return success();
}

LogicalResult scatterAddRowsRule(ScatterAddRowsOp op, Vjp &vjp) {
  if (vjp.wants(0))
    vjp.set(0, vjp.cotangent());
  if (vjp.wants(2))
    vjp.set(2, vjp.gatherRows(vjp.cotangent(), op.getIndices()));
  return success();
}

/// No gradient flows to the operand; the activity analysis stops here.
LogicalResult stopGradientRule(StopGradientOp, Vjp &) { return success(); }

} // namespace

void attachShape(MLIRContext *context) {
  attachVjp<ReshapeOp, reshapeRule>(context);
  attachVjp<TransposeOp, transposeRule>(context);
  attachVjp<BroadcastOp, broadcastRule>(context);
  attachVjp<SliceOp, sliceRule>(context);
  attachVjp<PadOp, padRule>(context);
  attachVjp<ConcatOp, concatRule>(context);
  attachVjp<DynamicSliceOp, dynamicSliceRule>(context);
  attachVjp<DynamicUpdateSliceOp, dynamicUpdateSliceRule>(context);
  attachVjp<GatherRowsOp, gatherRowsRule>(context);
  attachVjp<ScatterAddRowsOp, scatterAddRowsRule>(context);
  attachVjp<StopGradientOp, stopGradientRule, operandIs<0>>(context);
}

} // namespace tessera::vjp
