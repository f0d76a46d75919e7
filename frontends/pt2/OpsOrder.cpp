//===- OpsOrder.cpp - where extremes are, orders, running sums --------------===//

#include "compiler/dialect/train/Running.h"
#include "compiler/dialect/train/Ties.h"
#include "frontends/common/Functions.h"
#include "frontends/common/Order.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

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

const OpRow kRows[] = {
    {"aten.argmax.default", opArgExtreme<false>},
    {"aten.argmin.default", opArgExtreme<true>},
    {"aten.argsort.default", opArgsort},
    {"aten.argsort.stable", opArgsort},
    {"aten.cumprod.default", opCumprod},
    {"aten.cumsum.default", opCumsum},
    {"aten.logcumsumexp.default", opLogcumsumexp},
    {"aten.max.dim", opExtremeAlong<false>},
    {"aten.min.dim", opExtremeAlong<true>},
    {"aten.sort.default", opSort},
    {"aten.sort.stable", opSort},
    {"aten.topk.default", opTopk},
};
} // namespace

llvm::ArrayRef<OpRow> orderOps() { return kRows; }

} // namespace tessera::pt2
