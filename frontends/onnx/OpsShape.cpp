//===- OpsShape.cpp - ops that give elements other places -----------------===//

#include "frontends/onnx/OpTable.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// reshape(transpose(reshape(x))) that leaves all but the last two dimensions alone is one transpose of the last two:
/// the dynamo exporter writes Kᵀ of attention that way.
Value batchedTranspose(Node &n, ArrayRef<int64_t> shape) {
  auto transpose = n.input(0).getDefiningOp<TransposeOp>();
  if (!transpose || transpose.getPermutation() != ArrayRef<int64_t>{0, 2, 1} || shape.size() < 3)
    return {};
  auto reshape = transpose.getOperand().getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  ArrayRef<int64_t> source = shapeOf(reshape.getOperand());
  const size_t rank = source.size();
  if (rank != shape.size() || source.drop_back(2) != shape.drop_back(2) || source[rank - 2] != shape[rank - 1] ||
      source[rank - 1] != shape[rank - 2] || shapeOf(reshape)[1] != source[rank - 2])
    return {};
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rank)));
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return n.b.transpose(reshape.getOperand(), permutation);
}

LogicalResult opReshape(Node &n) {
  auto shape = n.ints(1);
  if (!shape)
    return n.fail("the shape must be known at import");
  const int64_t count = n.type(0).getNumElements();
  int64_t known = 1, open = -1;
  for (auto [i, size] : llvm::enumerate(*shape)) {
    if (size == 0 && n.attr("allowzero", 0) == 0) {
      if (static_cast<int64_t>(i) >= n.rank(0))
        return n.fail("size 0 copies dimension " + Twine(i) + ", which the input does not have");
      size = n.shape(0)[i];
    }
    if (size == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (size < 0 || llvm::MulOverflow(known, size, known))
      return n.fail("shape " + shapeText(*shape) + " is not valid");
  }
  if (open >= 0) {
    if (known == 0 || count % known != 0)
      return n.fail("cannot reshape " + shapeText(n.shape(0)) + " to " + shapeText(*shape));
    (*shape)[open] = count / known;
    known = count;
  }
  if (known != count || !countElements(*shape))
    return n.fail("cannot reshape " + shapeText(n.shape(0)) + " to " + shapeText(*shape));
  if (Value transposed = batchedTranspose(n, *shape))
    return n.set(transposed);
  return n.set(n.b.reshape(n.input(0), *shape));
}

LogicalResult opTranspose(Node &n) {
  const int64_t rank = n.rank(0);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto given = n.attrInts("perm"))
    permutation = *given;
  auto sorted = axesOf(permutation, rank);
  if (!sorted || static_cast<int64_t>(sorted->size()) != rank)
    return n.fail("perm " + shapeText(permutation) + " is not a permutation of " + Twine(rank) + " dimensions");
  for (int64_t &dim : permutation) // exporters write dimensions as the model counts them, from the end too
    dim = *axisOf(dim, rank);
  return n.set(n.b.transpose(n.input(0), permutation));
}

/// Axes from an attribute (before opset 13) or an input. False if they are not known.
bool axesAttrOrInput(Node &n, std::optional<SmallVector<int64_t>> &axes) {
  axes = n.attrInts("axes");
  if (axes || !n.has(1))
    return true;
  axes = n.ints(1);
  return axes.has_value();
}

LogicalResult opSqueeze(Node &n) {
  std::optional<SmallVector<int64_t>> axes;
  if (!axesAttrOrInput(n, axes))
    return n.fail("the axes must be known at import");
  if (axes)
    axes = axesOf(*axes, n.rank(0));
  else
    axes = llvm::to_vector(
        llvm::make_filter_range(llvm::seq<int64_t>(0, n.rank(0)), [&](int64_t dim) { return n.shape(0)[dim] == 1; }));
  if (!axes)
    return n.fail("axes are out of range or occur twice");
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(n.shape(0))) {
    if (!llvm::is_contained(*axes, static_cast<int64_t>(dim)))
      shape.push_back(size);
    else if (size != 1)
      return n.fail("dimension " + Twine(dim) + " has size " + Twine(size) + ", expected 1");
  }
  return n.set(n.b.reshape(n.input(0), shape));
}

