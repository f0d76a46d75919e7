//===- OpsScatter.cpp - writing elements by index -------------------------===//

#include "frontends/common/Coordinates.h"
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
    return n.fail("updates have shape " + shapeText(n.shape(2)) + ", expected " + shapeText(at->itemShape()));
  if (n.type(0).getNumElements() == 0 || n.type(2).getNumElements() == 0)
    return n.set(n.input(0));
  Build &b = n.b;
  Value data = at->arrangeData(b, n.input(0)), updates = at->arrangeItems(b, n.input(2));
  if (at->known && canPlaceKnown(data, at->batch) && (*kind == ScatterKind::Replace || !repeats(*at->known)))
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
  Value rest = placeCorner(b, sliceAlong(b, data, dim, 0, size), part, dim + 1);
  return placeKnown(b, ScatterKind::Replace, data, dim, llvm::to_vector(llvm::seq<int64_t>(0, size)), rest);
}

/// data[i… with i_axis replaced by indices[i…]] = updates[i…].
LogicalResult opScatterElements(Node &n) {
  auto kind = kindOf(n);
  if (failed(kind))
    return failure();
  auto elements = ElementIndices::of(n, n.attr("axis", 0));
  if (failed(elements))
    return failure();
  if (n.shape(1) != n.shape(2))
    return n.fail("indices and updates differ in their shapes");
  if (n.type(0).getNumElements() == 0 || n.type(2).getNumElements() == 0)
    return n.set(n.input(0));
  auto places = elements->places(n);
  if (failed(places))
    return failure();
  Build &b = n.b;
  if (const HostTensor *known = n.constant(1); known && n.rank(0) == 1 && canPlaceKnown(n.input(0), 0)) {
    const int64_t size = elements->size;
    KnownIndices each = llvm::map_to_vector(known->ints, [&](int64_t i) { return i < 0 ? i + size : i; });
    if (*kind == ScatterKind::Replace || !repeats(each))
      return n.set(placeKnown(b, *kind, n.input(0), 0, each, n.input(2)));
  }
  Value data = elements->arrange(b, elements->corner(b, n.input(0))), updates = elements->arrange(b, n.input(2));
  if (!canPlace(*kind, data, *places))
    return tooLarge(n, *kind);
  Value placed = elements->restore(b, place(b, *kind, data, *places, updates));
  return n.set(elements->isPart ? placeCorner(b, n.input(0), placed) : placed);
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "ScatterElements", kAny, kNew, 3, opScatterElements},
    {"", "ScatterND", kAny, kNew, 3, opScatterND},
};
} // namespace

ArrayRef<OpRow> scatterOps() { return kRows; }

} // namespace tessera::onnx_import
