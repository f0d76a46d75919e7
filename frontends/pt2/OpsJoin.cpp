//===- OpsJoin.cpp - tensors joined, and given a common shape --------------===//

#include "frontends/common/Axis.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
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

LogicalResult concatenate(Call &c, SmallVector<Value> values, int64_t along) {
  // An empty vector joins anything.
  llvm::erase_if(values, [&](Value x) { return values.size() > 1 && shapeOf(x) == ArrayRef<int64_t>{0}; });
  if (values.empty())
    return c.fail("nothing is joined");
  auto dim = axisOf(along, shapeOf(values[0]).size());
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

LogicalResult opCat(Call &c) {
  SmallVector<Value> values;
  return failed(joined(c, values)) ? failure() : concatenate(c, values, c.integerOr("dim", 0));
}

/// The shape with at least `rank` dimensions that numpy gives.
SmallVector<int64_t> atLeast(ArrayRef<int64_t> shape, int64_t rank) {
  SmallVector<int64_t> wide(shape);
  if (wide.empty())
    wide.push_back(1);
  if (wide.size() == 1 && rank > 1)
    wide.insert(wide.begin(), 1);
  if (wide.size() == 2 && rank > 2)
    wide.push_back(1);
  return wide;
}

/// hstack, vstack and dstack: along a dimension that every tensor is given.
template <int64_t dim> LogicalResult opStackDim(Call &c) {
  SmallVector<Value> values;
  if (failed(joined(c, values)))
    return failure();
  const int64_t rank = dim == 0 ? 2 : dim == 1 ? 1 : 3;
  for (Value &x : values)
    x = c.b.reshape(x, atLeast(shapeOf(x), rank));
  return concatenate(c, values, dim == 1 && shapeOf(values[0]).size() == 1 ? 0 : dim);
}

/// Vectors are columns.
LogicalResult opColumnStack(Call &c) {
  SmallVector<Value> values;
  if (failed(joined(c, values)))
    return failure();
  for (Value &x : values)
    if (shapeOf(x).size() < 2)
      x = c.b.reshape(x, {tensorType(x).getNumElements(), 1});
  return concatenate(c, values, 1);
}

template <int64_t rank> LogicalResult opAtLeast(Call &c) {
  if (c.isTensor("self"))
    return c.set(c.b.reshape(c.value("self"), atLeast(c.shape("self"), rank)));
  auto list = c.list("tensors");
  if (!list || llvm::any_of(*list, [&](int i) { return !c.has(i); }))
    return c.fail("expected a list of tensors");
  SmallVector<Value> made;
  for (int i : *list)
    made.push_back(c.b.reshape(c.input(i), atLeast(c.shape(i), rank)));
  return c.setList(made);
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
    const int64_t size = shapeOf(x)[*dim];
    x = c.b.sub(frontend::sliceAlong(c.b, x, *dim, 1, size), frontend::sliceAlong(c.b, x, *dim, 0, size - 1));
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

/// Each vector along a dimension of its own, of results of one shape; with `xy` the first two dimensions change places.
LogicalResult opMeshgrid(Call &c) {
  auto list = c.list("tensors");
  const std::string order = c.text("indexing", "ij");
  if (!list || list->empty() || (order != "ij" && order != "xy"))
    return c.fail("expected a list of tensors, and indexing 'ij' or 'xy'");
  SmallVector<int64_t> shape, dims;
  for (auto [at, i] : llvm::enumerate(*list)) {
    if (!c.has(i) || c.rank(i) > 1)
      return c.fail("expected vectors");
    shape.push_back(c.type(i).getNumElements());
    dims.push_back(static_cast<int64_t>(at));
  }
  if (order == "xy" && shape.size() > 1) {
    std::swap(shape[0], shape[1]);
    std::swap(dims[0], dims[1]);
  }
  if (!countElements(shape))
    return c.fail("the results are too large");
  SmallVector<Value> made;
  for (auto [dim, i] : llvm::zip_equal(dims, *list))
    made.push_back(c.b.broadcast(c.b.reshape(c.input(i), {c.type(i).getNumElements()}), shape, {dim}));
  return c.setList(made);
}

const OpRow kJoinOps[] = {
    {"aten.atleast_1d.Sequence", opAtLeast<1>, ""},
    {"aten.atleast_1d.default", opAtLeast<1>},
    {"aten.atleast_2d.Sequence", opAtLeast<2>, ""},
    {"aten.atleast_2d.default", opAtLeast<2>},
    {"aten.atleast_3d.Sequence", opAtLeast<3>, ""},
    {"aten.atleast_3d.default", opAtLeast<3>},
    {"aten.broadcast_tensors.default", opBroadcastTensors, ""},
    {"aten.cat.default", opCat, ""},
    {"aten.column_stack.default", opColumnStack, ""},
    {"aten.concat.default", opCat, ""},
    {"aten.concatenate.default", opCat, ""},
    {"aten.diff.default", opDiff},
    {"aten.dstack.default", opStackDim<2>, ""},
    {"aten.hstack.default", opStackDim<1>, ""},
    {"aten.meshgrid.default", opMeshgrid, ""},
    {"aten.meshgrid.indexing", opMeshgrid, ""},
    {"aten.row_stack.default", opStackDim<0>, ""},
    {"aten.stack.default", opStack, ""},
    {"aten.vstack.default", opStackDim<0>, ""},
};
} // namespace

llvm::ArrayRef<OpRow> joinOps() { return kJoinOps; }

} // namespace tessera::pt2
