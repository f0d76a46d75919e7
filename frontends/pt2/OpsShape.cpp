//===- OpsShape.cpp - views, slices, joins ---------------------------------===//

#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

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

Value part(Call &c, StringRef name, const SliceRange &range) {
  Value x = c.value(name);
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x)), steps(starts.size(), 1);
  starts[range.dim] = range.from;
  limits[range.dim] = range.to;
  steps[range.dim] = range.step;
  return c.b.slice(x, starts, limits, steps);
}

LogicalResult opSlice(Call &c) {
  auto range = sliceOf(c);
  return failed(range) ? failure() : c.set(part(c, "self", *range));
}

LogicalResult opSelect(Call &c) {
  auto range = selectOf(c);
  if (failed(range))
    return failure();
  SmallVector<int64_t> shape(c.shape("self"));
  shape.erase(shape.begin() + range->dim);
  return c.set(c.b.reshape(part(c, "self", *range), shape));
}

LogicalResult parts(Call &c, ArrayRef<int64_t> sizes, int64_t dim) {
  SmallVector<Value> made;
  int64_t from = 0;
  for (int64_t size : sizes) {
    if (size < 0 || from + size > c.shape("self")[dim])
      return c.fail("the parts do not fit the dimension");
    made.push_back(part(c, "self", {dim, from, from + size}));
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
    if (size < 1 || all / size > 4096)
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
  if (!dim || c.rank("self") == 0 || count < 1 || count > 4096)
    return c.fail("the dimension or the number of parts is out of range");
  const int64_t all = c.shape("self")[*dim], size = std::max<int64_t>(1, (all + count - 1) / count);
  SmallVector<int64_t> sizes;
  for (int64_t from = 0; from < all; from += size)
    sizes.push_back(std::min(size, all - from));
  return parts(c, sizes, *dim);
}

LogicalResult opUnbind(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0 || c.shape("self")[*dim] > 4096)
    return c.fail("the dimension is out of range");
  SmallVector<int64_t> shape(c.shape("self"));
  shape.erase(shape.begin() + *dim);
  SmallVector<Value> made;
  for (int64_t i = 0; i < c.shape("self")[*dim]; ++i)
    made.push_back(c.b.reshape(part(c, "self", {*dim, i, i + 1}), shape));
  return c.setList(made);
}

/// All tensors of a list, in the result's type; fails where their shapes differ but in `dim`.
LogicalResult joined(Call &c, SmallVectorImpl<Value> &values) {
  auto list = c.list("tensors");
  if (!list || list->empty() || !c.resultElement())
    return c.fail("expected a list of tensors");
  for (int i : *list) {
    if (!c.has(i))
      return c.fail("None is in the list");
    values.push_back(c.b.convert(c.input(i), c.resultElement()));
  }
  return success();
}

LogicalResult opCat(Call &c) {
  SmallVector<Value> values;
  if (failed(joined(c, values)))
    return failure();
  // An empty vector joins anything.
  llvm::erase_if(values, [&](Value x) { return values.size() > 1 && shapeOf(x) == ArrayRef<int64_t>{0}; });
  if (values.empty())
    return c.fail("nothing is joined");
  auto dim = axisOf(c.integerOr("dim", 0), shapeOf(values[0]).size());
  if (!dim || shapeOf(values[0]).empty())
    return c.fail("the dimension is out of range");
  for (Value x : values) {
    SmallVector<int64_t> shape(shapeOf(x));
    if (shape.size() != shapeOf(values[0]).size())
      return c.fail("the tensors have different numbers of dimensions");
    shape[*dim] = shapeOf(values[0])[*dim];
    if (ArrayRef<int64_t>(shape) != shapeOf(values[0]))
      return c.fail("the tensors have different shapes");
  }
  return c.set(values.size() == 1 ? values[0] : c.b.concat(values, *dim));
}

