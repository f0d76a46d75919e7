//===- Indexing.cpp - reading and writing elements by index ---------------===//
//
// See Indexing.h. Where data and indices have a batch, indices are compared with
// positions: what is read or written then stays inside its sample, whose
// gradient is a selection again, and nothing is gathered from other ranks.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Indexing.h"

#include "compiler/dialect/train/Loss.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// How many comparisons for each element of the data may replace a lookup by flat index.
constexpr int64_t kMostCompared = 1 << 16;
/// The most indices without a batch that are compared with each other.
constexpr int64_t kMostPairs = 8192;

SmallVector<int64_t> dimsUpTo(int64_t end) { return llvm::to_vector(llvm::seq<int64_t>(0, end)); }

Type i32(Build &b) { return b.builder.getI32Type(); }

int64_t batchOf(Value indices) { return tensorType(indices).getRank() - 1; }

Value isZero(Build &b, Value x) { return b.compare(CompareDirection::Eq, x, b.splatLike(x, 0)); }
Value isOne(Build &b, Value x) { return b.compare(CompareDirection::Ne, x, b.splatLike(x, 0)); }

/// The shape [batch…, count, size, trailing…] in which indices meet elements.
SmallVector<int64_t> meetingShape(Value data, Value indices) {
  SmallVector<int64_t> shape(shapeOf(indices));
  llvm::append_range(shape, shapeOf(data).drop_front(batchOf(indices)));
  return shape;
}

/// Whether index m names element s, in the shape [batch…, count, size].
Value hits(Build &b, Value data, Value indices) {
  const int64_t batch = batchOf(indices);
  SmallVector<int64_t> shape(shapeOf(indices));
  shape.push_back(shapeOf(data)[batch]);
  Value wide = b.broadcast(indices, shape, dimsUpTo(batch + 1));
  return b.compare(CompareDirection::Eq, wide, b.iota(tensorType(wide), batch + 1));
}

/// Repeats hits along the trailing dimensions, data along the indices, and updates along the elements.
Value wideHits(Build &b, Value hit, ArrayRef<int64_t> shape) {
  return b.broadcast(hit, shape, dimsUpTo(tensorType(hit).getRank()));
}
Value wideWithout(Build &b, Value x, ArrayRef<int64_t> shape, int64_t missing) {
  SmallVector<int64_t> dims = dimsUpTo(shape.size());
  dims.erase(dims.begin() + missing);
  return b.broadcast(x, shape, dims);
}

/// Which indices no later one repeats, as [batch…, count].
Value lastWriters(Build &b, Value indices) {
  const int64_t batch = batchOf(indices), count = shapeOf(indices).back();
  SmallVector<int64_t> pairs(shapeOf(indices));
  pairs.push_back(count);
  SmallVector<int64_t> later = dimsUpTo(batch);
  later.push_back(batch + 1);
  Value mine = b.broadcast(indices, pairs, dimsUpTo(batch + 1)), other = b.broadcast(indices, pairs, later);
  auto index = RankedTensorType::get(pairs, b.builder.getI64Type());
  Value follows = b.compare(CompareDirection::Lt, b.iota(index, batch), b.iota(index, batch + 1));
  Value repeated = b.mul(b.compare(CompareDirection::Eq, mine, other), follows);
  return isZero(b, b.reduce(ReduceKind::Max, b.convert(repeated, i32(b)), {batch + 1}));
}

Value replace(Build &b, Value data, Value indices, Value updates) {
  const int64_t batch = batchOf(indices), size = shapeOf(data)[batch];
  const bool mayRepeat = shapeOf(indices).back() > 1;
  Value last = mayRepeat ? lastWriters(b, indices) : Value(), written, values;
  if (batch == 0) {
    Value ones = last ? b.convert(last, i32(b)) : b.splat(RankedTensorType::get(shapeOf(indices), i32(b)), 1);
    Value mine = last ? b.select(b.broadcast(last, shapeOf(updates), {0}), updates, b.splatLike(updates, 0)) : updates;
    Value none = b.splat(RankedTensorType::get({size}, i32(b)), 0);
    written = ScatterAddRowsOp::create(b.builder, b.loc, none.getType(), none, indices, ones);
    values = ScatterAddRowsOp::create(b.builder, b.loc, data.getType(), b.splatLike(data, 0), indices, mine);
  } else {
    const SmallVector<int64_t> shape = meetingShape(data, indices);
    Value hit = hits(b, data, indices);
    if (last)
      hit = b.mul(hit, b.broadcast(last, shapeOf(hit), dimsUpTo(batch + 1)));
    written = b.reduce(ReduceKind::Max, b.convert(hit, i32(b)), {batch});
    Value wide = wideWithout(b, updates, shape, batch + 1);
    values = b.sum(b.select(wideHits(b, hit, shape), wide, b.splatLike(wide, 0)), {batch});
  }
  Value mask = b.broadcast(isOne(b, written), shapeOf(data), dimsUpTo(batch + 1));
  return b.select(mask, values, data);
}

