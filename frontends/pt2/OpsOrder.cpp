//===- OpsOrder.cpp - extremes, orders, medians, searches, running sums -----===//

#include "compiler/dialect/train/Running.h"
#include "compiler/dialect/train/Ties.h"
#include "frontends/common/Functions.h"
#include "frontends/common/Indexing.h"
#include "frontends/common/Order.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// The dimension along which the tensor is not empty; a tensor without dimensions has one of size 1.
std::optional<int64_t> dimensionOf(Call &c, int64_t fallback) {
  const int64_t rank = std::max<int64_t>(c.rank("self"), 1);
  auto dim = axisOf(c.integerOr("dim", fallback), rank);
  return dim && (c.rank("self") == 0 || c.shape("self")[*dim] > 0) ? dim : std::nullopt;
}

/// The tensor with one dimension at least.
Value withDimension(Call &c) {
  Value x = c.value("self");
  return c.rank("self") == 0 ? c.b.reshape(x, {1}) : x;
}

LogicalResult kept(Call &c, Value result, int64_t dim, int i = 0) {
  SmallVector<int64_t> shape(shapeOf(result));
  if (c.flag("keepdim", false) && c.rank("self") > 0)
    shape.insert(shape.begin() + dim, 1);
  return c.set(c.b.reshape(result, shape), i);
}

/// Values and indices; the first of equal ones takes the slope.
template <bool isMin> LogicalResult opExtremeAlong(Call &c) {
  auto dim = dimensionOf(c, 0);
  if (!dim || c.element("self").isInteger(1))
    return c.fail("expected numbers, and a dimension that is not empty");
  Value x = withDimension(c);
  Value extreme = c.b.reduce(isMin ? ReduceKind::Min : ReduceKind::Max, x, {*dim});
  extreme.getDefiningOp()->setAttr(kFirst, c.b.builder.getUnitAttr());
  if (failed(kept(c, extreme, *dim)))
    return failure();
  return kept(c, frontend::argExtreme(c.b, x, *dim, isMin), *dim, 1);
}

template <bool isMin> LogicalResult opArgExtreme(Call &c) {
  if (c.element("self").isInteger(1) || c.type("self").getNumElements() == 0)
    return c.fail("expected numbers");
  if (!c.has("dim")) { // of all elements
    Value flat = c.b.reshape(c.value("self"), {c.type("self").getNumElements()});
    SmallVector<int64_t> shape(c.flag("keepdim", false) ? c.rank("self") : 0, 1);
    return c.set(c.b.reshape(frontend::argExtreme(c.b, flat, 0, isMin), shape));
  }
  auto dim = dimensionOf(c, 0);
  if (!dim)
    return c.fail("the dimension is out of range");
  return kept(c, frontend::argExtreme(c.b, withDimension(c), *dim, isMin), *dim);
}

/// The first `count` in order, as the results say.
LogicalResult ordered(Call &c, int64_t fallback, std::optional<int64_t> count, bool descending, bool hasValues) {
  auto dim = dimensionOf(c, fallback);
  if (!dim || c.element("self").isInteger(1))
    return c.fail("expected numbers, and a dimension that is not empty");
  Value x = withDimension(c);
  const int64_t size = shapeOf(x)[*dim];
  if (count && (*count < 1 || *count > size))
    return c.fail("takes " + Twine(*count) + " elements of a dimension of size " + Twine(size));
  frontend::Ordered found = frontend::inOrder(c.b, x, *dim, count.value_or(size), descending);
  auto done = [&](Value value) { return c.rank("self") == 0 ? c.b.reshape(value, {}) : value; };
  if (!hasValues)
    return c.set(done(found.indices));
  return succeeded(c.set(done(found.values))) ? c.set(done(found.indices), 1) : failure();
}
LogicalResult opSort(Call &c) { return ordered(c, -1, std::nullopt, c.flag("descending", false), true); }
LogicalResult opArgsort(Call &c) { return ordered(c, -1, std::nullopt, c.flag("descending", false), false); }
LogicalResult opTopk(Call &c) {
  auto count = c.integer("k");
  return count ? ordered(c, -1, count, c.flag("largest", true), true) : c.fail("k is not known");
}

// --- Medians ---

