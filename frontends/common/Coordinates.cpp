//===- Coordinates.cpp - indices of GatherND and ScatterND ----------------===//
//
// See Coordinates.h.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Coordinates.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// One coordinate of the indices: its values, which may be known.
struct Column {
  Value value;
  std::optional<HostTensor> known;

  /// Whether it counts the positions along dimension `dim` of the indices, all `size` of them.
  bool countsAlong(int64_t dim, int64_t size) const {
    if (!known || known->shape()[dim] != size)
      return false;
    int64_t stride = 1;
    for (int64_t length : known->shape().drop_front(dim + 1))
      stride *= length;
    return llvm::all_of(llvm::enumerate(known->ints), [&](auto entry) {
      return entry.value() == static_cast<int64_t>(entry.index()) / stride % size;
    });
  }
};

/// Coordinate `at` of the indices of a node: of known ones, of a join of coordinates, or a slice.
Column columnOf(Call &n, int input, int64_t at) {
  SmallVector<int64_t> shape(n.shape(input).drop_back());
  const int64_t depth = n.shape(input).back();
  auto type = RankedTensorType::get(shape, n.b.builder.getI64Type());
  auto ofEach = [&](const HostTensor &all, int64_t of, int64_t which) {
    std::vector<int64_t> values;
    for (int64_t i = which; i < all.size(); i += of)
      values.push_back(all.ints[i]);
    return Column{{}, HostTensor::ofInts(type, std::move(values))};
  };
  if (const HostTensor *all = n.constant(input))
    return ofEach(*all, depth, at);
  Value indices = n.input(input);
  auto last = static_cast<int64_t>(shape.size()), which = at;
  if (auto concat = indices.getDefiningOp<ConcatOp>(); concat && static_cast<int64_t>(concat.getDim()) == last)
    for (Value operand : concat.getOperands()) {
      const int64_t size = shapeOf(operand).back();
      if (which < size) {
        indices = operand;
        break;
      }
      which -= size;
    }
  if (auto constant = indices.getDefiningOp<ConstantOp>())
    if (auto values = HostTensor::fromAttr(constant.getValue()))
      return ofEach(*values, shapeOf(indices).back(), which);
  SmallVector<int64_t> starts(last + 1, 0), limits(shapeOf(indices));
  starts[last] = which;
  limits[last] = which + 1;
  return {n.b.convert(n.b.reshape(n.b.slice(indices, starts, limits), shape), n.b.builder.getI64Type()), {}};
}

/// The indices of one sample, if all samples have the same.
std::optional<KnownIndices> ofSample(const HostTensor &indices, ArrayRef<int64_t> order, int64_t batch) {
  ArrayRef<int64_t> shape = indices.shape();
  int64_t count = 1;
  for (int64_t j : order.drop_front(batch))
    count *= shape[j];
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t j = static_cast<int64_t>(shape.size()) - 2; j >= 0; --j)
    strides[j] = strides[j + 1] * shape[j + 1];
  KnownIndices sample(count, -1);
  for (auto [i, index] : llvm::enumerate(indices.ints)) {
    int64_t m = 0;
    for (int64_t j : order.drop_front(batch))
      m = m * shape[j] + static_cast<int64_t>(i) / strides[j] % shape[j];
    if (sample[m] >= 0 && sample[m] != index)
      return std::nullopt;
    sample[m] = index;
  }
  return sample;
}
} // namespace

