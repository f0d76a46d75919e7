//===- Axis.cpp - what is done along one dimension ------------------------===//

#include "frontends/onnx/Axis.h"

#include "frontends/onnx/HostTensor.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Beyond this many slices a lookup is smaller.
constexpr size_t kMaxParts = 64;

/// Dimension `axis` first or last, the others in their order; and back.
SmallVector<int64_t> permutationWith(int64_t axis, int64_t rank, bool last) {
  SmallVector<int64_t> permutation;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != axis)
      permutation.push_back(dim);
  permutation.insert(last ? permutation.end() : permutation.begin(), axis);
  return permutation;
}

SmallVector<int64_t> inverseOf(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    inverse[from] = static_cast<int64_t>(to);
  return inverse;
}

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
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x)), strides(starts.size(), 1);
  starts[axis] = p.first;
  limits[axis] = p.first + (p.count - 1) * p.step + 1;
  strides[axis] = p.step;
  return repeatAlong(b, b.slice(x, starts, limits, strides), axis, p.repeat);
}
} // namespace

Value sliceAlong(Build &b, Value x, int64_t axis, int64_t from, int64_t to) {
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x));
  starts[axis] = from;
  limits[axis] = to;
  return b.slice(x, starts, limits);
}

Value elementAlong(Build &b, Value x, int64_t axis, int64_t index) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape.erase(shape.begin() + axis);
  return b.reshape(sliceAlong(b, x, axis, index, index + 1), shape);
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
  if (runs.size() <= kMaxParts) {
    SmallVector<Value> parts;
    for (const Progression &run : runs)
      parts.push_back(takeProgression(b, x, axis, run));
    return b.concat(parts, axis);
  }
  SmallVector<int64_t> front = permutationWith(axis, static_cast<int64_t>(shapeOf(x).size()), /*last=*/false);
  Value rows = b.constant(HostTensor::ofShape(b.builder.getContext(), indices).toAttr());
  return b.transpose(b.gatherRows(b.transpose(x, front), rows), inverseOf(front));
}

Value multiplyAlong(Build &b, Value x, int64_t axis, ArrayRef<double> matrix) {
  const int64_t columns = shapeOf(x)[axis], rank = static_cast<int64_t>(shapeOf(x).size());
  auto type = tensorType(x).clone({static_cast<int64_t>(matrix.size()) / columns, columns});
  std::vector<double> values;
  for (double value : matrix)
    values.push_back(roundTo(type.getElementType(), value));
  Value weights = b.constant(HostTensor::ofFloats(type, std::move(values)).toAttr());
  SmallVector<int64_t> back = permutationWith(axis, rank, /*last=*/true);
  Value last = axis == rank - 1 ? x : b.transpose(x, back);
  Value product = b.dot(last, weights, {}, {}, {rank - 1}, {1});
  return axis == rank - 1 ? product : b.transpose(product, inverseOf(back));
}

} // namespace tessera::onnx_import
