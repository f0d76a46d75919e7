//===- Scatter.cpp - writing elements by index ------------------------------===//

#include "frontends/common/Scatter.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

LogicalResult tooManyIndices(Call &n, ScatterKind kind) {
  return n.fail(kind == ScatterKind::Replace
                    ? "too many indices: of those that are equal the last one counts, so that all are compared"
                    : "too many indices are compared with too many elements");
}

bool repeats(KnownIndices indices) {
  llvm::sort(indices);
  return std::adjacent_find(indices.begin(), indices.end()) != indices.end();
}

/// Writes `part` to the front corner of `data`.
static Value placeCorner(Build &b, Value data, Value part, int64_t dim = 0) {
  if (dim == tensorType(data).getRank())
    return part;
  const int64_t size = shapeOf(part)[dim];
  Value rest = placeCorner(b, sliceAlong(b, data, dim, 0, size), part, dim + 1);
  return placeKnown(b, ScatterKind::Replace, data, dim, llvm::to_vector(llvm::seq<int64_t>(0, size)), rest);
}

FailureOr<Value> scattered(Call &n, int64_t axis, ScatterKind kind, Value data, Value updates) {
  auto elements = ElementIndices::of(n, axis);
  if (failed(elements))
    return failure();
  if (n.type(0).getNumElements() == 0 || n.type(1).getNumElements() == 0)
    return data;
  auto places = elements->places(n);
  if (failed(places))
    return failure();
  Build &b = n.b;
  if (const HostTensor *known = n.constant(1); known && n.rank(0) == 1 && canPlaceKnown(data, 0)) {
    const int64_t size = elements->size;
    KnownIndices each = llvm::map_to_vector(known->ints, [&](int64_t i) { return i < 0 ? i + size : i; });
    if (kind == ScatterKind::Replace || !repeats(each))
      return placeKnown(b, kind, data, 0, each, updates);
  }
  Value corner = elements->arrange(b, elements->corner(b, data));
  updates = elements->arrange(b, updates);
  if (!canPlace(kind, corner, *places))
    return tooManyIndices(n, kind);
  Value placed = elements->restore(b, place(b, kind, corner, *places, updates));
  return elements->isPart ? placeCorner(b, data, placed) : placed;
}

} // namespace tessera::frontend
