//===- OpsElements.cpp - elements by index, and by their order -------------===//

#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::ElementIndices;
using frontend::ScatterKind;

// --- By index ---

/// The indices along `dim`. Fails where arguments are not where the shared code expects them.
FailureOr<ElementIndices> indicesOf(Call &c) {
  if (c.at("self") != 0 || c.at("index") != 1 || c.rank("self") == 0)
    return c.fail("expected tensors with dimensions");
  return ElementIndices::of(c, c.integerOr("dim", 0));
}

LogicalResult opGather(Call &c) {
  auto elements = indicesOf(c);
  if (failed(elements))
    return failure();
  auto places = elements->places(c);
  if (failed(places))
    return failure();
  Build &b = c.b;
  Value data = elements->arrange(b, elements->corner(b, c.value("self")));
  return c.set(elements->restore(b, frontend::pick(b, data, *places)));
}

/// `updates` written to, or added at, the indices.
LogicalResult scatter(Call &c, ScatterKind kind, Value updates) {
  auto elements = indicesOf(c);
  if (failed(elements))
    return failure();
  if (shapeOf(updates) != c.shape("index") || elements->isPart)
    return c.fail("indices that are smaller than the data or the updates are not supported");
  if (c.type("self").getNumElements() == 0 || tensorType(updates).getNumElements() == 0)
    return c.set(c.value("self"));
  auto places = elements->places(c);
  if (failed(places))
    return failure();
  Build &b = c.b;
  Value data = elements->arrange(b, c.value("self"));
  if (!frontend::canPlace(kind, data, *places))
    return c.fail("too many indices are compared with too many elements");
  return c.set(elements->restore(b, frontend::place(b, kind, data, *places, elements->arrange(b, updates))));
}

template <ScatterKind kind> LogicalResult opScatter(Call &c) {
  if (!c.isTensor("src") || c.element("src") != c.element("self"))
    return c.fail("'src' is not a tensor of the same type");
  return scatter(c, kind, c.value("src"));
}

LogicalResult opScatterValue(Call &c) {
  auto value = c.number("value");
  if (!value)
    return c.fail("'value' is not a number");
  auto one = c.splat(c.element("self"), *value);
  return failed(one) ? failure() : scatter(c, ScatterKind::Replace, c.b.broadcastTo(*one, c.shape("index")));
}

/// Each element, or row of a dimension, so many times.
LogicalResult opRepeatInterleave(Call &c) {
  const int64_t times = c.integerOr("repeats", 0);
  Build &b = c.b;
  Value x = c.value("self");
  if (!c.has("dim"))
    x = b.reshape(x, {c.type("self").getNumElements()});
  auto dim = axisOf(c.integerOr("dim", 0), shapeOf(x).size());
  if (!dim || shapeOf(x).empty() || times < 1 || times > frontend::kMaxElements)
    return c.fail("the dimension or the number of repeats is out of range");
  SmallVector<int64_t> wide(shapeOf(x)), result(wide), dims;
  result[*dim] *= times;
  wide.insert(wide.begin() + *dim + 1, times);
  for (int64_t at = 0; at < static_cast<int64_t>(wide.size()); ++at)
    if (at != *dim + 1)
      dims.push_back(at);
  if (!countElements(wide))
    return c.fail("the result is too large");
  return c.set(b.reshape(b.broadcast(x, wide, dims), result));
}

// --- By order ---

/// As many passes over the data.
constexpr int64_t kMostTaken = 64;