/// `value` of dimensions that are gone, or not a number where one of `x` is none.
Value unlessNaN(Build &b, Value x, ArrayRef<int64_t> dims, Value value) {
  Value isNaN = b.convert(frontend::isNaN(b, x), b.builder.getI32Type());
  Value any = b.reduce(ReduceKind::Max, isNaN, dims);
  return b.select(b.compare(CompareDirection::Ne, any, b.splatLike(any, 0)),
                  b.splatLike(value, std::numeric_limits<double>::quiet_NaN()), value);
}

/// The lower one of the two in the middle of all elements; elements that are equal share its slope.
LogicalResult opMedian(Call &c) {
  const int64_t count = c.type("self").getNumElements();
  if (!c.isFloat("self") || count == 0)
    return c.fail("expected floating point that is not empty");
  Build &b = c.b;
  Value x = b.reshape(c.value("self"), {count});
  Value inOrder = frontend::inOrder(b, x, 0, (count + 1) / 2, /*descending=*/false).values;
  Value middle = StopGradientOp::create(b.builder, b.loc, frontend::elementAlong(b, inOrder, 0, (count - 1) / 2));
  Value isHigher = b.compare(CompareDirection::Gt, x, b.broadcast(middle, {count}, {}));
  Value lower = b.select(isHigher, b.splatLike(x, -std::numeric_limits<double>::infinity()), x);
  return c.set(unlessNaN(b, x, {0}, b.reduce(ReduceKind::Max, lower, {0})));
}

/// Along a dimension, and where it is: the one in the middle of an order that keeps equal ones in theirs.
LogicalResult opMedianAlong(Call &c) {
  auto dim = dimensionOf(c, 0);
  if (!dim || !c.isFloat("self"))
    return c.fail("expected floating point, and a dimension that is not empty");
  Build &b = c.b;
  Value x = withDimension(c);
  const int64_t middle = (shapeOf(x)[*dim] - 1) / 2;
  frontend::Ordered found = frontend::inOrder(b, x, *dim, middle + 1, /*descending=*/false);
  Value value = unlessNaN(b, x, {*dim}, frontend::elementAlong(b, found.values, *dim, middle));
  Value index = frontend::elementAlong(b, found.indices, *dim, middle);
  Value firstNaN =
      frontend::argExtreme(b, b.convert(frontend::isNaN(b, x), b.builder.getI32Type()), *dim, /*isMin=*/false);
  index = b.select(frontend::isNaN(b, value), firstNaN, index);
  return succeeded(kept(c, value, *dim)) ? kept(c, index, *dim, 1) : failure();
}

// --- Quantiles ---

/// Where between two neighbours in the order a quantile is: the lower one, and how far it is to the next.
struct Between {
  int64_t lower;
  double weight;
};
std::optional<Between> quantileAt(double q, int64_t size, Type element, StringRef interpolation) {
  const double rank = frontend::roundTo(element, q) * static_cast<double>(size - 1), lower = std::floor(rank);
  const auto at = static_cast<int64_t>(lower);
  if (interpolation == "linear")
    return Between{at, rank - lower};
  if (interpolation == "midpoint")
    return Between{at, rank > lower ? 0.5 : 0.0};
  if (interpolation == "lower")
    return Between{at, 0};
  if (interpolation == "higher")
    return Between{static_cast<int64_t>(std::ceil(rank)), 0};
  if (interpolation == "nearest") // halves to even
    return Between{static_cast<int64_t>(std::nearbyint(rank)), 0};
  return std::nullopt;
}

