//===- OpsScatter.cpp - reads and writes of elements by index ---------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Masks.h"
#include "frontends/common/Scatter.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::ScatterKind;

/// Whether the tensor and the indices are inputs 0 and 1, of one rank that is not 0.
LogicalResult checkElements(Call &c, StringRef index = "index") {
  if (c.at("self") != 0 || c.at(index) != 1 || c.rank("self") == 0 || c.isFloat(index))
    return c.fail("expected a tensor with dimensions, a known dimension and indices");
  return success();
}

LogicalResult gather(Call &c, int64_t dim) {
  auto elements = frontend::ElementIndices::of(c, dim);
  if (failed(elements))
    return failure();
  auto places = elements->places(c);
  if (failed(places))
    return failure();
  Value data = elements->arrange(c.b, elements->corner(c.b, c.value("self")));
  return c.set(elements->restore(c.b, frontend::pick(c.b, data, *places)));
}

LogicalResult opGather(Call &c) { return failed(checkElements(c)) ? failure() : gather(c, c.integerOr("dim", 0)); }

/// As gather, of shapes that differ in one dimension only.
LogicalResult opTakeAlongDim(Call &c) {
  auto dim = c.has("dim") ? axisOf(c.integerOr("dim", 0), c.rank("self")) : std::nullopt;
  if (failed(checkElements(c, "indices")) || !dim)
    return c.reason.empty() ? c.fail("without a dimension it is not supported") : failure();
  SmallVector<int64_t> shape(c.shape("indices"));
  if (shape.size() == c.shape("self").size())
    shape[*dim] = c.shape("self")[*dim];
  if (ArrayRef<int64_t>(shape) != c.shape("self"))
    return c.fail("indices that are broadcast are not supported");
  return gather(c, *dim);
}

/// What is written, of the shape of the indices.
FailureOr<Value> updatesOf(Call &c) {
  Build &b = c.b;
  const SmallVector<int64_t> shape(c.shape("index"));
  if (c.isTensor("src")) {
    if (c.rank("src") != c.rank("index") || c.element("src") != c.element("self"))
      return c.fail("what is written has another type or rank");
    for (auto [size, most] : llvm::zip_equal(shape, c.shape("src")))
      if (size > most)
        return c.fail("there are more indices than elements to write");
    return b.slice(c.value("src"), SmallVector<int64_t>(shape.size(), 0), shape);
  }
  auto value = c.number("value");
  auto one = value ? c.splat(c.element("self"), *value) : FailureOr<Value>(failure());
  if (failed(one))
    return c.reason.empty() ? c.fail("the value is not a number that a double holds") : failure();
  return b.broadcastTo(*one, shape);
}

LogicalResult scatter(Call &c, ScatterKind kind) {
  if (failed(checkElements(c)))
    return failure();
  auto updates = updatesOf(c);
  if (failed(updates))
    return failure();
  auto made = frontend::scattered(c, c.integerOr("dim", 0), kind, c.value("self"), *updates);
  return failed(made) ? failure() : c.set(*made);
}
template <ScatterKind kind> LogicalResult opScatter(Call &c) { return scatter(c, kind); }

/// The tensor with what is written combined where it lands; without `include_self`, what was there counts only where
/// nothing lands.
LogicalResult opScatterReduce(Call &c) {
  const std::string how = c.text("reduce", "");
  const bool isMean = how == "mean", hasSelf = c.flag("include_self", true);
  const std::optional<ScatterKind> kind = how == "sum" || isMean ? std::optional(ScatterKind::Add)
                                          : how == "prod"        ? std::optional(ScatterKind::Mul)
                                          : how == "amax"        ? std::optional(ScatterKind::Max)
                                          : how == "amin"        ? std::optional(ScatterKind::Min)
                                                                 : std::nullopt;
  if (!kind)
    return c.fail("reduction '" + how + "' is not supported");
  if (hasSelf && !isMean)
    return scatter(c, *kind);
  if (failed(checkElements(c)))
    return failure();
  if (!c.isFloat("self"))
    return c.fail("of integers the mean, and reductions with include_self=False, are not supported");
  auto updates = updatesOf(c);
  if (failed(updates))
    return failure();
  Build &b = c.b;
  const int64_t dim = c.integerOr("dim", 0);
  Value x = c.value("self"), start = hasSelf ? x : frontend::neutral(b, *kind, c.type("self"));
  auto combined = frontend::scattered(c, dim, *kind, start, *updates);
  // The number of what lands, which has no gradient.
  auto counts = frontend::scattered(c, dim, ScatterKind::Add, b.splatLike(x, 0), b.splatLike(*updates, 1));
  if (failed(combined) || failed(counts))
    return failure();
  Value isHit = frontend::compareWith(b, CompareDirection::Gt, *counts, 0), one = b.splatLike(x, 1);
  Value result = !isMean   ? *combined
                 : hasSelf ? b.div(*combined, b.add(*counts, one))
                           : b.div(*combined, b.select(isHit, *counts, one));
  return c.set(hasSelf ? result : b.select(isHit, result, x));
}

