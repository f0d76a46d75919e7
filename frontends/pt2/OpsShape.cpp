//===- OpsShape.cpp - other shapes of the same elements, repetitions --------===//

#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// A shape of which one size may be -1, for a number of elements.
std::optional<SmallVector<int64_t>> inferred(ArrayRef<int64_t> wanted, int64_t elements) {
  SmallVector<int64_t> shape(wanted);
  int64_t known = 1, open = -1;
  for (auto [dim, size] : llvm::enumerate(wanted)) {
    if (size == -1 && open < 0)
      open = static_cast<int64_t>(dim);
    else if (size < 0 || (size > 0 && known > frontend::kMaxElements / size))
      return std::nullopt;
    else
      known *= size;
  }
  if (open >= 0) {
    if (known == 0 || elements % known != 0)
      return std::nullopt;
    shape[open] = elements / known;
    known *= shape[open];
  }
  return known == elements ? std::optional(shape) : std::nullopt;
}

LogicalResult reshapeTo(Call &c, ArrayRef<int64_t> wanted) {
  auto shape = inferred(wanted, c.type("self").getNumElements());
  if (!shape)
    return c.fail("a tensor of shape " + shapeText(c.shape("self")) + " has no view of shape " + shapeText(wanted));
  return c.set(c.b.reshape(c.value("self"), *shape));
}

LogicalResult opView(Call &c) {
  auto wanted = c.ints(c.has("size") ? "size" : "shape");
  return wanted ? reshapeTo(c, *wanted) : c.fail("the shape is not known");
}

LogicalResult opReshapeAs(Call &c) { return reshapeTo(c, SmallVector<int64_t>(c.shape("other"))); }
LogicalResult opRavel(Call &c) { return reshapeTo(c, {-1}); }

LogicalResult opFlatten(Call &c) {
  const int64_t rank = c.rank("self");
  auto first = axisOf(c.integerOr("start_dim", 0), std::max<int64_t>(rank, 1)),
       last = axisOf(c.integerOr("end_dim", -1), std::max<int64_t>(rank, 1));
  if (!first || !last || *first > *last)
    return c.fail("dimensions are out of range");
  if (rank == 0)
    return reshapeTo(c, {1});
  SmallVector<int64_t> shape(c.shape("self").take_front(*first));
  int64_t joined = 1;
  for (int64_t size : c.shape("self").slice(*first, *last - *first + 1))
    joined *= size;
  shape.push_back(joined);
  llvm::append_range(shape, c.shape("self").drop_front(*last + 1));
  return reshapeTo(c, shape);
}

LogicalResult opUnflatten(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  auto sizes = c.ints("sizes");
  auto inner = dim && sizes ? inferred(*sizes, c.shape("self")[*dim]) : std::nullopt;
  if (!inner)
    return c.fail("the dimension or its sizes are out of range");
  SmallVector<int64_t> shape(c.shape("self").take_front(*dim));
  llvm::append_range(shape, *inner);
  llvm::append_range(shape, c.shape("self").drop_front(*dim + 1));
  return reshapeTo(c, shape);
}

LogicalResult opTranspose(Call &c) {
  const int64_t rank = c.rank("self");
  const bool isAxis = c.has("axis0");
  auto first = axisOf(c.integerOr(isAxis ? "axis0" : "dim0", 0), rank),
       second = axisOf(c.integerOr(isAxis ? "axis1" : "dim1", 0), rank);
  if (!first || !second)
    return c.fail("dimensions are out of range");
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[*first], order[*second]);
  return c.set(c.b.transpose(c.value("self"), order));
}

LogicalResult opT(Call &c) {
  if (c.rank("self") > 2)
    return c.fail("more than two dimensions");
  return c.set(c.rank("self") < 2 ? c.value("self") : c.b.transpose(c.value("self"), {1, 0}));
}

LogicalResult opPermute(Call &c) {
  const int64_t rank = c.rank("self");
  auto order = c.ints("dims");
  if (!order || static_cast<int64_t>(order->size()) != rank)
    return c.fail("expected an order of all dimensions");
  SmallVector<bool> seen(rank, false);
  for (int64_t &dim : *order) {
    auto place = axisOf(dim, rank);
    if (!place || seen[*place])
      return c.fail("expected an order of all dimensions");
    seen[dim = *place] = true;
  }
  return c.set(c.b.transpose(c.value("self"), *order));
}

LogicalResult opUnsqueeze(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self") + 1);
  if (!dim)
    return c.fail("the dimension is out of range");
  SmallVector<int64_t> shape(c.shape("self"));
  shape.insert(shape.begin() + *dim, 1);
  return reshapeTo(c, shape);
}

