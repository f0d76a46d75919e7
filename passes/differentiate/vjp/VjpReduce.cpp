//===- VjpReduce.cpp - gradient rules of reductions -----------------------===//

#include "passes/differentiate/vjp/Vjp.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

/// Each extreme element receives an equal share.
Value extremeGradient(ReduceOp op, Vjp &vjp) {
  Value x = op.getOperand();
  ArrayRef<int64_t> shape = shapeOf(x), dims = op.getDimensions();
  Value isExtreme = vjp.compare(CompareDirection::Eq, x, vjp.broadcastReduced(op.getResult(), shape, dims));
  Value zero = vjp.splatLike(x, 0.0);
  Value ties = vjp.sum(vjp.select(isExtreme, vjp.splatLike(x, 1.0), zero), dims);
  Value share = vjp.broadcastReduced(vjp.div(vjp.cotangent(), ties), shape, dims);
  return vjp.select(isExtreme, share, zero);
}

/// The product of the *other* elements, also where some are zero: with one zero only that element has a gradient, with
/// more there is none.
Value productGradient(ReduceOp op, Vjp &vjp) {
  Value x = op.getOperand(), zero = vjp.splatLike(x, 0.0), one = vjp.splatLike(x, 1.0);
  ArrayRef<int64_t> shape = shapeOf(x), dims = op.getDimensions();
  Value isZero = vjp.compare(CompareDirection::Eq, x, zero);
  Value nonzero = vjp.select(isZero, one, x);
  Value product = vjp.mul(vjp.reduce(ReduceKind::Mul, nonzero, dims), vjp.cotangent());
  Value otherZeros = vjp.sub(vjp.broadcastReduced(vjp.sum(vjp.select(isZero, one, zero), dims), shape, dims),
                             vjp.select(isZero, one, zero));
  Value others = vjp.div(vjp.broadcastReduced(product, shape, dims), nonzero);
  return vjp.select(vjp.compare(CompareDirection::Eq, otherZeros, zero), others, zero);
}

LogicalResult reduceRule(ReduceOp op, Vjp &vjp) {
  switch (op.getKind()) {
  case ReduceKind::Sum:
    vjp.set(0, vjp.broadcastReduced(vjp.cotangent(), shapeOf(op.getOperand()), op.getDimensions()));
    break;
  case ReduceKind::Max:
  case ReduceKind::Min:
    vjp.set(0, extremeGradient(op, vjp));
    break;
  case ReduceKind::Mul:
    vjp.set(0, productGradient(op, vjp));
    break;
  }
  return success();
}

} // namespace

void attachReduce(MLIRContext *context) { attachVjp<ReduceOp, reduceRule>(context); }

} // namespace tessera::vjp