/// Where the largest (or smallest) of the last dimension are, one after the other, as [.., 1]; the first of equal ones.
SmallVector<Value> placesOf(Build &b, Value x, int64_t count, bool largest) {
  const SmallVector<int64_t> shape(shapeOf(x));
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  SmallVector<int64_t> one(shape);
  one[last] = 1;
  const double never = (largest ? -1 : 1) * std::numeric_limits<double>::infinity();
  Value rest = StopGradientOp::create(b.builder, b.loc, x);
  auto index = RankedTensorType::get(shape, b.builder.getI64Type());
  Value place = b.iota(index, last), none = b.splat(index, static_cast<double>(shape[last]));
  Value taken; // of those before: an element may itself be infinite
  auto wide = [&](Value y) { return b.broadcastReduced(y, shape, {last}); };
  SmallVector<Value> places;
  for (int64_t i = 0; i < count; ++i) {
    Value open = taken ? b.select(taken, b.splatLike(rest, never), rest) : rest;
    Value best = b.reduce(largest ? ReduceKind::Max : ReduceKind::Min, open, {last});
    // What is no number counts as largest, and must not vanish.
    Value hit = b.max(b.compare(CompareDirection::Eq, open, wide(best)), b.compare(CompareDirection::Ne, open, open));
    if (taken)
      hit = b.mul(hit, b.compare(CompareDirection::Eq, taken, b.splatLike(taken, 0)));
    Value at = b.reduce(ReduceKind::Min, b.select(hit, place, none), {last});
    Value mine = b.compare(CompareDirection::Eq, place, wide(at));
    taken = taken ? b.max(taken, mine) : mine;
    places.push_back(b.reshape(at, one));
  }
  return places;
}

/// The largest or smallest of a dimension with their places, a number of them, as results 0 and 1.
LogicalResult take(Call &c, int64_t count, bool largest, bool keepsDim) {
  auto dim = axisOf(c.integerOr("dim", -1), c.rank("self"));
  if (!dim || c.rank("self") == 0 || !c.isFloat("self") || c.outputs.size() != 2)
    return c.fail("expected floats, and a dimension");
  const int64_t size = c.shape("self")[*dim];
  if (count < 0 || count > size || count > kMostTaken || c.type("self").getNumElements() == 0)
    return c.fail("more than " + Twine(kMostTaken) + " elements are taken, or more than there are");
  Build &b = c.b;
  Value x = b.moveDim(c.value("self"), *dim, c.rank("self") - 1);
  const int64_t last = c.rank("self") - 1;
  SmallVector<Value> places = placesOf(b, x, count, largest);
  Value index = places.empty() ? Value() : places.size() == 1 ? places[0] : b.concat(places, last);
  if (!index)
    return c.fail("nothing is taken");
  Value values = frontend::pick(b, x, index);
  auto finish = [&](Value y) {
    y = b.moveDim(y, last, *dim);
    SmallVector<int64_t> shape(shapeOf(y));
    if (!keepsDim)
      shape.erase(shape.begin() + *dim);
    return b.reshape(y, shape);
  };
  if (failed(c.set(finish(values), 0)))
    return failure();
  return c.set(finish(index), 1);
}

LogicalResult opTopk(Call &c) { return take(c, c.integerOr("k", -1), c.flag("largest", true), /*keepsDim=*/true); }
template <bool largest> LogicalResult opExtremeDim(Call &c) { return take(c, 1, largest, c.flag("keepdim", false)); }

template <bool largest> LogicalResult opOther(Call &c) {
  auto shape = broadcastShape(c.shape("self"), c.shape("other"));
  Type element = c.resultElement();
  if (!shape || !element || element.isInteger(1))
    return c.fail("the shapes do not broadcast, or the type is not supported");
  Build &b = c.b;
  Value x = b.broadcastTo(b.convert(c.value("self"), element), *shape);
  Value y = b.broadcastTo(b.convert(c.value("other"), element), *shape);
  if (isa<FloatType>(element))
    return c.set(largest ? b.max(x, y) : b.neg(b.max(b.neg(x), b.neg(y))));
  return c.set(b.select(b.compare(largest ? CompareDirection::Ge : CompareDirection::Le, x, y), x, y));
}

const OpRow kRows[] = {
    {"aten.gather.default", opGather, "self,index"},
    {"aten.max.dim", opExtremeDim<true>},
    {"aten.max.other", opOther<true>, "self,other"},
    {"aten.min.dim", opExtremeDim<false>},
    {"aten.min.other", opOther<false>, "self,other"},
    {"aten.repeat_interleave.self_int", opRepeatInterleave},
    {"aten.scatter.src", opScatter<ScatterKind::Replace>, "self,index"},
    {"aten.scatter.value", opScatterValue, "self,index"},
    {"aten.scatter_add.default", opScatter<ScatterKind::Add>, "self,index"},
    {"aten.topk.default", opTopk},
};
} // namespace

llvm::ArrayRef<OpRow> elementsOps() { return kRows; }

} // namespace tessera::pt2