/// Quantiles along a dimension or of all elements, one or a vector of them, which is the first dimension then.
LogicalResult opQuantile(Call &c) {
  SmallVector<double> quantiles;
  const bool isVector = c.isTensor("q") && c.rank("q") == 1;
  if (c.isTensor("q")) {
    const HostTensor *known = c.known("q");
    if (!known || !known->isFloat() || c.rank("q") > 1)
      return c.fail("which quantiles are meant depends on data or weights: give numbers, or a tensor of them that the "
                    "module makes");
    quantiles.assign(known->floats.begin(), known->floats.end());
  } else if (auto number = c.number("q")) {
    quantiles.push_back(*number);
  }
  constexpr size_t kMost = 1024; // each is an op by itself
  if (quantiles.empty() || quantiles.size() > kMost ||
      llvm::any_of(quantiles, [](double q) { return !(q >= 0 && q <= 1); }))
    return c.fail("expected quantiles from 0 to 1, not more than " + Twine(kMost));
  const int64_t rank = c.rank("self");
  auto dim = c.has("dim") ? axisOf(c.integerOr("dim", 0), std::max<int64_t>(rank, 1)) : std::optional<int64_t>(0);
  if (!dim || !(c.element("self").isF32() || c.element("self").isF64()) || c.type("self").getNumElements() == 0)
    return c.fail("expected f32 or f64 that is not empty, and a dimension that is in range");
  Build &b = c.b;
  const bool isFlat = !c.has("dim") || rank == 0, isKept = c.flag("keepdim", false);
  Value x = isFlat ? b.reshape(c.value("self"), {c.type("self").getNumElements()}) : c.value("self");
  SmallVector<int64_t> shape(isKept && isFlat ? rank : 0, 1); // of one quantile
  if (!isFlat) {
    shape.assign(shapeOf(x).begin(), shapeOf(x).end());
    shape[*dim] = 1;
    if (!isKept)
      shape.erase(shape.begin() + *dim);
  }
  const int64_t size = shapeOf(x)[*dim];
  Value ordered = frontend::inOrder(b, x, *dim, size, /*descending=*/false).values;
  SmallVector<int64_t> one(shape);
  one.insert(one.begin(), 1);
  SmallVector<Value> made;
  for (double q : quantiles) {
    auto place = quantileAt(q, size, c.element("self"), c.text("interpolation", "linear"));
    if (!place)
      return c.fail("the interpolation is not supported");
    Value value = frontend::elementAlong(b, ordered, *dim, place->lower);
    if (place->weight > 0) { // from the nearer one, as torch.lerp
      Value next = frontend::elementAlong(b, ordered, *dim, place->lower + 1), step = b.sub(next, value);
      value = place->weight < 0.5 ? b.add(value, b.scale(step, place->weight))
                                  : b.sub(next, b.scale(step, 1 - place->weight));
    }
    made.push_back(b.reshape(unlessNaN(b, x, {*dim}, value), one));
  }
  return c.set(isVector ? b.concat(made, 0) : b.reshape(made.front(), shape));
}

// --- Searches ---

/// How many of sorted numbers, a vector or one for each row of `self`, are below each element; with `right` those that
/// are equal count, too.
LogicalResult searchSorted(Call &c, StringRef sorted) {
  Build &b = c.b;
  const int64_t rank = c.rank("self"), sortedRank = c.rank(sorted);
  const bool isRow = sortedRank > 1;
  if (c.element(sorted) != c.element("self") || c.element("self").isInteger(1) || sortedRank == 0 || c.has("sorter") ||
      (isRow && (rank != sortedRank || c.shape("self").drop_back() != c.shape(sorted).drop_back())))
    return c.fail("expected numbers of one type, sorted ones in a vector or in rows, and no sorter");
  // Where PyTorch then looks depends on the order of its steps.
  if (const HostTensor *known = c.known(sorted);
      known && llvm::any_of(known->floats, [](double value) { return std::isnan(value); }))
    return c.fail("a sorted number is NaN");
  const std::string side = c.text("side", "");
  const bool isRight = c.flag("right", false) || side == "right";
  SmallVector<int64_t> wide(c.shape("self")), dims = llvm::to_vector(llvm::seq<int64_t>(0, rank)), sortedDims;
  wide.push_back(c.shape(sorted).back());
  if (isRow)
    sortedDims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  sortedDims.push_back(rank);
  if (!countElements(wide) || !c.resultElement() || c.shape(sorted).back() == 0)
    return c.fail("nothing is searched, or too much");
  Value x = b.broadcast(c.value("self"), wide, dims), y = b.broadcast(c.value(sorted), wide, sortedDims);
  // An element that is no number is above all sorted ones; a sorted one that is none counts only for it.
  Value counts = b.compare(isRight ? CompareDirection::Le : CompareDirection::Lt, y, x);
  if (c.isFloat("self"))
    counts = b.max(counts, frontend::isNaN(b, x));
  return c.set(b.convert(b.sum(b.convert(counts, b.builder.getI64Type()), {rank}), c.resultElement()));
}
LogicalResult opBucketize(Call &c) { return searchSorted(c, "boundaries"); }
LogicalResult opSearchSorted(Call &c) { return searchSorted(c, "sorted_sequence"); }

// --- Running results ---

