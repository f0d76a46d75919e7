//===- OpsPlace.cpp - tensors of which a part is another -------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

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
  auto range = sliceOf(c);
  if (failed(range))
    return failure();
  if (c.shape("self")[range->dim] > frontend::kMaxConstantElements)
    return c.fail("the dimension is too large");
  frontend::KnownIndices places;
  for (int64_t place = range->from; place < range->to; place += range->step)
    places.push_back(place);
  SmallVector<int64_t> shape(c.shape("self"));
  shape[range->dim] = static_cast<int64_t>(places.size());
  return placeAt(c, range->dim, places, shape);
}

LogicalResult opSelectScatter(Call &c) {
  auto range = selectOf(c);
  if (failed(range))
    return failure();
  SmallVector<int64_t> shape(c.shape("self"));
  shape.erase(shape.begin() + range->dim);
  return placeAt(c, range->dim, {range->from}, shape);
}

LogicalResult opViewAs(Call &c) {
  const SmallVector<int64_t> shape(c.shape("other"));
  if (c.type("self").getNumElements() != c.type("other").getNumElements())
    return c.fail("the shapes have different numbers of elements");
  return c.set(c.b.reshape(c.value("self"), shape));
}

const OpRow kPlaceOps[] = {
    {"aten.copy.default", opCopy, "self,src"},
    {"aten.select_scatter.default", opSelectScatter, "self,src"},
    {"aten.slice_scatter.default", opSliceScatter, "self,src"},
    {"aten.view_as.default", opViewAs, "self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> placeOps() { return kPlaceOps; }

} // namespace tessera::pt2