/// What places rows along a dimension; `rows` gives them, the dimension in front.
LogicalResult placeRows(Call &c, ScatterKind kind, int64_t dim, llvm::function_ref<FailureOr<Value>()> rows) {
  auto indices = frontend::checkedIndices(c, c.at("index"), c.shape("self")[dim]);
  if (failed(indices))
    return failure();
  Build &b = c.b;
  Value data = b.moveDim(c.value("self"), dim, 0);
  if (!frontend::canPlace(kind, data, *indices))
    return frontend::tooManyIndices(c, kind);
  FailureOr<Value> updates = rows();
  return failed(updates) ? failure() : c.set(b.moveDim(frontend::place(b, kind, data, *indices, *updates), 0, dim));
}

/// The dimension along which a vector of indices names rows.
std::optional<int64_t> dimOfRows(Call &c) {
  const bool fits = c.rank("self") > 0 && c.rank("index") == 1 && !c.isFloat("index");
  return fits ? axisOf(c.integerOr("dim", 0), c.rank("self")) : std::nullopt;
}

template <ScatterKind kind> LogicalResult opIndexRows(Call &c) {
  auto dim = dimOfRows(c);
  if (!dim || c.rank("source") != c.rank("self") || c.element("source") != c.element("self") ||
      c.type("source").getNumElements() == 0)
    return c.fail("the dimension, the indices or what is written do not fit");
  SmallVector<int64_t> shape(c.shape("self"));
  shape[*dim] = c.shape("index")[0];
  if (ArrayRef<int64_t>(shape) != c.shape("source"))
    return c.fail("what is written does not fit");
  return placeRows(c, kind, *dim, [&]() -> FailureOr<Value> {
    Value updates = c.b.moveDim(c.value("source"), *dim, 0);
    const double alpha = c.numberOr("alpha", 1);
    if (alpha == 1)
      return updates;
    if (failed(c.splat(c.element("self"), alpha)))
      return failure();
    return c.b.scale(updates, alpha);
  });
}

/// One value in rows along a dimension.
LogicalResult opIndexFill(Call &c) {
  auto dim = dimOfRows(c);
  if (!dim || c.shape("index")[0] == 0)
    return c.fail("the dimension or the indices do not fit");
  return placeRows(c, ScatterKind::Replace, *dim, [&]() -> FailureOr<Value> {
    auto number = c.number("value");
    auto value = number ? c.splat(c.element("self"), *number) : FailureOr<Value>(failure());
    if (failed(value))
      return c.reason.empty() ? c.fail("the value is not a number that a double holds") : failure();
    SmallVector<int64_t> shape{c.shape("index")[0]};
    for (auto [axis, size] : llvm::enumerate(c.shape("self")))
      if (static_cast<int64_t>(axis) != *dim)
        shape.push_back(size);
    return c.b.broadcastTo(*value, shape);
  });
}

