//===- OpsScatter.cpp - writing elements by index -------------------------===//

#include "frontends/onnx/Coordinates.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// The reduction of a node whose data and updates have one element type.
FailureOr<ScatterKind> kindOf(Node &n) {
  if (n.element(0) != n.element(2))
    return n.fail("data and updates differ in their element type");
  const std::string reduction = n.attrString("reduction", "none");
  if (reduction == "none")
    return ScatterKind::Replace;
  if (n.element(0).isInteger(1))
    return n.fail("booleans have no reduction '" + reduction + "'");
  if (reduction == "add")
    return ScatterKind::Add;
  if (reduction == "mul")
    return ScatterKind::Mul;
  if (reduction == "max")
    return ScatterKind::Max;
  if (reduction == "min")
    return ScatterKind::Min;
  return n.fail("reduction is '" + reduction + "', expected 'none', 'add', 'mul', 'max' or 'min'");
}

LogicalResult tooLarge(Node &n, ScatterKind kind) {
  return n.fail(kind == ScatterKind::Replace
                    ? "too many indices: of those that are equal the last one counts, so that all are compared"
                    : "too many indices are compared with too many elements");
}

bool repeats(KnownIndices indices) {
  llvm::sort(indices);
  return std::adjacent_find(indices.begin(), indices.end()) != indices.end();
}

LogicalResult opScatterND(Node &n) {
  auto kind = kindOf(n);
  if (failed(kind))
    return failure();
  auto at = Coordinates::of(n, 0, 1, 0);
  if (failed(at))
    return failure();
  if (n.shape(2) != ArrayRef<int64_t>(at->itemShape()))
    return n.fail("updates have shape " + Node::shapeText(n.shape(2)) + ", expected " +
                  Node::shapeText(at->itemShape()));
  if (n.type(0).getNumElements() == 0 || n.type(2).getNumElements() == 0)
    return n.set(n.input(0));
  Build &b = n.b;
  Value data = at->arrangeData(b, n.input(0)), updates = at->arrangeItems(b, n.input(2));
  if (at->known && (*kind == ScatterKind::Replace || !repeats(*at->known)))
    return n.set(at->restoreData(b, placeKnown(b, *kind, data, at->batch, *at->known, updates)));
  Value indices = at->indices;
  if (at->known) {
    SmallVector<int64_t> shape(shapeOf(data).take_front(at->batch));
    shape.push_back(static_cast<int64_t>(at->known->size()));
    indices = b.broadcastTo(b.constant(HostTensor::ofShape(b.builder.getContext(), *at->known).toAttr()), shape);
  }
  if (!canPlace(*kind, data, indices))
    return tooLarge(n, *kind);
  return n.set(at->restoreData(b, place(b, *kind, data, indices, updates)));
}

/// Writes `part` to the front corner of `data`.
Value placeCorner(Build &b, Value data, Value part, int64_t dim = 0) {
  if (dim == tensorType(data).getRank())
    return part;
  const int64_t size = shapeOf(part)[dim];
  SmallVector<int64_t> limits(shapeOf(data)), starts(limits.size(), 0);
  limits[dim] = size;
  Value rest = placeCorner(b, b.slice(data, starts, limits), part, dim + 1);
  return placeKnown(b, ScatterKind::Replace, data, dim, llvm::to_vector(llvm::seq<int64_t>(0, size)), rest);
}

/// data[i… with i_axis replaced by indices[i…]] = updates[i…].
LogicalResult opScatterElements(Node &n) {
  const int64_t rank = n.rank(0);
  auto kind = kindOf(n);
  if (failed(kind))
    return failure();
  auto axis = Node::axisOf(n.attr("axis", 0), rank);
  if (!axis || n.rank(1) != rank || n.shape(1) != n.shape(2) || n.isFloat(1) || n.element(1).isInteger(1))
    return n.fail("axis is out of range, or the indices are not integers of the shape of the updates");
  SmallVector<int64_t> order, starts(rank, 0), limits(n.shape(1));
  const int64_t size = limits[*axis] = n.shape(0)[*axis];
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (limits[dim] > n.shape(0)[dim])
      return n.fail("indices are larger than the data in dimension " + Twine(dim));
    if (dim != *axis)
      order.push_back(dim);
  }
  order.push_back(*axis);
  if (n.type(0).getNumElements() == 0 || n.type(2).getNumElements() == 0)
    return n.set(n.input(0));
  auto indices = checkedIndices(n, 1, size);
  if (failed(indices))
    return failure();
  Build &b = n.b;
  if (const HostTensor *known = n.constant(1); known && rank == 1) {
    KnownIndices each = llvm::map_to_vector(known->ints, [&](int64_t i) { return i < 0 ? i + size : i; });
    if (*kind == ScatterKind::Replace || !repeats(each))
      return n.set(placeKnown(b, *kind, n.input(0), 0, each, n.input(2)));
  }
  const bool isPart = n.shape(0) != ArrayRef<int64_t>(limits);
  Value data = isPart ? b.slice(n.input(0), starts, limits) : n.input(0);
  Value arranged = permute(b, data, order), places = permute(b, b.convert(*indices, b.builder.getI64Type()), order);
  if (!n.constant(1))
    places = inDimension(b, places, size);
  if (!canPlace(*kind, arranged, places))
    return tooLarge(n, *kind);
  Value placed = permute(b, place(b, *kind, arranged, places, permute(b, n.input(2), order)), inverse(order));
  return n.set(isPart ? placeCorner(b, n.input(0), placed) : placed);
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "ScatterElements", kAny, kNew, 3, opScatterElements},
    {"", "ScatterND", kAny, kNew, 3, opScatterND},
};
} // namespace

ArrayRef<OpRow> scatterOps() { return kRows; }

} // namespace tessera::onnx_import
