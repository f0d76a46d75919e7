//===- OpsScatter.cpp - writing elements by index -------------------------===//

#include "frontends/common/Coordinates.h"
#include "frontends/common/Scatter.h"
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
  if (at->known && canPlaceKnown(data, at->batch) && (*kind == ScatterKind::Replace || !frontend::repeats(*at->known)))
    return n.set(at->restoreData(b, placeKnown(b, *kind, data, at->batch, *at->known, updates)));
  Value indices = at->indices;
  if (at->known) {
    SmallVector<int64_t> shape(shapeOf(data).take_front(at->batch));
    shape.push_back(static_cast<int64_t>(at->known->size()));
    indices = b.broadcastTo(b.constant(HostTensor::ofShape(b.builder.getContext(), *at->known).toAttr()), shape);
  }
  if (!canPlace(*kind, data, indices))
    return frontend::tooManyIndices(n, *kind);
  return n.set(at->restoreData(b, place(b, *kind, data, indices, updates)));
}

LogicalResult opScatterElements(Node &n) {
  auto kind = kindOf(n);
  if (failed(kind))
    return failure();
  if (n.shape(1) != n.shape(2))
    return n.fail("indices and updates differ in their shapes");
  auto made = frontend::scattered(n, n.attr("axis", 0), *kind, n.input(0), n.input(2));
  return failed(made) ? failure() : n.set(*made);
}

const OpRow kScatterOps[] = {
    {"", "ScatterElements", kAny, kNew, 3, opScatterElements},
    {"", "ScatterND", kAny, kNew, 3, opScatterND},
};
} // namespace

ArrayRef<OpRow> scatterOps() { return kScatterOps; }

} // namespace tessera::onnx_import