/// `make` of numbers of the result's type.
LogicalResult running(Call &c, llvm::function_ref<Value(Value, int64_t)> make) {
  auto dim = axisOf(c.integerOr("dim", 0), std::max<int64_t>(c.rank("self"), 1));
  Type element = c.resultElement();
  if (!dim || !element || element.isInteger(1))
    return c.fail("expected numbers, and a dimension that is in range");
  SmallVector<int64_t> wide(c.shape("self"));
  wide.push_back(kLongestTriangle);
  if (!countElements(wide))
    return c.fail("the result is too large");
  Value x = c.b.convert(c.value("self"), computedIn(element));
  return c.set(c.b.convert(c.rank("self") == 0 || c.type("self").getNumElements() == 0 ? x : make(x, *dim), element));
}
LogicalResult opCumsum(Call &c) {
  // Evaluated here where it can be: as ops it is products with triangles of positions, which are too large for that.
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  auto integer = dyn_cast_if_present<IntegerType>(c.resultElement());
  if (const HostTensor *known = c.known("self"); dim && integer && !integer.isInteger(1) && known && !known->isFloat())
    return c.set(HostTensor::ofInts(RankedTensorType::get(known->shape(), integer), known->ints).runningSums(*dim));
  return running(c, [&](Value x, int64_t dim) { return runningSums(c.b, x, dim, {}); });
}
LogicalResult opCumprod(Call &c) {
  return running(c, [&](Value x, int64_t dim) {
    return frontend::scan(c.b, x, dim, 1, [&](Value a, Value b) { return c.b.mul(a, b); });
  });
}
LogicalResult opLogcumsumexp(Call &c) {
  if (!c.isFloat("self"))
    return c.fail("expected floating point");
  return running(c, [&](Value x, int64_t dim) {
    return frontend::scan(c.b, x, dim, -std::numeric_limits<double>::infinity(),
                          [&](Value a, Value b) { return frontend::logAddExp(c.b, a, b); });
  });
}

/// The largest or smallest so far, and where it is: of equal ones the last. What is no number stays.
template <bool isMin> LogicalResult opRunningExtreme(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), std::max<int64_t>(c.rank("self"), 1));
  if (!dim || !c.isFloat("self") || c.type("self").getNumElements() == 0)
    return c.fail("expected floating point that is not empty, and a dimension that is in range");
  Build &b = c.b;
  Value x = withDimension(c), sized = isMin ? b.neg(x) : x;
  Value most = frontend::scan(b, sized, *dim, -std::numeric_limits<double>::infinity(),
                              [&](Value first, Value second) { return b.max(first, second); });
  Value isMost = b.max(b.compare(CompareDirection::Eq, sized, most), frontend::isNaN(b, x));
  Value place = b.iota(RankedTensorType::get(shapeOf(x), b.builder.getI64Type()), *dim);
  Value last = frontend::scan(b, b.select(isMost, place, b.splatLike(place, 0)), *dim, 0,
                              [&](Value first, Value second) { return b.max(first, second); });
  const int64_t rank = tensorType(x).getRank();
  const SmallVector<int64_t> order = frontend::withDimAt(rank, *dim, rank - 1);
  Value values = frontend::pick(b, frontend::permute(b, x, order), frontend::permute(b, last, order));
  auto done = [&](Value value) { return c.rank("self") == 0 ? b.reshape(value, {}) : value; };
  return succeeded(c.set(done(frontend::permute(b, values, frontend::inverse(order))))) ? c.set(done(last), 1)
                                                                                        : failure();
}

const OpRow kOrderOps[] = {
    {"aten.argmax.default", opArgExtreme<false>},
    {"aten.argmin.default", opArgExtreme<true>},
    {"aten.argsort.default", opArgsort},
    {"aten.argsort.stable", opArgsort},
    {"aten.bucketize.Tensor", opBucketize, "self,boundaries"},
    {"aten.cummax.default", opRunningExtreme<false>},
    {"aten.cummin.default", opRunningExtreme<true>},
    {"aten.cumprod.default", opCumprod},
    {"aten.cumsum.default", opCumsum},
    {"aten.logcumsumexp.default", opLogcumsumexp},
    {"aten.max.dim", opExtremeAlong<false>},
    {"aten.median.default", opMedian},
    {"aten.median.dim", opMedianAlong},
    {"aten.min.dim", opExtremeAlong<true>},
    {"aten.quantile.default", opQuantile, "self,q"},
    {"aten.quantile.scalar", opQuantile},
    {"aten.searchsorted.Tensor", opSearchSorted, "self,sorted_sequence"},
    {"aten.sort.default", opSort},
    {"aten.sort.stable", opSort},
    {"aten.topk.default", opTopk},
};
} // namespace

llvm::ArrayRef<OpRow> orderOps() { return kOrderOps; }

} // namespace tessera::pt2
