//===- OpsPlace.cpp - tensors of which a part is another -------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// `src` in the shape and type of `self`.
LogicalResult opCopy(Call &c) {
  const SmallVector<int64_t> shape(c.shape("self"));
  if (broadcastShape(shape, c.shape("src")) != shape)
    return c.fail("'src' does not broadcast to 'self'");
  return c.set(c.b.broadcastTo(c.b.convert(c.value("src"), c.element("self")), shape));
}

LogicalResult placeAt(Call &c, int64_t dim, const frontend::KnownIndices &places, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> source(c.shape("self"));
  source[dim] = static_cast<int64_t>(places.size());
  if (c.shape("src") != shape || c.element("src") != c.element("self"))
    return c.fail("'src' has another shape or type than what it replaces");
  if (!frontend::canPlaceKnown(c.value("self"), dim))
    return c.fail("the dimension is too large");
  return c.set(frontend::placeKnown(c.b, frontend::ScatterKind::Replace, c.value("self"), dim, places,
                                    c.b.reshape(c.value("src"), source)));
}

LogicalResult opSliceScatter(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  const int64_t step = std::min(c.integerOr("step", 1), frontend::kMaxElements);
  if (!dim || c.rank("self") == 0 || step < 1)
    return c.fail("the dimension or the step is out of range");
  const int64_t size = c.shape("self")[*dim];
  if (size > frontend::kMaxConstantElements)
    return c.fail("the dimension is too large");
  auto bounded = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size); };
  const int64_t from = bounded(c.integerOr("start", 0)), to = bounded(c.has("end") ? c.integerOr("end", size) : size);
  frontend::KnownIndices places;
  for (int64_t place = from; place < to; place += step)
    places.push_back(place);
  SmallVector<int64_t> shape(c.shape("self"));
  shape[*dim] = static_cast<int64_t>(places.size());
  return placeAt(c, *dim, places, shape);
}

LogicalResult opSelectScatter(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0)
    return c.fail("the dimension is out of range");
  auto index = c.integer("index") ? axisOf(*c.integer("index"), c.shape("self")[*dim]) : std::nullopt;
  if (!index || *index >= c.shape("self")[*dim])
    return c.fail("the index is out of range");
  SmallVector<int64_t> shape(c.shape("self"));
  shape.erase(shape.begin() + *dim);
  return placeAt(c, *dim, {*index}, shape);
}

LogicalResult opViewAs(Call &c) {
  const SmallVector<int64_t> shape(c.shape("other"));
  if (c.type("self").getNumElements() != c.type("other").getNumElements())
    return c.fail("the shapes have different numbers of elements");
  return c.set(c.b.reshape(c.value("self"), shape));
}

const OpRow kRows[] = {
    {"aten.copy.default", opCopy, "self,src"},
    {"aten.select_scatter.default", opSelectScatter, "self,src"},
    {"aten.slice_scatter.default", opSliceScatter, "self,src"},
    {"aten.view_as.default", opViewAs, "self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> placeOps() { return kRows; }

} // namespace tessera::pt2
