//===- Order.cpp - the largest, the smallest, and all in order --------------===//

#include "frontends/common/Order.h"

#include "frontends/common/Indexing.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

Value reversed(Build &b, Value x) {
  Type element = tensorType(x).getElementType();
  if (isa<FloatType>(element))
    return b.neg(x);
  // -1 - x, or the largest number less x, which exists for each integer.
  return b.sub(b.splatLike(x, element.isUnsignedInteger(8) ? 255 : -1), x);
}

Value argExtreme(Build &b, Value x, int64_t axis, bool isMin) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape.erase(shape.begin() + axis);
  return ArgmaxOp::create(b.builder, b.loc, RankedTensorType::get(shape, b.builder.getI64Type()),
                          isMin ? reversed(b, x) : x, axis);
}

Ordered inOrder(Build &b, Value x, int64_t axis, int64_t count, bool descending) {
  const int64_t rank = tensorType(x).getRank();
  const SmallVector<int64_t> order = withDimAt(rank, axis, rank - 1);
  auto type = RankedTensorType::get(shapeOf(x), b.builder.getI64Type());
  Value indices = SortIndicesOp::create(b.builder, b.loc, type, x, axis, descending);
  if (count < shapeOf(x)[axis])
    indices = sliceAlong(b, indices, axis, 0, count);
  Value values = pick(b, permute(b, x, order), permute(b, indices, order));
  return {permute(b, values, inverse(order)), indices};
}

Value scan(Build &b, Value x, int64_t axis, double neutral, llvm::function_ref<Value(Value, Value)> combine) {
  const int64_t size = shapeOf(x)[axis];
  for (int64_t step = 1; step < size; step *= 2) {
    SmallVector<int64_t> low(shapeOf(x).size(), 0), high(low);
    low[axis] = step;
    x = combine(b.pad(sliceAlong(b, x, axis, 0, size - step), low, high, {}, neutral), x);
  }
  return x;
}

} // namespace tessera::frontend