/// first, first + step, … with a step of at least 1: the step, or nothing.
std::optional<int64_t> stepOf(ArrayRef<int64_t> indices) {
  const int64_t step = indices.size() > 1 ? indices[1] - indices[0] : 1;
  if (step < 1)
    return std::nullopt;
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != step)
      return std::nullopt;
  return step;
}

} // namespace

Value neutral(Build &b, ScatterKind kind, RankedTensorType type) {
  const double infinity = std::numeric_limits<double>::infinity();
  return b.splat(type, kind == ScatterKind::Mul   ? 1.0
                       : kind == ScatterKind::Max ? -infinity
                       : kind == ScatterKind::Min ? infinity
                                                  : 0.0);
}

Value pick(Build &b, Value data, Value indices) {
  const int64_t batch = batchOf(indices), count = shapeOf(indices).back(), size = shapeOf(data)[batch];
  if (batch == 0)
    return b.gatherRows(data, indices);
  if (tensorType(data).getElementType().isInteger(1))
    return isOne(b, pick(b, b.convert(data, i32(b)), indices));
  if (count > 1 && count * size > kMostCompared) {
    int64_t rows = 1, stride = size;
    for (int64_t length : shapeOf(indices).drop_back())
      rows *= length;
    Value flat = b.convert(indices, b.builder.getI64Type());
    for (int64_t dim = batch - 1; dim >= 0; --dim) {
      flat = b.add(flat, b.scale(b.iota(tensorType(flat), dim), static_cast<double>(stride)));
      stride *= shapeOf(indices)[dim];
    }
    SmallVector<int64_t> blocks = {rows * size};
    llvm::append_range(blocks, shapeOf(data).drop_front(batch + 1));
    Value rowsOfPlaces = b.gatherRows(b.reshape(data, blocks), flat);
    rowsOfPlaces.getDefiningOp()->setAttr(kOwnRows, b.builder.getUnitAttr());
    return rowsOfPlaces;
  }
  const SmallVector<int64_t> shape = meetingShape(data, indices);
  Value wide = wideWithout(b, data, shape, batch);
  return b.sum(b.select(wideHits(b, hits(b, data, indices), shape), wide, b.splatLike(wide, 0)), {batch + 1});
}

bool canPlace(ScatterKind kind, Value data, Value indices) {
  const int64_t batch = batchOf(indices), count = shapeOf(indices).back();
  if (batch == 0 && kind == ScatterKind::Add)
    return true;
  if (batch == 0 && kind == ScatterKind::Replace)
    return count <= kMostPairs;
  return countElements(meetingShape(data, indices)) && count <= kMostPairs;
}

Value place(Build &b, ScatterKind kind, Value data, Value indices, Value updates) {
  Type element = tensorType(data).getElementType();
  if (element.isInteger(1))
    return isOne(b, place(b, kind, b.convert(data, i32(b)), indices, b.convert(updates, i32(b))));
  const int64_t batch = batchOf(indices);
  if (kind == ScatterKind::Replace)
    return replace(b, data, indices, updates);
  if (kind == ScatterKind::Add && batch == 0)
    return ScatterAddRowsOp::create(b.builder, b.loc, data.getType(), data, indices, updates);
  SmallVector<int64_t> shape = meetingShape(data, indices);
  Value hit = wideHits(b, hits(b, data, indices), shape), wide = wideWithout(b, updates, shape, batch + 1);
  if (kind == ScatterKind::Add)
    return b.add(data, b.sum(b.select(hit, wide, b.splatLike(wide, 0)), {batch}));
  // What was there is one more term, so that ties share the gradient as PyTorch's scatter_reduce does. Integers have no
  // neutral value that a double holds, but no gradient either.
  Value none = isa<FloatType>(element) || kind == ScatterKind::Mul ? neutral(b, kind, tensorType(wide))
                                                                   : wideWithout(b, data, shape, batch);
  SmallVector<int64_t> first(shapeOf(data));
  first.insert(first.begin() + batch, 1);
  Value terms = b.concat({b.reshape(data, first), b.select(hit, wide, none)}, batch);
  return b.reduce(kind == ScatterKind::Mul   ? ReduceKind::Mul
                  : kind == ScatterKind::Max ? ReduceKind::Max
                                             : ReduceKind::Min,
                  terms, {batch});
}

bool canPlaceKnown(Value data, int64_t batch) { return shapeOf(data)[batch] <= kMaxConstantElements; }

