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

namespace {
/// The indices of one dimension: a tensor that is input `input`, or places that a known mask names.
struct DimensionIndex {
  int64_t dim;
  int input;
  std::optional<HostTensor> places = std::nullopt;
};
} // namespace

/// A mask as indices of each of its dimensions: of the elements where it is true, in order.
static LogicalResult addMask(Call &c, int input, int64_t dim, SmallVectorImpl<DimensionIndex> &indices) {
  const HostTensor *mask = c.constant(input);
  if (!mask)
    return c.fail("masks as indices name elements whose number depends on data");
  ArrayRef<int64_t> shape = mask->shape();
  if (shape.empty() || dim + static_cast<int64_t>(shape.size()) > c.rank("self") ||
      shape != c.shape("self").slice(dim, shape.size()))
    return c.fail("a mask does not have the shape of what it masks");
  SmallVector<SmallVector<int64_t>> places(shape.size());
  for (int64_t at = 0; at < mask->size(); ++at) {
    if (mask->ints[at] == 0)
      continue;
    for (int64_t rest = at, inner = static_cast<int64_t>(shape.size()) - 1; inner >= 0; rest /= shape[inner--])
      places[inner].push_back(rest % shape[inner]);
  }
  for (auto [i, column] : llvm::enumerate(places)) {
    auto type = RankedTensorType::get({static_cast<int64_t>(column.size())}, c.b.builder.getI64Type());
    HostTensor values = HostTensor::splat(type, 0);
    values.ints.assign(column.begin(), column.end());
    indices.push_back({dim + static_cast<int64_t>(i), input, std::move(values)});
  }
  return success();
}

/// The indices as a value, counted from the front.
static FailureOr<Value> valueOf(Call &c, const DimensionIndex &index, int64_t size) {
  return index.places ? FailureOr<Value>(c.b.constant(index.places->toAttr()))
                      : frontend::checkedIndices(c, index.input, size);
}

/// See FlatIndices::first. Masks of transformers are read so, `mask[arange(B)[:, None], arange(T)]`: a lookup by values
/// would hide that each sample reads its own.
static std::optional<int64_t> firstOfRun(Call &c, ArrayRef<DimensionIndex> indices, ArrayRef<int64_t> shape,
                                         ArrayRef<int64_t> common) {
  constexpr int64_t kMost = 1 << 22;
  const auto count = countElements(common).value_or(0);
  if (count == 0 || count > kMost)
    return std::nullopt;
  std::vector<int64_t> flat(count, 0);
  for (const DimensionIndex &index : indices) {
    const HostTensor *known = index.places ? &*index.places : c.constant(index.input);
    if (!known || known->isFloat())
      return std::nullopt;
    const int64_t size = shape[index.dim];
    ArrayRef<int64_t> own = known->shape();
    for (int64_t at = 0; at < count; ++at) {
      int64_t place = 0, stride = 1, rest = at;
      for (auto [from, to] : llvm::zip(llvm::reverse(own), llvm::reverse(common))) {
        place += from == 1 ? 0 : rest % to * stride;
        stride *= from;
        rest /= to;
      }
      const int64_t value = known->ints[place] + (known->ints[place] < 0 ? size : 0);
      if (value < 0 || value >= size)
        return std::nullopt;
      flat[at] = flat[at] * size + value;
      if (&index == &indices.back() && flat[at] != flat[0] + at)
        return std::nullopt;
    }
  }
  return flat[0];
}

/// Whether an index counts the places along dimension 0 of `common`, as does `arange(x.shape[0])`, and names all of a
/// dimension of `size`.
static bool countsPlaces(const HostTensor *known, ArrayRef<int64_t> common, int64_t size) {
  if (!known || known->isFloat() || common.empty() || known->shape().size() != common.size() ||
      common.front() != size || known->size() != size || known->shape().front() != size)
    return false;
  return llvm::all_of(llvm::enumerate(known->ints), [](auto entry) { return entry.value() == int64_t(entry.index()); });
}

FailureOr<FlatIndices> flatIndices(Call &c, ArrayRef<int> inputs) {
  const SmallVector<int64_t> shape(c.shape("self"));
  Build &b = c.b;
  FlatIndices found;
  SmallVector<DimensionIndex> indices;
  int64_t dim = 0;
  for (int i : inputs) {
    const bool isMask = c.has(i) && c.element(i).isInteger(1);
    if (isMask && failed(addMask(c, i, dim, indices)))
      return failure();
    if (c.has(i) && !isMask)
      indices.push_back({dim, i});
    dim += isMask ? c.rank(i) : 1;
  }
  if (dim > c.rank("self"))
    return c.fail("there are more indices than dimensions");
  SmallVector<int64_t> indexed;
  for (const DimensionIndex &index : indices) {
    auto both = broadcastShape(found.common, index.places ? index.places->shape() : c.shape(index.input));
    if (!both)
      return c.fail("indices do not broadcast");
    found.common = *both;
    indexed.push_back(index.dim);
  }
  if (indexed.empty())
    return c.fail("expected indices");
  orderDimensions(found, indexed, c.rank("self"));
  int64_t rows = 1;
  for (const DimensionIndex &index : indices) {
    const int64_t size = shape[index.dim];
    auto places = valueOf(c, index, size);
    if (failed(places))
      return failure();
    // An index that is out of its own dimension may be in range of all of them together.
    if (indexed.size() > 1 && size > 0 && !c.constant(index.input))
      places = frontend::inDimension(b, *places, size);
    Value wide = b.broadcastTo(b.convert(*places, b.builder.getI64Type()), found.common), before = found.flat;
    found.flat = before ? b.add(b.mul(before, b.splatLike(before, static_cast<double>(size))), wide) : wide;
    rows *= size;
    found.within = wide;
  }
  const DimensionIndex &first = indices.front();
  found.areOwnRows =
      countsPlaces(first.places ? &*first.places : c.constant(first.input), found.common, shape[first.dim]);
  if (!found.areOwnRows || indexed != SmallVector<int64_t>{0, 1})
    found.within = {};
  found.first = firstOfRun(c, indices, shape, found.common);
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
