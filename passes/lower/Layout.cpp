//===- Layout.cpp - strided layouts under reshape, transpose and slice ----===//
//
// See Layout.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Layout.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::lower;

Layout Layout::contiguous(ArrayRef<int64_t> shape) {
  Layout result;
  result.shape.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    result.strides[dim] = result.strides[dim + 1] * std::max<int64_t>(shape[dim + 1], 1);
  return result;
}

int64_t Layout::numElements() const { return llvm::product_of(shape); }

bool Layout::isContiguous() const {
  int64_t expected = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    if (shape[dim] != 1 && strides[dim] != expected)
      return false;
    expected *= shape[dim];
  }
  return true;
}

std::optional<Layout> Layout::reshape(ArrayRef<int64_t> newShape) const {
  Layout result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  if (numElements() == 0) {
    result.strides = contiguous(newShape).strides;
    return result;
  }
  // Group old dimensions into maximal runs that act as one; split each run into new dimensions, innermost first.
  result.strides.assign(newShape.size(), 1);
  int64_t next = int64_t(newShape.size()) - 1;
  int64_t dim = int64_t(shape.size()) - 1;
  while (dim >= 0) {
    if (shape[dim] == 1) {
      --dim;
      continue;
    }
    int64_t stride = strides[dim], run = shape[dim];
    for (--dim; dim >= 0; --dim) {
      if (shape[dim] == 1)
        continue;
      if (strides[dim] != stride * run)
        break;
      run *= shape[dim];
    }
    for (; next >= 0 && (run > 1 || newShape[next] == 1); --next) {
      if (run % newShape[next] != 0)
        return std::nullopt;
      result.strides[next] = stride;
      stride *= newShape[next];
      run /= newShape[next];
    }
    if (run > 1)
      return std::nullopt;
  }
  // Dimensions of size 1 take the stride that a row-major reading gives them.
  for (int64_t i = int64_t(newShape.size()) - 1; i >= 0; --i)
    if (newShape[i] == 1)
      result.strides[i] = i + 1 == int64_t(newShape.size()) ? 1 : result.strides[i + 1] * newShape[i + 1];
  return result;
}

Layout Layout::transpose(ArrayRef<int64_t> permutation) const {
  Layout result = *this;
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    result.shape[i] = shape[dim];
    result.strides[i] = strides[dim];
  }
  return result;
}

Layout Layout::transposeInverse(ArrayRef<int64_t> permutation) const {
  Layout result = *this;
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    result.shape[dim] = shape[i];
    result.strides[dim] = strides[i];
  }
  return result;
}

Layout Layout::slice(ArrayRef<int64_t> starts, ArrayRef<int64_t> limits, ArrayRef<int64_t> steps) const {
  Layout result = *this;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    result.shape[dim] = (limits[dim] - starts[dim] + steps[dim] - 1) / steps[dim];
    result.offset += starts[dim] * strides[dim];
    result.strides[dim] = strides[dim] * steps[dim];
  }
  return result;
}

Layout Layout::part(int64_t dim, int64_t start, int64_t size) const {
  Layout result = *this;
  result.shape[dim] = size;
  result.offset += start * strides[dim];
  return result;
}

std::optional<Layout> Layout::rankPart(int64_t dim, int64_t ranks, ArrayAttr axes) const {
  if (rankStride != 0)
    return std::nullopt;
  Layout result = part(dim, 0, shape[dim] / ranks);
  if (ranks > 1) {
    result.rankStride = result.shape[dim] * strides[dim];
    result.rankAxes = axes;
  }
  return result;
}

std::optional<Layout> Layout::iterationPart() const {
  if (iterationStride != 0)
    return std::nullopt;
  Layout result = *this;
  result.iterationStride = shape.front() > 1 ? strides.front() : 0;
  result.shape.erase(result.shape.begin());
  result.strides.erase(result.strides.begin());
  return result;
}
