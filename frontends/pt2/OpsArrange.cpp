//===- OpsArrange.cpp - orders of elements and of dimensions ------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
std::optional<int64_t> dimensionOf(Call &c, StringRef name, int64_t fallback) {
  return c.rank("self") == 0 ? std::nullopt : axisOf(c.integerOr(name, fallback), c.rank("self"));
}

// --- Orders of elements ---

LogicalResult flip(Call &c, ArrayRef<int64_t> dims) {
  Value x = c.value("self");
  for (int64_t dim : dims) {
    const int64_t size = c.shape("self")[dim];
    if (size > frontend::kMaxConstantElements)
      return c.fail("the dimension is too large");
    SmallVector<int64_t> order = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, size)));
    x = size > 1 ? frontend::takeAlong(c.b, x, dim, order) : x;
  }
  return c.set(x);
}

LogicalResult opFlip(Call &c) {
  auto dims = c.axes("dims", c.rank("self"));
  return dims ? flip(c, *dims) : c.fail("a dimension is out of range or occurs twice");
}
/// fliplr and flipud.
template <int64_t dim> LogicalResult opFlipDim(Call &c) {
  return dim < c.rank("self") ? flip(c, {dim}) : c.fail("the tensor has too few dimensions");
}

LogicalResult opRoll(Call &c) {
  auto shifts = c.ints("shifts"), dims = c.has("dims") ? c.ints("dims") : std::optional(SmallVector<int64_t>());
  if (!shifts || !dims || (dims->empty() ? shifts->size() != 1 : shifts->size() != dims->size()))
    return c.fail("shifts and dimensions do not fit");
  Build &b = c.b;
  Value x = c.value("self");
  const bool isFlat = dims->empty();
  if (isFlat) {
    x = b.reshape(x, {c.type("self").getNumElements()});
    dims->push_back(0);
  }
  for (auto [shift, given] : llvm::zip_equal(*shifts, *dims)) {
    auto dim = axisOf(given, static_cast<int64_t>(shapeOf(x).size()));
    if (!dim)
      return c.fail("a dimension is out of range");
    const int64_t size = shapeOf(x)[*dim];
    x = frontend::rollAlong(b, x, *dim, size == 0 ? 0 : (shift % size + size) % size);
  }
  return c.set(isFlat ? b.reshape(x, c.shape("self")) : x);
}

/// Windows of a dimension, whose elements are a new last dimension.
LogicalResult opUnfold(Call &c) {
  auto dim = dimensionOf(c, "dimension", 0);
  const int64_t width = c.integerOr("size", 0), step = c.integerOr("step", 0);
  if (!dim || width < 1 || step < 1 || width > c.shape("self")[*dim])
    return c.fail("the windows do not fit the dimension");
  const int64_t count = (c.shape("self")[*dim] - width) / step + 1;
  if (count > frontend::kMaxConstantElements / width)
    return c.fail("the result is too large");
  Value x = frontend::takeWindows(c.b, c.value("self"), *dim, width, step, count);
  return c.set(c.b.moveDim(x, *dim + 1, c.rank("self")));
}

LogicalResult opRepeatInterleave(Call &c) {
  auto times = c.integer("repeats");
  Value x = c.value("self");
  if (!c.has("dim"))
    x = c.b.reshape(x, {c.type("self").getNumElements()});
  SmallVector<int64_t> shape(shapeOf(x)), wide(shape), dims;
  auto dim = shape.empty() ? std::nullopt : axisOf(c.integerOr("dim", 0), static_cast<int64_t>(shape.size()));
  if (!dim || !times || *times < 0 || *times > frontend::kMaxElements)
    return c.fail("the dimension or the number of repetitions is out of range");
  wide.insert(wide.begin() + *dim + 1, *times);
  if (!countElements(wide))
    return c.fail("the result is too large");
  for (int64_t at = 0; at < static_cast<int64_t>(wide.size()); ++at)
    if (at != *dim + 1)
      dims.push_back(at);
  shape[*dim] *= *times;
  return c.set(c.b.reshape(c.b.broadcast(x, wide, dims), shape));
}

// --- Orders of dimensions ---

LogicalResult opMovedim(Call &c) {
  auto from = c.ints("source"), to = c.ints("destination");
  const int64_t rank = c.rank("self");
  if (!from || !to || from->size() != to->size() || !frontend::axesOf(*from, rank) || !frontend::axesOf(*to, rank))
    return c.fail("dimensions are out of range or occur twice");
  SmallVector<int64_t> order(rank, -1), rest;
  for (auto [source, destination] : llvm::zip_equal(*from, *to))
    order[*axisOf(destination, rank)] = *axisOf(source, rank);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(order, dim))
      rest.push_back(dim);
  for (int64_t &place : order)
    if (place < 0) {
      place = rest.front();
      rest.erase(rest.begin());
    }
  return c.set(c.b.transpose(c.value("self"), order));
}

LogicalResult opMT(Call &c) {
  const int64_t rank = c.rank("self");
  if (rank < 2)
    return c.fail("expected a matrix");
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 2], order[rank - 1]);
  return c.set(c.b.transpose(c.value("self"), order));
}
/// Of numbers that are not complex.
LogicalResult opAdjoint(Call &c) { return c.rank("self") == 0 ? c.set(c.value("self")) : opMT(c); }
LogicalResult opMatrixH(Call &c) { return c.rank("self") == 2 ? opMT(c) : c.fail("expected a matrix"); }
LogicalResult opNumpyT(Call &c) {
  return c.set(c.b.transpose(c.value("self"), llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, c.rank("self"))))));
}

// --- Gates ---

LogicalResult opGlu(Call &c) {
  auto dim = dimensionOf(c, "dim", -1);
  if (!dim || !c.isFloat("self") || c.shape("self")[*dim] % 2 != 0)
    return c.fail("expected floating point, and a dimension of an even size");
  const int64_t half = c.shape("self")[*dim] / 2;
  Value gate = c.b.unary<SigmoidOp>(frontend::sliceAlong(c.b, c.value("self"), *dim, half, 2 * half));
  return c.set(c.b.mul(frontend::sliceAlong(c.b, c.value("self"), *dim, 0, half), gate));
}

const OpRow kArrangeOps[] = {
    {"aten.adjoint.default", opAdjoint},
    {"aten.flip.default", opFlip},
    {"aten.fliplr.default", opFlipDim<1>},
    {"aten.flipud.default", opFlipDim<0>},
    {"aten.glu.default", opGlu},
    {"aten.mH.default", opMT},
    {"aten.mT.default", opMT},
    {"aten.matrix_H.default", opMatrixH},
    {"aten.moveaxis.int", opMovedim},
    {"aten.moveaxis.intlist", opMovedim},
    {"aten.movedim.int", opMovedim},
    {"aten.movedim.intlist", opMovedim},
    {"aten.numpy_T.default", opNumpyT},
    {"aten.repeat_interleave.self_int", opRepeatInterleave},
    {"aten.roll.default", opRoll},
    {"aten.unfold.default", opUnfold},
};
} // namespace

llvm::ArrayRef<OpRow> arrangeOps() { return kArrangeOps; }

} // namespace tessera::pt2
