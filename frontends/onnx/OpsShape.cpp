//===- OpsShape.cpp - ops that move elements without computing ------------===//

#include "frontends/onnx/OpTable.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

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
      return n.fail("shape " + Node::shapeText(*shape) + " is not valid");
  }
  if (open >= 0) {
    if (known == 0 || count % known != 0)
      return n.fail("cannot reshape " + Node::shapeText(n.shape(0)) + " to " + Node::shapeText(*shape));
    (*shape)[open] = count / known;
    known = count;
  }
  if (known != count || !countElements(*shape))
    return n.fail("cannot reshape " + Node::shapeText(n.shape(0)) + " to " + Node::shapeText(*shape));
  if (Value transposed = batchedTranspose(n, *shape))
    return n.set(transposed);
  return n.set(n.b.reshape(n.input(0), *shape));
}

LogicalResult opTranspose(Node &n) {
  const int64_t rank = n.rank(0);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto given = n.attrInts("perm"))
    permutation = *given;
  auto sorted = Node::axesOf(permutation, rank);
  if (!sorted || static_cast<int64_t>(sorted->size()) != rank ||
      llvm::any_of(permutation, [](int64_t d) { return d < 0; }))
    return n.fail("perm " + Node::shapeText(permutation) + " is not a permutation of " + Twine(rank) + " dimensions");
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
    axes = Node::axesOf(*axes, n.rank(0));
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
  axes = Node::axesOf(*axes, rank);
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

LogicalResult opConcat(Node &n) {
  auto axis = n.attribute("axis") ? Node::axisOf(n.attr("axis", 0), n.rank(0)) : std::nullopt;
  if (!axis)
    return n.fail("axis is missing or out of range");
  SmallVector<Value> parts;
  for (int i = 0; i < n.inputCount(); ++i) {
    if (!n.has(i) || n.element(i) != n.element(0) || n.rank(i) != n.rank(0))
      return n.fail("inputs differ in element type or rank");
    for (int64_t dim = 0; dim < n.rank(0); ++dim)
      if (dim != *axis && n.shape(i)[dim] != n.shape(0)[dim])
        return n.fail("inputs " + Node::shapeText(n.shape(0)) + " and " + Node::shapeText(n.shape(i)) +
                      " cannot be joined along dimension " + Twine(*axis));
    if (n.type(i).getNumElements() > 0 || n.inputCount() == 1)
      parts.push_back(n.input(i));
  }
  if (parts.empty())
    parts.push_back(n.input(0));
  return n.set(parts.size() == 1 ? parts.front() : n.b.concat(parts, *axis));
}

/// Elements [from, to) of one dimension.
Value part(Node &n, Value x, int64_t axis, int64_t from, int64_t to) {
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x));
  starts[axis] = from;
  limits[axis] = to;
  return n.b.slice(x, starts, limits);
}

/// The sizes of the parts of Split and SplitToSequence; nullopt if they are not known or do not add up.
std::optional<SmallVector<int64_t>> partSizes(Node &n, int64_t total, int64_t count) {
  std::optional<SmallVector<int64_t>> sizes = n.attrInts("split");
  if (!sizes && n.has(1)) {
    sizes = n.ints(1);
    if (!sizes)
      return std::nullopt;
  } else if (!sizes) {
    if (count < 1 || count > 4096)
      return std::nullopt;
    const int64_t size = llvm::divideCeil(total, count);
    sizes.emplace();
    for (int64_t i = 0; i < count; ++i)
      sizes->push_back(std::max<int64_t>(0, std::min(size, total - i * size)));
  }
  int64_t sum = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > total)
      return std::nullopt;
    sum += size;
  }
  return sum == total ? sizes : std::nullopt;
}

LogicalResult opSplit(Node &n) {
  auto axis = Node::axisOf(n.attr("axis", 0), n.rank(0));
  if (!axis)
    return n.fail("axis is out of range");
  const int64_t total = n.shape(0)[*axis];
  auto sizes = partSizes(n, total, n.attr("num_outputs", n.proto.output_size()));
  if (!sizes || static_cast<int>(sizes->size()) != n.proto.output_size())
    return n.fail("the parts must be known at import, one per output, and add up to " + Twine(total));
  int64_t from = 0;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (n.wants(static_cast<int>(i)) &&
        failed(n.set(part(n, n.input(0), *axis, from, from + size), static_cast<int>(i))))
      return failure();
    from += size;
  }
  return success();
}