/// Differences of neighbours, of what is joined of `prepend`, the tensor and `append`.
LogicalResult opDiff(Call &c) {
  auto dim = axisOf(c.integerOr("dim", -1), c.rank("self"));
  const int64_t times = c.integerOr("n", 1);
  if (!dim || c.rank("self") == 0 || c.element("self").isInteger(1) || times < 0 || times > 16)
    return c.fail("expected numbers, a dimension, and a small number of differences");
  SmallVector<Value> values;
  for (StringRef name : {"prepend", "self", "append"}) {
    if (!c.isTensor(name))
      continue;
    SmallVector<int64_t> shape(c.shape(name));
    if (c.element(name) != c.element("self") || c.rank(name) != c.rank("self"))
      return c.fail("'" + name + "' does not fit");
    shape[*dim] = c.shape("self")[*dim];
    if (ArrayRef<int64_t>(shape) != c.shape("self"))
      return c.fail("'" + name + "' does not fit");
    values.push_back(c.value(name));
  }
  Value x = values.size() == 1 ? values[0] : c.b.concat(values, *dim);
  for (int64_t i = 0; i < times && shapeOf(x)[*dim] > 0; ++i) {
    SmallVector<int64_t> zeros(shapeOf(x).size(), 0), from(zeros), shape(shapeOf(x)), end(shape);
    from[*dim] = 1;
    end[*dim] -= 1;
    x = c.b.sub(c.b.slice(x, from, shape), c.b.slice(x, zeros, end));
  }
  return c.set(x);
}

LogicalResult opStack(Call &c) {
  SmallVector<Value> values;
  if (failed(joined(c, values)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(values[0]));
  auto dim = axisOf(c.integerOr("dim", 0), shape.size() + 1);
  if (!dim)
    return c.fail("the dimension is out of range");
  shape.insert(shape.begin() + *dim, 1);
  for (Value &x : values) {
    if (shapeOf(x) != shapeOf(values[0]) && &x != &values[0])
      return c.fail("the tensors have different shapes");
  }
  for (Value &x : values)
    x = c.b.reshape(x, shape);
  return c.set(values.size() == 1 ? values[0] : c.b.concat(values, *dim));
}

LogicalResult opBroadcastTensors(Call &c) {
  auto list = c.list("tensors");
  if (!list)
    return c.fail("expected a list of tensors");
  SmallVector<int64_t> common;
  for (int i : *list) {
    auto shape = c.has(i) ? broadcastShape(common, c.shape(i)) : std::nullopt;
    if (!shape)
      return c.fail("the tensors do not broadcast");
    common = *shape;
  }
  SmallVector<Value> made;
  for (int i : *list)
    made.push_back(c.inputTo(i, common));
  return c.setList(made);
}

LogicalResult opRepeat(Call &c) {
  auto repeats = c.ints("repeats");
  if (!repeats || static_cast<int64_t>(repeats->size()) < c.rank("self"))
    return c.fail("fewer repetitions than dimensions");
  SmallVector<int64_t> from(repeats->size() - c.rank("self"), 1), mixed, shape, dims;
  llvm::append_range(from, c.shape("self"));
  for (auto [size, times] : llvm::zip_equal(from, *repeats)) {
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

const OpRow kRows[] = {
    {"aten.broadcast_tensors.default", opBroadcastTensors, ""},
    {"aten.cat.default", opCat, ""},
    {"aten.chunk.default", opChunk},
    {"aten.concat.default", opCat, ""},
    {"aten.diff.default", opDiff},
    {"aten.expand.default", opExpand},
    {"aten.expand_as.default", opExpandAs, "self,other"},
    {"aten.flatten.using_ints", opFlatten},
    {"aten.permute.default", opPermute},
    {"aten.repeat.default", opRepeat},
    {"aten.reshape.default", opView},
    {"aten._unsafe_view.default", opView},
    {"aten.select.int", opSelect},
    {"aten.slice.Tensor", opSlice},
    {"aten.split.Tensor", opSplit},
    {"aten.split.sizes", opSplit},
    {"aten.split_with_sizes.default", opSplit},
    {"aten.squeeze.default", opSqueeze},
    {"aten.squeeze.dim", opSqueeze},
    {"aten.squeeze.dims", opSqueeze},
    {"aten.stack.default", opStack, ""},
    {"aten.t.default", opT},
    {"aten.swapaxes.default", opTranspose},
    {"aten.swapdims.default", opTranspose},
    {"aten.transpose.int", opTranspose},
    {"aten.unbind.int", opUnbind},
    {"aten.unflatten.int", opUnflatten},
    {"aten.unsqueeze.default", opUnsqueeze},
    {"aten.view.default", opView},
};
} // namespace

llvm::ArrayRef<OpRow> shapeOps() { return kRows; }

} // namespace tessera::pt2
