//===- OpsDiagonal.cpp - diagonals and triangles of matrices ---------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Neural.h"
#include "frontends/common/Pad.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Offsets of a diagonal that are worth a number.
constexpr int64_t kMaxOffset = int64_t{1} << 40;
/// Elements up to which a matrix is known, so that what follows from it can be.
constexpr int64_t kMaxKnown = 1 << 16;

// --- Which read a matrix ---

/// A diagonal of two dimensions, which becomes the last dimension.
FailureOr<Value> diagonalOf(Call &c, StringRef name, int64_t dim1, int64_t dim2, int64_t offset) {
  const int64_t rank = c.rank(name);
  auto first = axisOf(dim1, rank), second = axisOf(dim2, rank);
  if (rank < 2 || !first || !second || *first == *second)
    return c.fail("dimensions are out of range");
  SmallVector<int64_t> order, shape;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *first && dim != *second) {
      order.push_back(dim);
      shape.push_back(c.shape(name)[dim]);
    }
  order.append({*first, *second});
  const int64_t rows = c.shape(name)[*first], columns = c.shape(name)[*second];
  offset = std::clamp(offset, -rows, columns);
  const int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0),
                length = std::min(rows - row, columns - column);
  Build &b = c.b;
  Value x = b.transpose(c.value(name), order);
  x = frontend::sliceAlong(b, frontend::sliceAlong(b, x, rank - 2, row, row + length), rank - 1, column,
                           column + length);
  shape.push_back(length * length);
  SmallVector<int64_t> zeros(shape.size(), 0), steps(shape.size(), 1);
  steps.back() = length + 1;
  return b.slice(b.reshape(x, shape), zeros, shape, steps);
}
LogicalResult diagonal(Call &c, StringRef name, int64_t dim1, int64_t dim2, int64_t offset) {
  auto found = diagonalOf(c, name, dim1, dim2, offset);
  return failed(found) ? failure() : c.set(*found);
}
LogicalResult opDiagonal(Call &c) {
  return diagonal(c, "self", c.integerOr("dim1", 0), c.integerOr("dim2", 1), c.integerOr("offset", 0));
}
LogicalResult opLinalgDiagonal(Call &c) {
  return diagonal(c, "A", c.integerOr("dim1", -2), c.integerOr("dim2", -1), c.integerOr("offset", 0));
}

LogicalResult opTrace(Call &c) {
  Type element = c.resultElement();
  if (c.rank("self") != 2 || !element || element.isInteger(1))
    return c.fail("expected a matrix of numbers");
  auto found = diagonalOf(c, "self", 0, 1, 0);
  return failed(found) ? failure() : c.set(c.b.sum(c.b.convert(*found, element), {0}));
}

/// Which places of a matrix, the last two dimensions, are on the diagonal `offset` places to the right of the main one
/// (Eq), or on its left and on it (Ge), or on its right and on it (Le).
Value besideDiagonal(Build &b, ArrayRef<int64_t> shape, int64_t offset, CompareDirection side = CompareDirection::Eq) {
  auto index = RankedTensorType::get(shape, b.builder.getI64Type());
  const auto rank = static_cast<int64_t>(shape.size());
  Value row = b.iota(index, rank - 2), column = b.iota(index, rank - 1);
  if (offset != 0)
    row = b.add(row, b.splatLike(row, static_cast<double>(offset)));
  return b.compare(side, row, column);
}

template <CompareDirection side> LogicalResult opTriangle(Call &c) {
  const int64_t diagonal = c.integerOr("diagonal", 0);
  if (c.rank("self") < 2 || std::abs(diagonal) > kMaxOffset)
    return c.fail("expected a matrix");
  Value x = c.value("self");
  return c.set(c.b.select(besideDiagonal(c.b, shapeOf(x), diagonal, side), x, c.b.splatLike(x, 0)));
}

// --- Which write one ---

