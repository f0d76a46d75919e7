//===- OpsIndex.cpp - gathers and one-hot ---------------------------------===//

#include "frontends/common/Coordinates.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
LogicalResult opGather(Node &n) {
  const int64_t rank = n.rank(0);
  auto axis = axisOf(n.attr("axis", 0), rank);
  if (!axis)
    return n.fail("axis is out of range");
  const int64_t size = n.shape(0)[*axis];
  auto padded = n.step->padding.find(n.inputs[0].value);
  // Of a copy or view of the table, indexing is no lookup of an embedding.
  const bool isPadded = *axis == 0 && padded != n.step->padding.end() &&
                        cast<NameLoc>(cast<BlockArgument>(padded->first).getLoc()).getName() == n.proto.input(0);
  if (isPadded)
    padded->second.placed = true;
  if (auto first = consecutiveFrom(n.constant(1), size); first && !isPadded) {
    SmallVector<int64_t> starts(rank, 0), limits(n.shape(0)), shape(n.shape(0));
    starts[*axis] = *first;
    limits[*axis] = *first + n.constant(1)->size();
    Value x = n.b.slice(n.input(0), starts, limits);
    if (n.rank(1) == 0) {
      shape.erase(shape.begin() + *axis);
      x = n.b.reshape(x, shape);
    }
    return n.set(x);
  }
  auto indices = checkedIndices(n, 1, size);
  if (failed(indices))
    return failure();
  SmallVector<int64_t> result(n.shape(0).take_front(*axis));
  llvm::append_range(result, n.shape(1));
  llvm::append_range(result, n.shape(0).drop_front(*axis + 1));
  if (!countElements(result))
    return n.fail("result is too large");
  // Bring the dimension to the front, gather rows, and put the index dimensions where it was.
  SmallVector<int64_t> front = {*axis}, back;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *axis)
      front.push_back(dim);
  Value rows = n.b.gatherRows(*axis == 0 ? n.input(0) : n.b.transpose(n.input(0), front), *indices,
                              isPadded ? std::optional(padded->second.row) : std::nullopt);
  if (*axis == 0)
    return n.set(rows);
  const int64_t indexRank = n.rank(1);
  for (int64_t dim = 0; dim < *axis; ++dim)
    back.push_back(indexRank + dim);
  for (int64_t dim = 0; dim < indexRank; ++dim)
    back.push_back(dim);
  for (int64_t dim = *axis; dim < rank - 1; ++dim)
    back.push_back(indexRank + dim);
  return n.set(n.b.transpose(rows, back));
}

/// result[i…] = data[i… with i_axis replaced by indices[i…]].
LogicalResult opGatherElements(Node &n) {
  auto elements = ElementIndices::of(n, n.attr("axis", 0));
  if (failed(elements))
    return failure();
  auto places = elements->places(n);
  if (failed(places))
    return failure();
  Build &b = n.b;
  Value data = elements->arrange(b, elements->corner(b, n.input(0)));
  return n.set(elements->restore(b, pick(b, data, *places)));
}

/// result[i…, s…] = data[b…, indices[i…]…, s…].
LogicalResult opGatherND(Node &n) {
  auto at = Coordinates::of(n, 0, 1, n.attr("batch_dims", 0));
  if (failed(at))
    return failure();
  if (n.type(0).getNumElements() == 0 || !countElements(at->itemShape()))
    return n.fail("data is empty, or the result is too large");
  Value data = at->arrangeData(n.b, n.input(0));
  return n.set(
      at->restoreItems(n.b, at->known ? takeAlong(n.b, data, at->batch, *at->known) : pick(n.b, data, at->indices)));
}

LogicalResult opOneHot(Node &n) {
  std::optional<double> depth = n.scalar(1);
  const HostTensor *values = n.constant(2);
  if (!depth || n.rank(2) != 1 || n.shape(2)[0] != 2)
    return n.fail("depth must be known at import, and there must be two values");
  if (*depth < 1 || *depth > static_cast<double>(kMaxElements))
    return n.fail("depth is " + std::to_string(*depth) + ", expected at least 1");
  const int64_t size = static_cast<int64_t>(*depth), rank = n.rank(0) + 1;
  auto axis = axisOf(n.attr("axis", -1), rank);
  if (!axis || n.element(0).isInteger(1))
    return n.fail("axis is out of range, or the indices are boolean");
  SmallVector<int64_t> shape(n.shape(0));
  shape.insert(shape.begin() + *axis, size);
  if (!countElements(shape))
    return n.fail("result is too large");
  Build &b = n.b;
  // Negative indices count from the end.
  Value index = b.convert(n.input(0), b.builder.getI64Type());
  Value wrapped = b.select(b.compare(CompareDirection::Lt, index, b.splatLike(index, 0)),
                           b.add(index, b.splatLike(index, static_cast<double>(size))), index);
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *axis)
      dims.push_back(dim);
  Value wide = b.broadcast(wrapped, shape, dims);
  Value hit = b.compare(CompareDirection::Eq, wide, b.iota(tensorType(wide), *axis));
  auto filled = [&](int64_t which) -> Value {
    if (values)
      return b.constant(values->elementAttr(which, shape));
    return b.broadcastTo(b.reshape(b.slice(n.input(2), {which}, {which + 1}), {}), shape);
  };
  Value off = filled(0), on = filled(1);
  return n.set(b.select(hit, on, off));
}

const OpRow kIndexOps[] = {
    {"", "Gather", kAny, kNew, 2, opGather},
    {"", "GatherElements", kAny, kNew, 2, opGatherElements},
    {"", "GatherND", 12, kNew, 2, opGatherND},
    {"", "OneHot", kAny, kNew, 3, opOneHot},
};
} // namespace

ArrayRef<OpRow> indexOps() { return kIndexOps; }

} // namespace tessera::onnx_import
