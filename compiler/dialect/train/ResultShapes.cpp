#include "compiler/dialect/train/ResultShapes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::train {

Shape transposedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(permutation, [&](int64_t dim) { return shape[dim]; });
}

Shape slicedShape(ArrayRef<int64_t> starts, ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  Shape result;
  for (auto [start, limit, stride] : llvm::zip_equal(starts, limits, strides))
    result.push_back((limit - start + stride - 1) / stride);
  return result;
}

Shape paddedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior) {
  Shape result;
  for (auto [size, before, after, gap] : llvm::zip_equal(shape, low, high, interior))
    result.push_back(before + after + size + (size > 0 ? (size - 1) * gap : 0));
  return result;
}

Shape joinedShape(TypeRange tensors, int64_t dim) {
  Shape result(cast<RankedTensorType>(tensors.front()).getShape());
  result[dim] = 0;
  for (Type tensor : tensors)
    result[dim] += cast<RankedTensorType>(tensor).getShape()[dim];
  return result;
}

Shape rowsShape(ArrayRef<int64_t> table, ArrayRef<int64_t> indices) {
  Shape result(indices);
  llvm::append_range(result, table.drop_front());
  return result;
}

Shape reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape result;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      result.push_back(size);
  return result;
}

Shape productShape(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs, const ContractionDims &dims) {
  Shape result = transposedShape(lhs, dims.lhsBatch);
  auto appendFree = [&](ArrayRef<int64_t> side, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    Shape named(batch);
    llvm::append_range(named, contract);
    llvm::append_range(result, reducedShape(side, named));
  };
  appendFree(lhs, dims.lhsBatch, dims.lhsContract);
  appendFree(rhs, dims.rhsBatch, dims.rhsContract);
  return result;
}

} // namespace tessera::train