LogicalResult opSplitToSequence(Node &n) {
  auto axis = Node::axisOf(n.attr("axis", 0), n.rank(0));
  if (!axis)
    return n.fail("axis is out of range");
  const int64_t total = n.shape(0)[*axis];
  std::optional<SmallVector<int64_t>> sizes;
  if (n.has(1) && n.rank(1) == 0) {
    auto size = n.ints(1);
    if (size && size->front() > 0 && llvm::divideCeil(total, size->front()) <= 4096) {
      sizes.emplace();
      for (int64_t from = 0; from < total; from += size->front())
        sizes->push_back(std::min(size->front(), total - from));
    }
  } else {
    sizes = partSizes(n, total, total);
  }
  if (!sizes)
    return n.fail("the parts must be known at import and add up to " + Twine(total));
  const bool keep = n.has(1) || n.attr("keepdims", 1) != 0;
  Entry entry;
  entry.sequence = std::make_shared<std::vector<Entry>>();
  int64_t from = 0;
  for (int64_t size : *sizes) {
    Entry element;
    element.value = part(n, n.input(0), *axis, from, from + size);
    if (!keep) {
      SmallVector<int64_t> shape(n.shape(0));
      shape.erase(shape.begin() + *axis);
      element.value = n.b.reshape(element.value, shape);
    }
    entry.sequence->push_back(element);
    from += size;
  }
  return n.set(std::move(entry));
}

LogicalResult opSequenceAt(Node &n) {
  auto index = n.ints(1);
  if (!n.inputs[0].sequence || !index || index->size() != 1)
    return n.fail("expected a sequence made by SplitToSequence and an index known at import");
  auto at = Node::axisOf(index->front(), static_cast<int64_t>(n.inputs[0].sequence->size()));
  if (!at)
    return n.fail("index " + Twine(index->front()) + " is outside the sequence");
  return n.set((*n.inputs[0].sequence)[*at]);
}

/// Reverses one dimension with constant row indices.
Value reversed(Node &n, Value x, int64_t axis) {
  const int64_t size = shapeOf(x)[axis], rank = static_cast<int64_t>(shapeOf(x).size());
  SmallVector<int64_t> indices;
  for (int64_t i = size - 1; i >= 0; --i)
    indices.push_back(i);
  SmallVector<int64_t> front = {axis}, back;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis)
      front.push_back(dim);
  for (int64_t dim = 0; dim < rank; ++dim)
    back.push_back(dim == axis ? 0 : dim < axis ? dim + 1 : dim);
  Value rows = n.b.constant(HostTensor::ofShape(n.b.builder.getContext(), indices).toAttr());
  return n.b.transpose(n.b.gatherRows(n.b.transpose(x, front), rows), back);
}

LogicalResult opSlice(Node &n) {
  auto starts = n.ints(1), ends = n.ints(2);
  if (!starts || !ends || (n.has(3) && !n.ints(3)) || (n.has(4) && !n.ints(4)))
    return n.fail("starts, ends, axes and steps must be known at import");
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(starts->size())));
  if (n.has(3))
    axes = *n.ints(3);
  SmallVector<int64_t> steps(starts->size(), 1);
  if (n.has(4))
    steps = *n.ints(4);
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size() ||
      !Node::axesOf(axes, n.rank(0)))
    return n.fail("starts, ends, axes and steps do not fit each other or the input's rank");
  SmallVector<int64_t> from(n.rank(0), 0), to(n.shape(0)), by(n.rank(0), 1);
  Value x = n.input(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = *Node::axisOf(axes[i], n.rank(0)), size = n.shape(0)[axis];
    int64_t start = (*starts)[i], end = (*ends)[i], step = steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return n.fail("step is " + Twine(step));
    start = start < 0 ? start + size : start;
    end = end < 0 ? (end < -size ? -1 : end + size) : end;
    if (step < 0) {
      if (size > kMaxConstantElements)
        return n.fail("dimension is too large to be reversed");
      // Count from the back of the reversed dimension instead.
      x = reversed(n, x, axis);
      start = size - 1 - std::clamp<int64_t>(start, -1, size - 1);
      end = size - 1 - std::clamp<int64_t>(end, -1, size - 1);
      step = -step;
    }
    from[axis] = std::clamp<int64_t>(start, 0, size);
    to[axis] = std::clamp<int64_t>(end, from[axis], size);
    by[axis] = std::min<int64_t>(step, std::max<int64_t>(size, 1));
  }
  return n.set(n.b.slice(x, from, to, by));
}