FailureOr<Coordinates> Coordinates::of(Call &n, int data, int input, int64_t batches) {
  const int64_t rank = n.rank(data), last = n.rank(input) - 1;
  if (batches < 0 || last < batches || batches >= rank || n.isFloat(input) || n.element(input).isInteger(1))
    return n.fail("batch_dims is out of range, or the indices are not integers");
  const int64_t depth = n.shape(input)[last];
  if (depth < 1 || batches + depth > rank)
    return n.fail("the indices have " + Twine(depth) + " coordinates, expected 1 to " + Twine(rank - batches));
  if (n.shape(data).take_front(batches) != n.shape(input).take_front(batches))
    return n.fail("data and indices differ in their batch dimensions");
  Coordinates made;
  made.dataShape.assign(n.shape(data).begin(), n.shape(data).end());
  made.indexShape.assign(n.shape(input).begin(), n.shape(input).end() - 1);
  made.dataOrder = made.indexOrder = llvm::to_vector(llvm::seq<int64_t>(0, batches));
  Build &b = n.b;
  SmallVector<std::pair<int64_t, Column>> columns; // by dimension of the data
  SmallVector<int64_t> indexedDims;
  for (int64_t at = 0; at < depth; ++at) {
    const int64_t dim = batches + at, size = made.dataShape[dim];
    Column column = columnOf(n, input, at);
    if (column.known)
      for (int64_t &index : column.known->ints) {
        if (index < -size || index >= size)
          return n.fail("index " + Twine(index) + " is outside a dimension of size " + Twine(size));
        index = index < 0 ? index + size : index;
      }
    // A coordinate that counts along a dimension of the indices makes a batch of it.
    auto along = llvm::find_if(llvm::seq<int64_t>(batches, last), [&](int64_t j) {
      return !llvm::is_contained(made.indexOrder, j) && size > 1 && column.countsAlong(j, size);
    });
    if (along != llvm::seq<int64_t>(batches, last).end()) {
      made.dataOrder.push_back(dim);
      made.indexOrder.push_back(*along);
    } else {
      columns.emplace_back(dim, std::move(column));
      indexedDims.push_back(dim);
    }
  }
  made.batch = static_cast<int64_t>(made.dataOrder.size());
  made.indexed = static_cast<int64_t>(indexedDims.size());
  llvm::append_range(made.dataOrder, indexedDims);
  for (int64_t dim = batches + depth; dim < rank; ++dim)
    made.dataOrder.push_back(dim);
  for (int64_t j = batches; j < last; ++j)
    if (!llvm::is_contained(made.indexOrder, j))
      made.indexOrder.push_back(j);

  // The number of each element among those that are indexed, row by row.
  auto type = RankedTensorType::get(made.indexShape, b.builder.getI64Type());
  Value sum;
  std::optional<HostTensor> fixed; // what the known coordinates add to it
  int64_t stride = 1;
  for (auto &[dim, column] : llvm::reverse(columns)) {
    if (column.known) {
      if (!fixed)
        fixed = HostTensor::splat(type, 0);
      for (auto [to, from] : llvm::zip_equal(fixed->ints, column.known->ints))
        to += from * stride;
    } else {
      const int64_t size = made.dataShape[dim];
      Value index = fromFront(b, column.value, size);
      if (made.batch > 0 || columns.size() > 1)
        index = inDimension(b, index, size);
      Value scaled = stride == 1 ? index : b.scale(index, static_cast<double>(stride));
      sum = sum ? b.add(sum, scaled) : scaled;
    }
    stride *= made.dataShape[dim];
  }
  SmallVector<int64_t> arranged = permuted(made.indexShape, made.indexOrder);
  int64_t count = 1;
  for (int64_t size : ArrayRef<int64_t>(arranged).drop_front(made.batch))
    count *= size;
  arranged.resize(made.batch);
  arranged.push_back(count);
  if (!sum) {
    if (!fixed) // each coordinate counts along a dimension
      fixed = HostTensor::splat(type, 0);
    made.known = ofSample(*fixed, made.indexOrder, made.batch);
    if (made.known)
      return made;
    sum = b.constant(fixed->toAttr());
  } else if (fixed && fixed->uniform() != 0.0) {
    sum = b.add(sum, b.constant(fixed->toAttr()));
  }
  made.indices = b.reshape(permute(b, sum, made.indexOrder), arranged);
  return made;
}

SmallVector<int64_t> Coordinates::itemShape() const {
  SmallVector<int64_t> shape(indexShape);
  llvm::append_range(shape, permuted(dataShape, ArrayRef<int64_t>(dataOrder).drop_front(batch + indexed)));
  return shape;
}

Value Coordinates::arrangeData(Build &b, Value data) const {
  const SmallVector<int64_t> moved = permuted(dataShape, dataOrder);
  SmallVector<int64_t> shape(ArrayRef<int64_t>(moved).take_front(batch));
  int64_t size = 1;
  for (int64_t length : ArrayRef<int64_t>(moved).slice(batch, indexed))
    size *= length;
  shape.push_back(size);
  llvm::append_range(shape, ArrayRef<int64_t>(moved).drop_front(batch + indexed));
  return b.reshape(permute(b, data, dataOrder), shape);
}

Value Coordinates::restoreData(Build &b, Value data) const {
  return permute(b, b.reshape(data, permuted(dataShape, dataOrder)), inverse(dataOrder));
}

Value Coordinates::arrangeItems(Build &b, Value items) const {
  SmallVector<int64_t> order(indexOrder), shape = permuted(indexShape, ArrayRef<int64_t>(indexOrder).take_front(batch));
  const SmallVector<int64_t> all = itemShape();
  int64_t count = 1;
  for (int64_t j : ArrayRef<int64_t>(indexOrder).drop_front(batch))
    count *= indexShape[j];
  shape.push_back(count);
  for (size_t dim = indexShape.size(); dim < all.size(); ++dim) {
    order.push_back(dim);
    shape.push_back(all[dim]);
  }
  return b.reshape(permute(b, items, order), shape);
}

Value Coordinates::restoreItems(Build &b, Value items) const {
  SmallVector<int64_t> order(indexOrder);
  const SmallVector<int64_t> all = itemShape();
  for (size_t dim = indexShape.size(); dim < all.size(); ++dim)
    order.push_back(dim);
  return permute(b, b.reshape(items, permuted(all, order)), inverse(order));
}

} // namespace tessera::frontend
