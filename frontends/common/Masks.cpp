//===- Masks.cpp - what masks that depend on data name ----------------------===//

#include "frontends/common/Masks.h"

#include "compiler/dialect/train/Running.h"
#include "frontends/common/Indexing.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

int64_t dimsOfMask(Value mask) {
  int64_t rank = tensorType(mask).getRank();
  auto wide = mask.getDefiningOp<BroadcastOp>();
  if (!wide)
    return rank;
  const ArrayRef<int64_t> dims = wide.getBroadcastDimensions(), shape = shapeOf(wide.getOperand());
  auto repeats = [&](int64_t dim) {
    const auto *found = llvm::find(dims, dim);
    return found == dims.end() || shape[found - dims.begin()] == 1;
  };
  while (rank > 1 && repeats(rank - 1))
    --rank;
  return rank;
}

/// Running sums along the last dimension, which are a sample's own in a mask [samples, positions], and what the rows
/// before it have.
Value placesByMask(Build &b, Value mask) {
  const SmallVector<int64_t> shape(shapeOf(mask));
  const int64_t inner = shape.back(), outer = inner == 0 ? 0 : tensorType(mask).getNumElements() / inner;
  Value counts = b.reshape(b.convert(mask, b.builder.getI64Type()), {outer, inner});
  Value places = runningSums(b, counts, 1, {.exclusive = true});
  if (outer > 1) {
    Value before = runningSums(b, b.sum(counts, {1}), 0, {.exclusive = true});
    places = b.add(places, b.broadcast(before, {outer, inner}, {0}));
  }
  return b.reshape(b.mul(places, counts), shape);
}

Value placeByMask(Build &b, Value data, Value mask, Value source, bool mustFit) {
  const int64_t rank = tensorType(mask).getRank();
  if (tensorType(data).getNumElements() == 0)
    return data;
  Value places = placesByMask(b, mask);
  if (mustFit) { // 0 is the only place of a table of one row
    Value count = b.sumAll(b.convert(mask, b.builder.getI64Type()));
    Value missing = b.sub(b.splatLike(count, static_cast<double>(shapeOf(source)[0])), count);
    places = b.add(places, b.broadcast(inDimension(b, missing, 1), shapeOf(places), {}));
  }
  Value picked = b.gatherRows(source, places);
  return b.select(b.broadcast(mask, shapeOf(data), llvm::to_vector(llvm::seq<int64_t>(0, rank))), picked, data);
}

} // namespace tessera::frontend