/// A number on the main diagonal. `wrap`: of a tall matrix it begins again after each square and a row without it.
LogicalResult opFillDiagonal(Call &c) {
  const SmallVector<int64_t> shape(c.shape("self"));
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 2 || (rank > 2 && !llvm::all_equal(shape)))
    return c.fail("expected a matrix, or a tensor with dimensions of one size");
  auto number = c.number("fill_value");
  auto value = number ? c.splat(c.element("self"), *number) : FailureOr<Value>(failure());
  if (failed(value))
    return c.reason.empty() ? c.fail("the value is not a number that a double holds") : failure();
  Build &b = c.b;
  auto index = RankedTensorType::get(shape, b.builder.getI64Type());
  Value first = b.iota(index, 0), isOn;
  if (rank == 2 && c.flag("wrap", false) && shape[0] > shape[1])
    first = frontend::floorRemainder(b, first, b.splatLike(first, static_cast<double>(shape[1] + 1)));
  for (int64_t dim = 1; dim < rank; ++dim) {
    Value isSame = b.compare(CompareDirection::Eq, first, b.iota(index, dim));
    isOn = isOn ? b.mul(isOn, isSame) : isSame;
  }
  return c.set(b.select(isOn, b.broadcastTo(*value, shape), c.value("self")));
}

/// `src` as a diagonal of two dimensions of `self`.
LogicalResult opDiagonalScatter(Call &c) {
  const int64_t rank = c.rank("self");
  auto first = axisOf(c.integerOr("dim1", 0), rank), second = axisOf(c.integerOr("dim2", 1), rank);
  if (rank < 2 || !first || !second || *first == *second || c.element("src") != c.element("self"))
    return c.fail("dimensions are out of range, or 'src' has another type");
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *first && dim != *second)
      order.push_back(dim);
  order.append({*first, *second});
  Build &b = c.b;
  Value x = frontend::permute(b, c.value("self"), order);
  const SmallVector<int64_t> shape(shapeOf(x));
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1],
                offset = std::clamp(c.integerOr("offset", 0), -rows, columns), column = std::max<int64_t>(offset, 0),
                length = std::max<int64_t>(std::min(rows + std::min<int64_t>(offset, 0), columns - column), 0);
  SmallVector<int64_t> wanted(ArrayRef<int64_t>(shape).drop_back(2)), dims;
  wanted.push_back(length);
  if (c.shape("src") != ArrayRef<int64_t>(wanted))
    return c.fail("'src' has shape " + shapeText(c.shape("src")) + ", the diagonal " + shapeText(wanted));
  if (c.type("self").getNumElements() == 0)
    return c.set(c.value("self"));
  frontend::Pads pads(rank - 1); // each element in its column, of all rows
  pads.before[rank - 2] = column;
  pads.after[rank - 2] = columns - column - length;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != rank - 2)
      dims.push_back(dim);
  Value wide = b.broadcast(frontend::padConstant(b, c.value("src"), pads, 0), shape, dims);
  return c.set(frontend::permute(b, b.select(besideDiagonal(b, shape, offset), wide, x), frontend::inverse(order)));
}

// --- Which make one ---

LogicalResult opEye(Call &c) {
  auto rows = c.integer("n"), columns = c.has("m") ? c.integer("m") : rows;
  Type element = c.resultElement();
  if (!rows || !columns || *rows < 0 || *columns < 0 || !element || !countElements({*rows, *columns}))
    return c.fail("expected a known size and type");
  if (*rows * *columns > kMaxKnown)
    return c.set(c.b.convert(besideDiagonal(c.b, {*rows, *columns}, 0), element));
  HostTensor values = HostTensor::splat(RankedTensorType::get({*rows, *columns}, element), 0);
  for (int64_t i = 0; i < std::min(*rows, *columns); ++i)
    if (values.isFloat())
      values.floats[i * *columns + i] = 1;
    else
      values.ints[i * *columns + i] = 1;
  return c.set(std::move(values));
}