/// By a mask of the leading dimensions that is not known: values that are the same wherever it is true, or a row for
/// each true element, in order.
LogicalResult putByMask(Call &c, int mask) {
  const int64_t rank = c.rank(mask), trailing = c.rank("self") - rank;
  if (trailing < 0 || c.shape(mask) != c.shape("self").take_front(rank) || c.element("values") != c.element("self"))
    return c.fail("the mask or the values do not fit");
  Build &b = c.b;
  Value narrow = c.input(mask), x = c.value("self"), values = c.value("values");
  const bool adds = c.flag("accumulate", false);
  if (adds && c.element("self").isInteger(1))
    return c.fail("booleans are not added");
  const SmallVector<int64_t> inner(c.shape("self").take_back(trailing));
  if (rank > 0 && c.rank("values") == trailing + 1 && c.shape("values")[0] > 1) { // a row for each
    SmallVector<int64_t> rows(inner);
    rows.insert(rows.begin(), c.shape("values")[0]);
    if (broadcastShape(rows, c.shape("values")) != rows)
      return c.fail("the values do not fit");
    values =
        frontend::placeByMask(b, adds ? b.splatLike(x, 0) : x, narrow, b.broadcastTo(values, rows), /*mustFit=*/true);
    return c.set(adds ? b.add(x, values) : values);
  }
  if (c.rank("values") == trailing + 1 && c.shape("values")[0] == 1)
    values = b.reshape(values, c.shape("values").drop_front());
  if (broadcastShape(inner, shapeOf(values)) != inner)
    return c.fail("the values do not fit");
  values = b.broadcastTo(values, c.shape("self"));
  Value wide = b.broadcast(narrow, c.shape("self"), llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  return c.set(b.select(wide, adds ? b.add(x, values) : values, x));
}

/// self with values at [indices…].
LogicalResult opIndexPut(Call &c) {
  auto list = c.list("indices");
  if (list && list->size() == 1 && c.has((*list)[0]) && !c.constant((*list)[0]) && c.element((*list)[0]).isInteger(1) &&
      c.rank("self") > 0)
    return putByMask(c, (*list)[0]);
  auto found = list ? flatIndices(c, *list) : FailureOr<FlatIndices>(c.fail("expected indices"));
  if (failed(found))
    return failure();
  const SmallVector<int64_t> named = frontend::permuted(found->all, found->placed);
  auto wide = broadcastShape(named, c.shape("values"));
  if (!wide || *wide != named || c.element("values") != c.element("self"))
    return c.fail("the values do not fit");
  if (*countElements(named) == 0)
    return c.set(c.value("self"));
  Build &b = c.b;
  const int64_t count = *countElements(found->common);
  SmallVector<int64_t> updateShape(found->table);
  updateShape[0] = count;
  Value values = frontend::permute(b, b.broadcastTo(c.value("values"), named), frontend::inverse(found->placed));
  Value ordered = frontend::permute(b, c.value("self"), found->order), data = b.reshape(ordered, found->table),
        places = b.reshape(found->flat, {count}), updates = b.reshape(values, updateShape);
  const ScatterKind kind = c.flag("accumulate", false) ? ScatterKind::Add : ScatterKind::Replace;
  if (!frontend::canPlace(kind, data, places))
    return frontend::tooManyIndices(c, kind);
  Value result = b.reshape(frontend::place(b, kind, data, places, updates), shapeOf(ordered));
  return c.set(frontend::permute(b, result, frontend::inverse(found->order)));
}

/// The elements of `source` in their order, where a mask is true.
LogicalResult opMaskedScatter(Call &c) {
  auto shape = broadcastShape(c.shape("self"), c.shape("mask"));
  if (!shape || !c.element("mask").isInteger(1) || c.element("source") != c.element("self"))
    return c.fail("the mask does not fit, or the source has another type");
  Build &b = c.b;
  const int64_t all = *countElements(*shape), given = c.type("source").getNumElements();
  Value data = b.broadcastTo(c.value("self"), *shape), source = b.reshape(c.value("source"), {given});
  if (const HostTensor *mask = c.known("mask"); mask && c.shape("mask") == ArrayRef<int64_t>(*shape)) {
    frontend::KnownIndices places;
    for (int64_t i = 0; i < mask->size(); ++i)
      if (mask->ints[i] != 0)
        places.push_back(i);
    const auto count = static_cast<int64_t>(places.size());
    if (count > given)
      return c.fail("the mask has " + Twine(count) + " elements that are true, the source " + Twine(given));
    Value placed =
        frontend::placeKnown(b, ScatterKind::Replace, b.reshape(data, {all}), 0, places, b.slice(source, {0}, {count}));
    return c.set(b.reshape(placed, *shape));
  }
  // Rows, where the mask repeats its elements along the last dimensions.
  Value mask = b.broadcastTo(c.value("mask"), *shape);
  const int64_t rank = shape->empty() ? 0 : frontend::dimsOfMask(mask);
  SmallVector<int64_t> leading(ArrayRef<int64_t>(*shape).take_front(rank));
  const int64_t rows = *countElements(leading), width = rows == 0 ? 0 : all / rows;
  if (all == 0)
    return c.set(data);
  if (given < width)
    return c.fail("the source has " + Twine(given) + " elements, and one that is true in the mask takes " +
                  Twine(width));
  SmallVector<int64_t> limits(*shape), zeros(shape->size(), 0);
  std::fill(limits.begin() + rank, limits.end(), 1);
  if (leading.empty())
    leading = {1};
  Value narrow = b.reshape(b.slice(mask, zeros, limits), leading);
  SmallVector<int64_t> flat(leading);
  flat.push_back(width);
  Value table = b.reshape(b.slice(source, {0}, {given / width * width}), {given / width, width});
  Value placed = frontend::placeByMask(b, b.reshape(data, flat), narrow, table, /*mustFit=*/false);
  return c.set(b.reshape(placed, *shape));
}

const OpRow kScatterOps[] = {
    {"aten.gather.default", opGather, "self,index"},
    {"aten.index_add.default", opIndexRows<ScatterKind::Add>, "self,index,source"},
    {"aten.index_copy.default", opIndexRows<ScatterKind::Replace>, "self,index,source"},
    {"aten.index_fill.int_Scalar", opIndexFill, "self,index"},
    {"aten.index_put.default", opIndexPut, "self,values"},
    {"aten.masked_scatter.default", opMaskedScatter, "self,mask,source"},
    {"aten.scatter.src", opScatter<ScatterKind::Replace>, "self,index,src"},
    {"aten.scatter.value", opScatter<ScatterKind::Replace>, "self,index"},
    {"aten.scatter_add.default", opScatter<ScatterKind::Add>, "self,index,src"},
    {"aten.scatter_reduce.two", opScatterReduce, "self,index,src"},
    {"aten.take_along_dim.default", opTakeAlongDim, "self,indices"},
};
} // namespace

llvm::ArrayRef<OpRow> scatterOps() { return kScatterOps; }

} // namespace tessera::pt2