LogicalResult opUnsqueeze(Node &n) {
  std::optional<SmallVector<int64_t>> axes;
  if (!axesAttrOrInput(n, axes) || !axes)
    return n.fail("the axes must be known at import");
  const int64_t rank = n.rank(0) + static_cast<int64_t>(axes->size());
  axes = axesOf(*axes, rank);
  if (!axes)
    return n.fail("axes are out of range or occur twice");
  SmallVector<int64_t> shape;
  for (int64_t dim = 0, next = 0; dim < rank; ++dim)
    shape.push_back(llvm::is_contained(*axes, dim) ? 1 : n.shape(0)[next++]);
  return n.set(n.b.reshape(n.input(0), shape));
}

LogicalResult opFlatten(Node &n) {
  const int64_t rank = n.rank(0), axis = n.attr("axis", 1);
  if (axis < -rank || axis > rank)
    return n.fail("axis " + Twine(axis) + " is out of range");
  const int64_t split = axis < 0 ? axis + rank : axis;
  int64_t rows = 1;
  for (int64_t size : n.shape(0).take_front(split))
    rows *= size;
  int64_t columns = 1;
  for (int64_t size : n.shape(0).drop_front(split))
    columns *= size;
  return n.set(n.b.reshape(n.input(0), {rows, columns}));
}

LogicalResult opExpand(Node &n) {
  auto shape = n.ints(1);
  if (!shape)
    return n.fail("the shape must be known at import");
  auto common = broadcastShape(n.shape(0), *shape);
  if (!common)
    return n.fail("cannot expand " + shapeText(n.shape(0)) + " to " + shapeText(*shape));
  return n.set(n.inputTo(0, *common));
}

LogicalResult opTile(Node &n) {
  auto repeats = n.ints(1);
  const int64_t rank = n.rank(0);
  if (!repeats || static_cast<int64_t>(repeats->size()) != rank)
    return n.fail("the repeats must be known at import, one per dimension");
  // Each dimension d becomes [repeat, d], then they merge.
  SmallVector<int64_t> wide, dims, merged;
  for (int64_t dim = 0; dim < rank; ++dim) {
    const int64_t repeat = (*repeats)[dim];
    if (repeat < 0 || repeat > kMaxElements)
      return n.fail("repeats " + shapeText(*repeats) + " are negative or too large");
    dims.push_back(static_cast<int64_t>(wide.size()) + 1);
    wide.append({repeat, n.shape(0)[dim]});
    if (!countElements(wide))
      return n.fail("result is too large");
    merged.push_back(repeat * n.shape(0)[dim]);
  }
  if (n.shape(0) == ArrayRef<int64_t>(merged))
    return n.set(n.inputs[0]);
  return n.set(n.b.reshape(n.b.broadcast(n.input(0), wide, dims), merged));
}

LogicalResult opTrilu(Node &n) {
  const int64_t rank = n.rank(0);
  auto k = n.has(1) ? n.ints(1) : SmallVector<int64_t>{0};
  if (rank < 2 || !k || k->size() != 1)
    return n.fail("expected an input of rank 2 or more and k known at import");
  const int64_t rows = n.shape(0)[rank - 2], columns = n.shape(0)[rank - 1];
  auto index = RankedTensorType::get({rows, columns}, n.b.builder.getI64Type());
  // Keep (i, j) where j - i >= k (upper) or <= k (lower); k beyond the table is the same as at its edge.
  const auto shift = static_cast<double>(std::clamp(k->front(), -rows - 1, columns + 1));
  Value column = n.b.iota(index, 1), row = n.b.add(n.b.iota(index, 0), n.b.splat(index, shift));
  Value keep = n.b.compare(n.attr("upper", 1) ? CompareDirection::Ge : CompareDirection::Le, column, row);
  Value x = n.input(0);
  return n.set(n.b.select(n.b.broadcastTo(keep, n.shape(0)), x, n.b.splatLike(x, 0.0)));
}

const OpRow kShapeOps[] = {
    {"", "Expand", kAny, kNew, 2, opExpand},   {"", "Flatten", kAny, kNew, 1, opFlatten},
    {"", "Reshape", kAny, kNew, 2, opReshape}, {"", "Squeeze", kAny, kNew, 1, opSqueeze},
    {"", "Tile", kAny, kNew, 2, opTile},       {"", "Transpose", kAny, kNew, 1, opTranspose},
    {"", "Trilu", 14, kNew, 1, opTrilu},       {"", "Unsqueeze", kAny, kNew, 1, opUnsqueeze},
};
} // namespace

ArrayRef<OpRow> shapeOps() { return kShapeOps; }

} // namespace tessera::onnx_import
