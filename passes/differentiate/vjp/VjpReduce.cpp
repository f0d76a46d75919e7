//===- VjpReduce.cpp - gradient rules of reductions -----------------------===//

#include "compiler/dialect/train/Ties.h"
#include "passes/differentiate/vjp/Vjp.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::vjp {
namespace {

/// Which elements are the first extreme ones of their reductions: those at the least of the positions that are extreme.
Value firstOf(Value isExtreme, ArrayRef<int64_t> dims, Vjp &vjp) {
  ArrayRef<int64_t> shape = shapeOf(isExtreme);
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shape[dim];
  Builder &builder = vjp.builder;
  auto type = RankedTensorType::get(shape, count > INT32_MAX ? builder.getI64Type() : builder.getI32Type());
  Value position;
  for (int64_t dim : dims) {
    Value index = vjp.iota(type, dim);
    position = position ? vjp.add(vjp.scale(position, static_cast<double>(shape[dim])), index) : index;
  }
  Value candidates = vjp.select(isExtreme, position, vjp.splatLike(position, static_cast<double>(count)));
  Value first = vjp.broadcastReduced(vjp.reduce(ReduceKind::Min, candidates, dims), shape, dims);
  return vjp.compare(CompareDirection::Eq, position, first);
}

/// Each extreme element receives an equal share, or the first the whole.
Value extremeGradient(ReduceOp op, Vjp &vjp) {
  Value x = op.getOperand();
  ArrayRef<int64_t> shape = shapeOf(x), dims = op.getDimensions();
  Value isExtreme = vjp.compare(CompareDirection::Eq, x, vjp.broadcastReduced(op.getResult(), shape, dims));
  Value zero = vjp.splatLike(x, 0.0);
  if (op->hasAttr(kFirst))
    return vjp.select(firstOf(isExtreme, dims, vjp), vjp.broadcastReduced(vjp.cotangent(), shape, dims), zero);
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
