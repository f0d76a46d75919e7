//===- Places.cpp - which elements indices and slices name -----------------===//

#include "frontends/pt2/Places.h"

#include "frontends/common/Indexing.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

FailureOr<FlatIndices> flatIndices(Call &c, ArrayRef<int> inputs) {
  const SmallVector<int64_t> shape(c.shape("self"));
  if (inputs.empty() || inputs.size() > shape.size())
    return c.fail("expected indices");
  Build &b = c.b;
  FlatIndices found;
  for (int i : inputs) {
    if (!c.has(i))
      return c.fail("dimensions that are not indexed stand before or between others");
    if (c.element(i).isInteger(1))
      return c.fail("masks as indices name elements whose number depends on data");
    auto both = broadcastShape(found.common, c.shape(i));
    if (!both)
      return c.fail("indices do not broadcast");
    found.common = *both;
  }
  int64_t rows = 1;
  for (auto [dim, i] : llvm::enumerate(inputs)) {
    auto indices = frontend::checkedIndices(c, i, shape[dim]);
    if (failed(indices))
      return failure();
    // An index that is out of its own dimension may be in range of all of them together.
    if (inputs.size() > 1 && shape[dim] > 0 && !c.constant(i))
      indices = frontend::inDimension(b, *indices, shape[dim]);
    Value wide = b.broadcastTo(b.convert(*indices, b.builder.getI64Type()), found.common), before = found.flat;
    found.flat = before ? b.add(b.mul(before, b.splatLike(before, static_cast<double>(shape[dim]))), wide) : wide;
    rows *= shape[dim];
  }
  const ArrayRef<int64_t> inner = ArrayRef<int64_t>(shape).drop_front(inputs.size());
  found.table = {rows};
  found.all = found.common;
  llvm::append_range(found.table, inner);
  llvm::append_range(found.all, inner);
  if (!countElements(found.all))
    return c.fail("the result is too large");
  return found;
}

FailureOr<SliceRange> sliceOf(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  const int64_t step = std::min(c.integerOr("step", 1), frontend::kMaxElements);
  if (!dim || c.rank("self") == 0 || step < 1)
    return c.fail("the dimension or the step is out of range");
  const int64_t size = c.shape("self")[*dim];
  auto bounded = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size); };
  const int64_t from = bounded(c.integerOr("start", 0));
  return SliceRange{*dim, from, std::max(from, bounded(c.has("end") ? c.integerOr("end", size) : size)), step};
}

FailureOr<SliceRange> selectOf(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0)
    return c.fail("the dimension is out of range");
  auto index = c.integer("index") ? axisOf(*c.integer("index"), c.shape("self")[*dim]) : std::nullopt;
  if (!index || *index >= c.shape("self")[*dim])
    return c.fail("the index is out of range");
  return SliceRange{*dim, *index, *index + 1, 1};
}

} // namespace tessera::pt2