Value placeKnown(Build &b, ScatterKind kind, Value data, int64_t batch, const KnownIndices &indices, Value updates) {
  const int64_t size = shapeOf(data)[batch], rank = tensorType(data).getRank();
  if (indices.empty())
    return data;
  const int64_t first = indices.front(), end = indices.back() + 1;
  if (kind == ScatterKind::Replace && stepOf(indices) == 1) { // in pieces
    SmallVector<Value> pieces;
    if (first > 0)
      pieces.push_back(sliceAlong(b, data, batch, 0, first));
    pieces.push_back(updates);
    if (end < size)
      pieces.push_back(sliceAlong(b, data, batch, end, size));
    return pieces.size() == 1 ? updates : b.concat(pieces, batch);
  }
  // Who writes each element, and whether somebody does.
  SmallVector<int64_t> writer(size, 0);
  HostTensor mask = HostTensor::splat(RankedTensorType::get({size}, b.builder.getI1Type()), 0);
  for (auto [m, index] : llvm::enumerate(indices)) {
    writer[index] = m;
    mask.ints[index] = 1;
  }
  Value values;
  if (auto step = stepOf(indices)) {
    SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
    low[batch] = first;
    high[batch] = size - end;
    interior[batch] = *step - 1;
    values = tensorType(data).getElementType().isInteger(1) ? Value() : b.pad(updates, low, high, interior);
  }
  if (!values)
    values = takeAlong(b, updates, batch, writer);
  Value written = b.broadcast(b.constant(mask.toAttr()), shapeOf(data), {batch});
  if (kind == ScatterKind::Replace)
    return b.select(written, values, data);
  Value none = isa<FloatType>(tensorType(data).getElementType()) || kind == ScatterKind::Mul || kind == ScatterKind::Add
                   ? neutral(b, kind, tensorType(data))
                   : data;
  Value terms = b.select(written, values, none);
  return kind == ScatterKind::Add   ? b.add(data, terms)
         : kind == ScatterKind::Mul ? b.mul(data, terms)
         : kind == ScatterKind::Max ? b.max(data, terms)
                                    : b.neg(b.max(b.neg(data), b.neg(terms)));
}

std::optional<int64_t> consecutiveFrom(const HostTensor *indices, int64_t size) {
  if (!indices || indices->isFloat() || indices->type.getRank() > 1 || indices->size() == 0)
    return std::nullopt;
  const int64_t first = indices->ints[0] < 0 ? indices->ints[0] + size : indices->ints[0];
  for (auto [i, index] : llvm::enumerate(indices->ints))
    if ((index < 0 ? index + size : index) != first + static_cast<int64_t>(i))
      return std::nullopt;
  if (first < 0 || first + indices->size() > size)
    return std::nullopt;
  return first;
}

FailureOr<Value> checkedIndices(Call &n, int i, int64_t size) {
  if (n.isFloat(i) || n.element(i).isInteger(1))
    return n.fail("indices are not integers");
  const HostTensor *known = n.constant(i);
  if (!known)
    return fromFront(n.b, n.input(i), size);
  HostTensor wrapped = *known;
  for (int64_t &index : wrapped.ints) {
    if (index < -size || index >= size)
      return n.fail("index " + Twine(index) + " is outside a dimension of size " + Twine(size));
    index = index < 0 ? index + size : index;
  }
  return n.b.constant(wrapped.toAttr());
}

Value inDimension(Build &b, Value indices, int64_t size) {
  auto positions = RankedTensorType::get({size}, tensorType(indices).getElementType());
  return b.gatherRows(b.iota(positions, 0), indices);
}

Value fromFront(Build &b, Value indices, int64_t size) {
  Value source = indices;
  while (isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp, BroadcastOp, ConvertOp>(source.getDefiningOp()))
    source = source.getDefiningOp()->getOperand(0);
  if (isa<BlockArgument>(source) || tensorType(indices).getElementType().isUnsignedInteger())
    return indices;
  return b.select(b.compare(CompareDirection::Lt, indices, b.splatLike(indices, 0)),
                  b.add(indices, b.splatLike(indices, static_cast<double>(size))), indices);
}

FailureOr<ElementIndices> ElementIndices::of(Call &n, int64_t axis) {
  const int64_t rank = n.rank(0);
  auto along = axisOf(axis, rank);
  if (!along || n.rank(1) != rank)
    return n.fail("axis is out of range, or the indices have another rank than the data");
  ElementIndices made;
  made.order = withDimAt(rank, *along, rank - 1);
  made.limits.assign(n.shape(1).begin(), n.shape(1).end());
  made.size = made.limits[*along] = n.shape(0)[*along];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (made.limits[dim] > n.shape(0)[dim])
      return n.fail("indices are larger than the data in dimension " + Twine(dim));
  made.isPart = n.shape(0) != ArrayRef<int64_t>(made.limits);
  return made;
}

FailureOr<Value> ElementIndices::places(Call &n) const {
  auto indices = checkedIndices(n, 1, size);
  if (failed(indices))
    return failure();
  Value places = arrange(n.b, n.b.convert(*indices, n.b.builder.getI64Type()));
  // Compared with positions, an index out of range would name no element and say nothing.
  return size > 0 && !n.constant(1) ? inDimension(n.b, places, size) : places;
}

Value ElementIndices::corner(Build &b, Value data) const {
  return isPart ? b.slice(data, SmallVector<int64_t>(limits.size(), 0), limits) : data;
}

} // namespace tessera::frontend
