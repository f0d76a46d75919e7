//===- Fp8Matrix.cpp - operands of products as matrices -------------------===//
//
// See Fp8Matrix.h.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Fp8Matrix.h"

#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

int64_t countElements(Value value, ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1},
                         [&](int64_t product, int64_t dim) { return product * shapeOf(value)[dim]; });
}

Matrix toMatrix(Build &b, Value operand, const Order &order) {
  const int64_t kept = countElements(operand, order.kept), contracted = countElements(operand, order.contracted);
  SmallVector<int64_t> contractedFirst(order.contracted), keptFirst(order.kept);
  llvm::append_range(contractedFirst, order.kept);
  llvm::append_range(keptFirst, order.contracted);
  SmallVector<int64_t> shape;
  for (int64_t dim : order.kept)
    shape.push_back(shapeOf(operand)[dim]);
  const bool holdsContractedFirst = llvm::all_of(order.contracted, [&](int64_t dim) {
    return llvm::all_of(order.kept, [&](int64_t other) { return dim < other; });
  });
  if (holdsContractedFirst) {
    if (!llvm::is_sorted(contractedFirst))
      operand = b.transpose(operand, contractedFirst);
    return {b.reshape(operand, {contracted, kept}), 0, order.kept, shape};
  }
  if (!llvm::is_sorted(keptFirst))
    operand = b.transpose(operand, keptFirst);
  return {b.reshape(operand, {kept, contracted}), 1, order.kept, shape};
}

Value putSamplesFirst(Build &b, Value operand, const dist::Layout &layout, int64_t numSamples, Fp8Product kind,
                      Order &order) {
  SmallVector<int64_t> shape, first; // and of each dimension the first of those that it becomes
  int64_t ofSamples = -1;
  for (auto [dim, size] : llvm::enumerate(shapeOf(operand))) {
    first.push_back(shape.size());
    const dist::Split &split = layout.dims[dim];
    if (split.empty() || !llvm::is_contained(order.tokens(kind), static_cast<int64_t>(dim))) {
      shape.push_back(size);
      continue;
    }
    const int64_t blocks = split.front().blocks; // samples are one level
    if (blocks > 1)
      shape.push_back(blocks);
    ofSamples = shape.size();
    shape.push_back(numSamples);
    if (const int64_t inner = size / blocks / numSamples; inner > 1)
      shape.push_back(inner);
  }
  first.push_back(shape.size());
  for (SmallVector<int64_t> *dims : {&order.kept, &order.contracted}) {
    SmallVector<int64_t> parted;
    for (int64_t dim : *dims)
      llvm::append_range(parted, llvm::seq(first[dim], first[dim + 1]));
    if (auto *found = llvm::find(parted, ofSamples); found != parted.end())
      std::rotate(parted.begin(), found, found + 1);
    *dims = parted;
  }
  return b.reshape(operand, shape);
}

Value joinKept(Build &b, Value product, const Matrix &lhs, const Matrix &rhs) {
  SmallVector<int64_t> shape(lhs.keptShape), permutation;
  llvm::append_range(shape, rhs.keptShape);
  for (const Matrix *matrix : {&lhs, &rhs}) {
    SmallVector<int64_t> sorted(matrix->keptDims);
    llvm::sort(sorted);
    const int64_t before = permutation.size();
    for (int64_t dim : sorted)
      permutation.push_back(before + (llvm::find(matrix->keptDims, dim) - matrix->keptDims.begin()));
  }
  return llvm::is_sorted(permutation) ? product : b.transpose(b.reshape(product, shape), permutation);
}

} // namespace tessera::precision