LogicalResult opSqueeze(Call &c) {
  auto dims = c.has("dim") ? c.axes("dim", c.rank("self"))
                           : std::optional(llvm::to_vector(llvm::seq<int64_t>(0, c.rank("self"))));
  if (!dims)
    return c.fail("a dimension is out of range");
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(c.shape("self")))
    if (size != 1 || !llvm::is_contained(*dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return reshapeTo(c, shape);
}

LogicalResult expandTo(Call &c, SmallVector<int64_t> shape) {
  ArrayRef<int64_t> from = c.shape("self");
  if (shape.size() < from.size())
    return c.fail("fewer dimensions than the tensor has");
  const size_t lead = shape.size() - from.size();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == -1 && dim >= lead)
      shape[dim] = from[dim - lead];
    if (shape[dim] < 0 || (dim >= lead && from[dim - lead] != 1 && from[dim - lead] != shape[dim]))
      return c.fail("cannot expand " + shapeText(from) + " to " + shapeText(shape));
  }
  if (!countElements(shape))
    return c.fail("the result is too large");
  return c.set(c.b.broadcastTo(c.value("self"), shape));
}

LogicalResult opExpand(Call &c) {
  auto shape = c.ints("size");
  return shape ? expandTo(c, *shape) : c.fail("the shape is not known");
}
LogicalResult opExpandAs(Call &c) { return expandTo(c, SmallVector<int64_t>(c.shape("other"))); }

LogicalResult repeatBy(Call &c, ArrayRef<int64_t> repeats) {
  SmallVector<int64_t> from(repeats.size() - c.rank("self"), 1), mixed, shape, dims;
  llvm::append_range(from, c.shape("self"));
  for (auto [size, times] : llvm::zip_equal(from, repeats)) {
    if (times < 0 || times > frontend::kMaxElements)
      return c.fail("a number of repetitions is out of range");
    mixed.push_back(times);
    dims.push_back(mixed.size());
    mixed.push_back(size);
    shape.push_back(times * size);
  }
  if (!countElements(mixed))
    return c.fail("the result is too large");
  return c.set(c.b.reshape(c.b.broadcast(c.b.reshape(c.value("self"), from), mixed, dims), shape));
}

LogicalResult opRepeat(Call &c) {
  auto repeats = c.ints("repeats");
  if (!repeats || static_cast<int64_t>(repeats->size()) < c.rank("self"))
    return c.fail("fewer repetitions than dimensions");
  return repeatBy(c, *repeats);
}
/// The last dimensions are repeated where there are fewer numbers.
LogicalResult opTile(Call &c) {
  auto repeats = c.ints("dims");
  if (!repeats)
    return c.fail("the numbers of repetitions are not known");
  while (static_cast<int64_t>(repeats->size()) < c.rank("self"))
    repeats->insert(repeats->begin(), 1);
  return repeatBy(c, *repeats);
}

/// The sum over dimensions that a broadcast from `size` would have made.
LogicalResult opSumToSize(Call &c) {
  auto shape = c.ints("size");
  auto wide = shape ? broadcastShape(*shape, c.shape("self")) : std::nullopt;
  if (!wide || ArrayRef<int64_t>(*wide) != c.shape("self") || c.element("self").isInteger(1))
    return c.fail("the tensor is no broadcast of that shape, or boolean");
  const int64_t lead = c.rank("self") - static_cast<int64_t>(shape->size());
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < c.rank("self"); ++dim)
    if (dim < lead || (*shape)[dim - lead] != c.shape("self")[dim])
      dims.push_back(dim);
  Value x = c.value("self");
  return c.set(c.b.reshape(dims.empty() ? x : c.b.sum(x, dims), *shape));
}

const OpRow kShapeOps[] = {
    {"aten.broadcast_to.default", opExpand},
    {"aten.expand.default", opExpand},
    {"aten.expand_as.default", opExpandAs, "self,other"},
    {"aten.flatten.using_ints", opFlatten},
    {"aten.permute.default", opPermute},
    {"aten.ravel.default", opRavel},
    {"aten.repeat.default", opRepeat},
    {"aten.reshape.default", opView},
    {"aten.reshape_as.default", opReshapeAs, "self,other"},
    {"aten._unsafe_view.default", opView},
    {"aten.squeeze.default", opSqueeze},
    {"aten.squeeze.dim", opSqueeze},
    {"aten.squeeze.dims", opSqueeze},
    {"aten.sum_to_size.default", opSumToSize},
    {"aten.swapaxes.default", opTranspose},
    {"aten.swapdims.default", opTranspose},
    {"aten.t.default", opT},
    {"aten.tile.default", opTile},
    {"aten.transpose.int", opTranspose},
    {"aten.unflatten.int", opUnflatten},
    {"aten.unsqueeze.default", opUnsqueeze},
    {"aten.view.default", opView},
};
} // namespace

llvm::ArrayRef<OpRow> shapeOps() { return kShapeOps; }

} // namespace tessera::pt2
