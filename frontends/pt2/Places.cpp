//===- Places.cpp - which elements indices and slices name -----------------===//

#include "frontends/pt2/Places.h"

#include "frontends/common/Indexing.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

/// Which dimensions are indexed, first, and where they stand in the result: together, or first where others are
/// between.
static void orderDimensions(FlatIndices &found, ArrayRef<int64_t> indexed, int64_t rank) {
  found.order.assign(indexed.begin(), indexed.end());
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(indexed, dim))
      found.order.push_back(dim);
  const auto count = static_cast<int64_t>(found.common.size());
  const bool isTogether = indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  const int64_t before = isTogether ? indexed.front() : 0;
  for (int64_t dim = 0; dim < before; ++dim)
    found.placed.push_back(count + dim);
  llvm::append_range(found.placed, llvm::seq<int64_t>(0, count));
  for (auto dim = before; dim < rank - static_cast<int64_t>(indexed.size()); ++dim)
    found.placed.push_back(count + dim);
}

FailureOr<FlatIndices> flatIndices(Call &c, ArrayRef<int> inputs) {
  const SmallVector<int64_t> shape(c.shape("self"));
  if (inputs.size() > shape.size())
    return c.fail("there are more indices than dimensions");
  Build &b = c.b;
  FlatIndices found;
  SmallVector<int64_t> indexed;
  for (auto [dim, i] : llvm::enumerate(inputs)) {
    if (!c.has(i))
      continue;
    if (c.element(i).isInteger(1))
      return c.fail("masks as indices name elements whose number depends on data");
    auto both = broadcastShape(found.common, c.shape(i));
    if (!both)
      return c.fail("indices do not broadcast");
    found.common = *both;
    indexed.push_back(static_cast<int64_t>(dim));
  }
  if (indexed.empty())
    return c.fail("expected indices");
  orderDimensions(found, indexed, c.rank("self"));
  int64_t rows = 1;
  for (int64_t dim : indexed) {
    const int i = inputs[dim];
    auto indices = frontend::checkedIndices(c, i, shape[dim]);
    if (failed(indices))
      return failure();
    // An index that is out of its own dimension may be in range of all of them together.
    if (indexed.size() > 1 && shape[dim] > 0 && !c.constant(i))
      indices = frontend::inDimension(b, *indices, shape[dim]);
    Value wide = b.broadcastTo(b.convert(*indices, b.builder.getI64Type()), found.common), before = found.flat;
    found.flat = before ? b.add(b.mul(before, b.splatLike(before, static_cast<double>(shape[dim]))), wide) : wide;
    rows *= shape[dim];
  }
  found.table = {rows};
  found.all = found.common;
  for (int64_t dim : ArrayRef<int64_t>(found.order).drop_front(indexed.size())) {
    found.table.push_back(shape[dim]);
    found.all.push_back(shape[dim]);
  }
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