LogicalResult opExpand(Node &n) {
  auto shape = n.ints(1);
  if (!shape)
    return n.fail("the shape must be known at import");
  auto common = Node::broadcastShape(n.shape(0), *shape);
  if (!common)
    return n.fail("cannot expand " + Node::shapeText(n.shape(0)) + " to " + Node::shapeText(*shape));
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
      return n.fail("repeats " + Node::shapeText(*repeats) + " are negative or too large");
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

LogicalResult opPad(Node &n) {
  auto pads = n.ints(1);
  std::optional<double> value = n.has(2) ? n.scalar(2) : 0.0;
  const int64_t rank = n.rank(0);
  if (!pads || !value)
    return n.fail("pads and value must be known at import");
  if (n.attrString("mode", "constant") != "constant")
    return n.fail("mode is '" + n.attrString("mode", "") + "', expected 'constant'");
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (n.has(3)) {
    auto given = n.ints(3);
    if (!given || !Node::axesOf(*given, rank))
      return n.fail("axes must be known at import and in range");
    axes = *given;
  }
  if (pads->size() != 2 * axes.size())
    return n.fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * axes.size()));
  SmallVector<int64_t> low(rank, 0), high(rank, 0), from(rank, 0), to(n.shape(0)), shape(n.shape(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = *Node::axisOf(axes[i], rank), before = (*pads)[i], after = (*pads)[i + axes.size()];
    if (std::abs(before) > kMaxElements || std::abs(after) > kMaxElements)
      return n.fail("pads " + Node::shapeText(*pads) + " are too large");
    low[axis] = std::max<int64_t>(before, 0);
    high[axis] = std::max<int64_t>(after, 0);
    from[axis] = std::max<int64_t>(-before, 0);
    to[axis] -= std::max<int64_t>(-after, 0);
    if (from[axis] > to[axis])
      return n.fail("negative pads remove more than dimension " + Twine(axis) + " has");
    shape[axis] += before + after;
  }
  if (!countElements(shape))
    return n.fail("result of shape " + Node::shapeText(shape) + " is too large");
  Value x = n.input(0);
  if (ArrayRef<int64_t>(to) != n.shape(0) || llvm::any_of(from, [](int64_t f) { return f != 0; }))
    x = n.b.slice(x, from, to);
  return n.set(n.b.pad(x, low, high, {}, *value));
}

LogicalResult opTrilu(Node &n) {
  const int64_t rank = n.rank(0);
  std::optional<double> k = n.has(1) ? n.scalar(1) : 0.0;
  if (rank < 2 || !k)
    return n.fail("expected an input of rank 2 or more and k known at import");
  const int64_t rows = n.shape(0)[rank - 2], columns = n.shape(0)[rank - 1];
  auto index = RankedTensorType::get({rows, columns}, n.b.builder.getI64Type());
  // Keep (i, j) where j - i >= k (upper) or <= k (lower); k beyond the table is the same as at its edge.
  const double shift = std::clamp(*k, -static_cast<double>(rows) - 1, static_cast<double>(columns) + 1);
  Value column = n.b.iota(index, 1), row = n.b.add(n.b.iota(index, 0), n.b.splat(index, shift));
  Value keep = n.b.compare(n.attr("upper", 1) ? CompareDirection::Ge : CompareDirection::Le, column, row);
  Value x = n.input(0);
  return n.set(n.b.select(n.b.broadcastTo(keep, n.shape(0)), x, n.b.splatLike(x, 0.0)));
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "Concat", kAny, kNew, 1, opConcat},
    {"", "Expand", kAny, kNew, 2, opExpand},
    {"", "Flatten", kAny, kNew, 1, opFlatten},
    {"", "Pad", kAny, kNew, 2, opPad},
    {"", "Reshape", kAny, kNew, 2, opReshape},
    {"", "SequenceAt", kAny, kNew, 2, opSequenceAt},
    {"", "Slice", kAny, kNew, 3, opSlice},
    {"", "Split", kAny, kNew, 1, opSplit},
    {"", "SplitToSequence", kAny, kNew, 1, opSplitToSequence},
    {"", "Squeeze", kAny, kNew, 1, opSqueeze},
    {"", "Tile", kAny, kNew, 2, opTile},
    {"", "Transpose", kAny, kNew, 1, opTranspose},
    {"", "Trilu", 14, kNew, 1, opTrilu},
    {"", "Unsqueeze", kAny, kNew, 1, opUnsqueeze},
};
} // namespace

ArrayRef<OpRow> shapeOps() { return kRows; }

} // namespace tessera::onnx_import