/// The last dimension as a diagonal of two new ones, among zeros.
LogicalResult embed(Call &c, Value x, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto rank = static_cast<int64_t>(shapeOf(x).size());
  auto first = axisOf(dim1, rank + 1), second = axisOf(dim2, rank + 1);
  if (rank == 0 || !first || !second || *first == *second || std::abs(offset) > kMaxOffset)
    return c.fail("a dimension or the offset is out of range");
  frontend::Pads pads(rank);
  (offset > 0 ? pads.before : pads.after)[rank - 1] = std::abs(offset);
  SmallVector<int64_t> shape(shapeOf(x)), dims;
  const int64_t size = shape.back() + std::abs(offset);
  shape.back() = size;
  shape.push_back(size);
  if (!countElements(shape))
    return c.fail("the result is too large");
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    dims.push_back(dim);
  dims.push_back(rank); // each element in its column, of all rows
  Build &b = c.b;
  Value wide = b.broadcast(offset == 0 ? x : frontend::padConstant(b, x, pads, 0), shape, dims);
  Value matrix = b.select(besideDiagonal(b, shape, offset), wide, b.splatLike(wide, 0));
  SmallVector<int64_t> order(rank + 1, -1);
  order[*first] = rank - 1;
  order[*second] = rank;
  int64_t next = 0;
  for (int64_t &place : order)
    place = place < 0 ? next++ : place;
  return c.set(b.transpose(matrix, order));
}
LogicalResult opDiagEmbed(Call &c) {
  return embed(c, c.value("self"), c.integerOr("offset", 0), c.integerOr("dim1", -2), c.integerOr("dim2", -1));
}
LogicalResult opDiag(Call &c) {
  if (c.rank("self") == 2)
    return diagonal(c, "self", 0, 1, c.integerOr("diagonal", 0));
  return c.rank("self") == 1 ? embed(c, c.value("self"), c.integerOr("diagonal", 0), -2, -1)
                             : c.fail("expected a vector or a matrix");
}
LogicalResult opDiagFlat(Call &c) {
  return embed(c, c.b.reshape(c.value("self"), {c.type("self").getNumElements()}), c.integerOr("offset", 0), -2, -1);
}

/// Rows and columns of a triangle, row by row: [2, count].
template <bool lower> LogicalResult opTriangleIndices(Call &c) {
  auto rows = c.integer("row"), columns = c.integer("col");
  const int64_t offset = c.integerOr("offset", 0);
  Type element = c.resultElement();
  if (!rows || !columns || *rows < 0 || *columns < 0 || std::abs(offset) > kMaxOffset || !element ||
      !element.isSignlessInteger() || !countElements({*rows, *columns}) ||
      *rows * *columns > frontend::kMaxConstantElements)
    return c.fail("expected a known size, and a type of integers");
  SmallVector<int64_t> at[2];
  for (int64_t row = 0; row < *rows; ++row)
    for (int64_t column = 0; column < *columns; ++column)
      if (lower ? column - row <= offset : column - row >= offset) {
        at[0].push_back(row);
        at[1].push_back(column);
      }
  HostTensor values = HostTensor::splat(RankedTensorType::get({2, static_cast<int64_t>(at[0].size())}, element), 0);
  values.ints.assign(at[0].begin(), at[0].end());
  values.ints.insert(values.ints.end(), at[1].begin(), at[1].end());
  return c.set(std::move(values));
}

const OpRow kDiagonalOps[] = {
    {"aten.diag.default", opDiag},
    {"aten.diag_embed.default", opDiagEmbed},
    {"aten.diagflat.default", opDiagFlat},
    {"aten.diagonal.default", opDiagonal},
    {"aten.diagonal_scatter.default", opDiagonalScatter, "self,src"},
    {"aten.eye.default", opEye, ""},
    {"aten.eye.m", opEye, ""},
    {"aten.fill_diagonal.default", opFillDiagonal}, // of fill_diagonal_
    {"aten.linalg_diagonal.default", opLinalgDiagonal, "A"},
    {"aten.trace.default", opTrace},
    {"aten.tril.default", opTriangle<CompareDirection::Ge>},
    {"aten.tril_indices.default", opTriangleIndices<true>, ""},
    {"aten.triu.default", opTriangle<CompareDirection::Le>},
    {"aten.triu_indices.default", opTriangleIndices<false>, ""},
};
} // namespace

llvm::ArrayRef<OpRow> diagonalOps() { return kDiagonalOps; }

} // namespace tessera::pt2
