//===- Axis.cpp - what is done along one dimension ------------------------===//

#include "frontends/common/Axis.h"

#include "frontends/common/HostTensor.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// Beyond this many slices a lookup is smaller.
constexpr size_t kMaxParts = 64;
/// The most pairs of parts of one concatenation with parts of the one that it is of.
constexpr size_t kMaxPairs = 64;

/// Every element along `axis` `count` times in a row.
Value repeatAlong(Build &b, Value x, int64_t axis, int64_t count) {
  if (count == 1)
    return x;
  SmallVector<int64_t> wide, dims, shape(shapeOf(x));
  for (int64_t dim = 0, rank = static_cast<int64_t>(shape.size()); dim < rank; ++dim) {
    dims.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(shape[dim]);
    if (dim == axis)
      wide.push_back(count);
  }
  shape[axis] *= count;
  return b.reshape(b.broadcast(x, wide, dims), shape);
}

/// Indices first, first + step, … , each `repeat` times in a row.
struct Progression {
  int64_t first, step, count, repeat;
};

/// All indices as one progression that ascends, if they are one.
std::optional<Progression> progressionOf(ArrayRef<int64_t> indices) {
  const int64_t size = static_cast<int64_t>(indices.size());
  int64_t repeat = 1;
  while (repeat < size && indices[repeat] == indices[0])
    ++repeat;
  if (size % repeat != 0)
    return std::nullopt;
  const int64_t step = repeat < size ? indices[repeat] - indices[0] : 1;
  if (step < 1)
    return std::nullopt;
  for (int64_t i = 0; i < size; ++i)
    if (indices[i] != indices[0] + i / repeat * step)
      return std::nullopt;
  return Progression{indices[0], step, size / repeat, repeat};
}

Value takeProgression(Build &b, Value x, int64_t axis, const Progression &p) {
  Value part = sliceAlong(b, x, axis, p.first, p.first + (p.count - 1) * p.step + 1, p.step);
  return repeatAlong(b, part, axis, p.repeat);
}
} // namespace

SmallVector<int64_t> withDimAt(int64_t rank, int64_t dim, int64_t place) {
  SmallVector<int64_t> order;
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim)
      order.push_back(other);
  order.insert(order.begin() + place, dim);
  return order;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> order) {
  SmallVector<int64_t> result(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    result[from] = static_cast<int64_t>(to);
  return result;
}

SmallVector<int64_t> permuted(ArrayRef<int64_t> shape, ArrayRef<int64_t> order) {
  return llvm::map_to_vector(order, [&](int64_t dim) { return shape[dim]; });
}

Value permute(Build &b, Value x, ArrayRef<int64_t> order) { return llvm::is_sorted(order) ? x : b.transpose(x, order); }

Value sliceAlong(Build &b, Value x, int64_t axis, int64_t from, int64_t to, int64_t step) {
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x)), strides(starts.size(), 1);
  starts[axis] = from;
  limits[axis] = to;
  strides[axis] = step;
  return b.slice(x, starts, limits, strides);
}

Value elementAlong(Build &b, Value x, int64_t axis, int64_t index) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape.erase(shape.begin() + axis);
  return b.reshape(sliceAlong(b, x, axis, index, index + 1), shape);
}

Value rollAlong(Build &b, Value x, int64_t axis, int64_t by) {
  const int64_t size = shapeOf(x)[axis];
  if (by == 0 || by == size)
    return x;
  return b.concat({sliceAlong(b, x, axis, size - by, size), sliceAlong(b, x, axis, 0, size - by)}, axis);
}

Value takeAlong(Build &b, Value x, int64_t axis, ArrayRef<int64_t> indices) {
  const int64_t size = static_cast<int64_t>(indices.size());
  if (size == 0)
    return sliceAlong(b, x, axis, 0, 0);
  if (auto all = progressionOf(indices))
    return takeProgression(b, x, axis, *all);
  // Runs of one index, or of indices that follow each other.
  SmallVector<Progression> runs;
  for (int64_t begin = 0, end = 0; begin < size; begin = end) {
    end = begin + 1;
    const int64_t step = end < size ? indices[end] - indices[begin] : 1;
    while ((step == 0 || step == 1) && end < size && indices[end] - indices[end - 1] == step)
      ++end;
    runs.push_back(step == 0 ? Progression{indices[begin], 1, 1, end - begin}
                             : Progression{indices[begin], 1, end - begin, 1});
  }
  // Parts of parts are one expression for each pair, when they are fused.
  auto before = x.getDefiningOp<train::ConcatOp>();
  const size_t pairs = runs.size() * (before ? before->getNumOperands() : 1);
  if (runs.size() <= kMaxParts && (!before || pairs <= kMaxPairs)) {
    SmallVector<Value> parts;
    for (const Progression &run : runs)
      parts.push_back(takeProgression(b, x, axis, run));
    return b.concat(parts, axis);
  }
  const SmallVector<int64_t> front = withDimAt(static_cast<int64_t>(shapeOf(x).size()), axis, 0);
  Value rows = b.constant(HostTensor::ofShape(b.builder.getContext(), indices).toAttr());
  return permute(b, b.gatherRows(permute(b, x, front), rows), inverse(front));
}

Value takeWindows(Build &b, Value x, int64_t axis, int64_t width, int64_t stride, int64_t count) {
  SmallVector<int64_t> places, shape(shapeOf(x));
  for (int64_t window = 0; window < count; ++window)
    for (int64_t i = 0; i < width; ++i)
      places.push_back(window * stride + i);
  shape[axis] = count;
  shape.insert(shape.begin() + axis + 1, width);
  return b.reshape(takeAlong(b, x, axis, places), shape);
}

Value roundedConstant(Build &b, Type element, ArrayRef<int64_t> shape, ArrayRef<double> values) {
  std::vector<double> rounded;
  rounded.reserve(values.size());
  for (double value : values)
    rounded.push_back(roundTo(element, value));
  return b.constant(HostTensor::ofFloats(RankedTensorType::get(shape, element), std::move(rounded)).toAttr());
}

Value multiplyAlong(Build &b, Value x, int64_t axis, ArrayRef<double> matrix) {
  const int64_t columns = shapeOf(x)[axis], rank = static_cast<int64_t>(shapeOf(x).size());
  const int64_t rows = static_cast<int64_t>(matrix.size()) / columns;
  Value weights = roundedConstant(b, tensorType(x).getElementType(), {rows, columns}, matrix);
  const SmallVector<int64_t> back = withDimAt(rank, axis, rank - 1);
  return permute(b, b.dot(permute(b, x, back), weights, {}, {}, {rank - 1}, {1}), inverse(back));
}

} // namespace tessera::frontend
