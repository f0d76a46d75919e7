//===- OpsParts.cpp - ops that join tensors and take parts of them --------===//

#include "frontends/common/Axis.h"
#include "frontends/onnx/OpTable.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
LogicalResult opConcat(Node &n) {
  auto axis = n.attribute("axis") ? axisOf(n.attr("axis", 0), n.rank(0)) : std::nullopt;
  if (!axis)
    return n.fail("axis is missing or out of range");
  SmallVector<Value> parts;
  for (int i = 0; i < n.inputCount(); ++i) {
    if (!n.has(i) || n.element(i) != n.element(0) || n.rank(i) != n.rank(0))
      return n.fail("inputs differ in element type or rank");
    for (int64_t dim = 0; dim < n.rank(0); ++dim)
      if (dim != *axis && n.shape(i)[dim] != n.shape(0)[dim])
        return n.fail("inputs " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(i)) +
                      " cannot be joined along dimension " + Twine(*axis));
    if (n.type(i).getNumElements() > 0 || n.inputCount() == 1)
      parts.push_back(n.input(i));
  }
  if (parts.empty())
    parts.push_back(n.input(0));
  return n.set(parts.size() == 1 ? parts.front() : n.b.concat(parts, *axis));
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
  auto axis = axisOf(n.attr("axis", 0), n.rank(0));
  if (!axis)
    return n.fail("axis is out of range");
  const int64_t total = n.shape(0)[*axis];
  auto sizes = partSizes(n, total, n.attr("num_outputs", n.proto.output_size()));
  if (!sizes || static_cast<int>(sizes->size()) != n.proto.output_size())
    return n.fail("the parts must be known at import, one per output, and add up to " + Twine(total));
  int64_t from = 0;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (n.wants(static_cast<int>(i)) &&
        failed(n.set(sliceAlong(n.b, n.input(0), *axis, from, from + size), static_cast<int>(i))))
      return failure();
    from += size;
  }
  return success();
}

LogicalResult opSplitToSequence(Node &n) {
  auto axis = axisOf(n.attr("axis", 0), n.rank(0));
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
    element.value = sliceAlong(n.b, n.input(0), *axis, from, from + size);
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
  auto at = axisOf(index->front(), static_cast<int64_t>(n.inputs[0].sequence->size()));
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
      !axesOf(axes, n.rank(0)))
    return n.fail("starts, ends, axes and steps do not fit each other or the input's rank");
  SmallVector<int64_t> from(n.rank(0), 0), to(n.shape(0)), by(n.rank(0), 1);
  Value x = n.input(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = *axisOf(axes[i], n.rank(0)), size = n.shape(0)[axis];
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

const OpRow kPartsOps[] = {
    {"", "Concat", kAny, kNew, 1, opConcat},
    {"", "SequenceAt", kAny, kNew, 2, opSequenceAt},
    {"", "Slice", kAny, kNew, 3, opSlice},
    {"", "Split", kAny, kNew, 1, opSplit},
    {"", "SplitToSequence", kAny, kNew, 1, opSplitToSequence},
};
} // namespace

ArrayRef<OpRow> partOps() { return kPartsOps; }

} // namespace tessera::onnx_import
