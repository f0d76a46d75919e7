//===- OpsPart.cpp - slices and parts of tensors ---------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Parts that one operator may make: each is a value of the step.
constexpr int64_t kMostParts = 4096;

Value part(Call &c, const SliceRange &range) {
  return frontend::sliceAlong(c.b, c.value("self"), range.dim, range.from, range.to, range.step);
}

LogicalResult opSlice(Call &c) {
  auto range = sliceOf(c);
  return failed(range) ? failure() : c.set(part(c, *range));
}

LogicalResult opSelect(Call &c) {
  auto range = selectOf(c);
  if (failed(range))
    return failure();
  return c.set(frontend::elementAlong(c.b, c.value("self"), range->dim, range->from));
}

LogicalResult opNarrow(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  auto start = c.integer("start"), length = c.integer("length");
  if (!dim || c.rank("self") == 0 || !start || !length)
    return c.fail("the dimension is out of range, or the place is not known");
  const int64_t size = c.shape("self")[*dim], from = *start < 0 ? *start + size : *start;
  if (from < 0 || *length < 0 || from > size || *length > size - from)
    return c.fail("the part does not fit the dimension");
  return c.set(part(c, {*dim, from, from + *length}));
}

LogicalResult parts(Call &c, ArrayRef<int64_t> sizes, int64_t dim) {
  SmallVector<Value> made;
  int64_t from = 0;
  for (int64_t size : sizes) {
    if (size < 0 || from + size > c.shape("self")[dim])
      return c.fail("the parts do not fit the dimension");
    made.push_back(part(c, {dim, from, from + size}));
    from += size;
  }
  return from == c.shape("self")[dim] ? c.setList(made) : c.fail("the parts do not fit the dimension");
}

LogicalResult opSplit(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  auto sizes = c.ints(c.has("split_sizes") ? "split_sizes" : "split_size");
  if (!dim || c.rank("self") == 0 || !sizes)
    return c.fail("the dimension or the sizes are out of range");
  if (!c.has("split_sizes") && c.integer("split_size")) {
    const int64_t size = *c.integer("split_size"), all = c.shape("self")[*dim];
    if (size < 1 || all / size > kMostParts)
      return c.fail("the size of the parts is out of range");
    sizes->clear();
    for (int64_t from = 0; from < all; from += size)
      sizes->push_back(std::min(size, all - from));
  }
  return parts(c, *sizes, *dim);
}

LogicalResult opChunk(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  const int64_t count = c.integerOr("chunks", 0);
  if (!dim || c.rank("self") == 0 || count < 1 || count > kMostParts)
    return c.fail("the dimension or the number of parts is out of range");
  const int64_t all = c.shape("self")[*dim], size = std::max<int64_t>(1, (all + count - 1) / count);
  SmallVector<int64_t> sizes;
  for (int64_t from = 0; from < all; from += size)
    sizes.push_back(std::min(size, all - from));
  return parts(c, sizes, *dim);
}

LogicalResult opUnbind(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0 || c.shape("self")[*dim] > kMostParts)
    return c.fail("the dimension is out of range");
  SmallVector<Value> made;
  for (int64_t i = 0; i < c.shape("self")[*dim]; ++i)
    made.push_back(frontend::elementAlong(c.b, c.value("self"), *dim, i));
  return c.setList(made);
}

/// At places, as Python slices: from one to the next, and to the end.
LogicalResult splitAt(Call &c, ArrayRef<int64_t> places, int64_t dim) {
  if (static_cast<int64_t>(places.size()) >= kMostParts)
    return c.fail("the number of parts is out of range");
  const int64_t all = c.shape("self")[dim];
  SmallVector<Value> made;
  int64_t from = 0;
  for (size_t i = 0; i <= places.size(); ++i) {
    const int64_t given = i < places.size() ? places[i] : all;
    const int64_t to = std::clamp<int64_t>(given < 0 ? given + all : given, 0, all);
    made.push_back(part(c, {dim, from, std::max(from, to)}));
    from = to;
  }
  return c.setList(made);
}

/// Into a number of parts, of which the first ones have one element more; or at places.
LogicalResult tensorSplit(Call &c, std::optional<int64_t> dim, bool isEven) {
  if (!dim || c.rank("self") == 0)
    return c.fail("the dimension is out of range");
  if (c.has("indices")) {
    auto places = c.ints("indices");
    return places ? splitAt(c, *places, *dim) : c.fail("the places are not known");
  }
  const int64_t count = c.integerOr("sections", 0), all = c.shape("self")[*dim];
  if (count < 1 || count > kMostParts || (isEven && all % count != 0))
    return c.fail("the number of parts is out of range, or does not divide the dimension");
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(all / count + (i < all % count ? 1 : 0));
  return parts(c, sizes, *dim);
}
LogicalResult opTensorSplit(Call &c) {
  return tensorSplit(c, axisOf(c.integerOr("dim", 0), c.rank("self")), /*isEven=*/false);
}
/// hsplit, vsplit and dsplit.
template <int64_t dim> LogicalResult opSplitDim(Call &c) {
  const int64_t rank = c.rank("self"), at = dim == 1 && rank == 1 ? 0 : dim;
  return tensorSplit(c, at < rank ? std::optional(at) : std::nullopt, /*isEven=*/true);
}

const OpRow kPartOps[] = {
    {"aten.chunk.default", opChunk},
    {"aten.dsplit.array", opSplitDim<2>},
    {"aten.dsplit.int", opSplitDim<2>},
    {"aten.hsplit.array", opSplitDim<1>},
    {"aten.hsplit.int", opSplitDim<1>},
    {"aten.narrow.default", opNarrow},
    {"aten.select.int", opSelect},
    {"aten.slice.Tensor", opSlice},
    {"aten.split.Tensor", opSplit},
    {"aten.split.sizes", opSplit},
    {"aten.split_with_sizes.default", opSplit},
    {"aten.tensor_split.indices", opTensorSplit},
    {"aten.tensor_split.sections", opTensorSplit},
    {"aten.unbind.int", opUnbind},
    {"aten.unsafe_chunk.default", opChunk},
    {"aten.unsafe_split.Tensor", opSplit},
    {"aten.unsafe_split_with_sizes.default", opSplit},
    {"aten.vsplit.array", opSplitDim<0>},
    {"aten.vsplit.int", opSplitDim<0>},
};
} // namespace

llvm::ArrayRef<OpRow> partOps() { return kPartOps; }

} // namespace tessera::pt2
