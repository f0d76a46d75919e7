//===- OpsPool.cpp - poolings ------------------------------------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/common/Pool.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// The input as [N, C, spatial…], in which it is pooled; null if the call failed.
Value batched(Call &c, int64_t space) {
  const int64_t rank = c.rank("self");
  if (!c.isFloat("self") || (rank != space + 1 && rank != space + 2) || c.type("self").getNumElements() == 0) {
    (void)c.fail("expected floating point with channels and " + Twine(space) + " dimensions that is not empty");
    return {};
  }
  SmallVector<int64_t> shape(c.shape("self"));
  if (rank == space + 1)
    shape.insert(shape.begin(), 1);
  return c.b.reshape(c.b.convert(c.value("self"), computedIn(c.element("self"))), shape);
}

/// Sets a result without the dimension of samples that `batched` may have added.
LogicalResult setPooled(Call &c, Value pooled, int64_t space, int i = 0) {
  SmallVector<int64_t> shape(shapeOf(pooled));
  if (c.rank("self") == space + 1)
    shape.erase(shape.begin());
  Value result = c.b.reshape(pooled, shape);
  return c.set(i == 0 ? c.b.convert(result, c.element("self")) : result, i);
}

/// The window of a pooling over `x`, whose strides are its sizes unless they are given.
bool readPool(Call &c, Value x, int64_t space, frontend::Window &w) {
  auto kernel = c.spatial("kernel_size", space, 1, 1), padding = c.spatial("padding", space, 0, 0),
       dilations = c.spatial("dilation", space, 1, 1);
  const bool hasStrides = c.has("stride") && c.ints("stride") != SmallVector<int64_t>();
  auto strides = hasStrides ? c.spatial("stride", space, 1, 1) : kernel;
  if (!kernel || !padding || !dilations || !strides)
    return succeeded(c.fail("sizes, strides, padding or dilations are out of range"));
  w.kernel = *kernel;
  w.strides = *strides;
  w.low = w.high = *padding;
  w.dilations = *dilations;
  if (!frontend::checkWindow(c, shapeOf(x).drop_front(2), w))
    return false;
  for (size_t d = 0; d < w.rank(); ++d)
    if (!frontend::countWindows(c, w, d, c.flag("ceil_mode", false)))
      return false;
  return true;
}

template <int space> LogicalResult opMaxPool(Call &c) {
  frontend::Window w;
  Value x = batched(c, space);
  if (!x || !readPool(c, x, space, w))
    return failure();
  if (!c.wants(1)) {
    auto pooled = frontend::maxPool(c, w, x);
    return failed(pooled) ? failure() : setPooled(c, *pooled, space);
  }
  auto pooled = frontend::maxPoolWithPlaces(c, w, x);
  if (failed(pooled) || failed(setPooled(c, pooled->first, space)))
    return failure();
  return setPooled(c, pooled->second, space, 1);
}

template <int space> LogicalResult opAveragePool(Call &c) {
  frontend::Window w;
  Value x = batched(c, space);
  if (!x || !readPool(c, x, space, w))
    return failure();
  std::optional<double> divisor = c.number("divisor_override");
  if (c.has("divisor_override") && (!divisor || *divisor == 0))
    return c.fail("divisor_override is 0, or no number");
  auto pooled = frontend::averagePool(c, w, x, c.flag("count_include_pad", true), divisor);
  return failed(pooled) ? failure() : setPooled(c, *pooled, space);
}

template <ReduceKind kind, int space> LogicalResult opAdaptivePool(Call &c) {
  auto counts = c.spatial("output_size", space, 1, 1);
  Value x = batched(c, space);
  if (!x)
    return failure();
  if (!counts)
    return c.fail("output_size is out of range");
  if (c.wants(1))
    return c.fail("the places of maxima are not supported");
  auto pooled = frontend::adaptivePool(c, x, *counts, kind);
  return failed(pooled) ? failure() : setPooled(c, *pooled, space);
}

/// Puts what a pooling found back at its places; every other element is 0.
template <int space> LogicalResult opMaxUnpool(Call &c) {
  auto size = c.ints("output_size");
  Value x = batched(c, space);
  if (!x)
    return failure();
  if (!size || static_cast<int64_t>(size->size()) != space || c.shape("indices") != c.shape("self") ||
      !c.element("indices").isInteger(64))
    return c.fail("output_size or the places do not fit the input");
  Build &b = c.b;
  const SmallVector<int64_t> shape(shapeOf(x));
  int64_t count = 1, pooled = c.type("self").getNumElements() / (shape[0] * shape[1]);
  SmallVector<int64_t> result = {shape[0], shape[1]};
  for (int64_t each : *size) {
    if (each < 1 || each > frontend::kMaxSpatial || count > frontend::kMaxElements / each)
      return c.fail("output_size is out of range");
    count *= each;
    result.push_back(each);
  }
  if (!countElements(result))
    return c.fail("the result is too large");
  const int64_t rows = shape[0] * shape[1];
  Value values = b.reshape(x, {rows, pooled}), none = b.zeros(tensorType(x).clone({rows, count}));
  Value places = frontend::inDimension(b, b.reshape(c.value("indices"), {rows, pooled}), count);
  for (auto kind : {frontend::ScatterKind::Replace, frontend::ScatterKind::Add})
    if (!frontend::canPlace(kind, none, places))
      return c.fail("there are too many places");
  // Of places that occur twice each has the gradient, as in PyTorch, though one value is written.
  auto stopped = [&](Value value) { return StopGradientOp::create(b.builder, b.loc, value).getResult(); };
  Value written = stopped(frontend::place(b, frontend::ScatterKind::Replace, none, places, stopped(values)));
  Value slope = frontend::place(b, frontend::ScatterKind::Add, none, places, b.sub(values, stopped(values)));
  return setPooled(c, b.reshape(b.add(written, slope), result), space);
}

constexpr ReduceKind kMean = ReduceKind::Sum, kMax = ReduceKind::Max;
const OpRow kPoolOps[] = {
    {"aten._adaptive_avg_pool2d.default", opAdaptivePool<kMean, 2>},
    {"aten._adaptive_avg_pool3d.default", opAdaptivePool<kMean, 3>},
    {"aten.adaptive_avg_pool1d.default", opAdaptivePool<kMean, 1>},
    {"aten.adaptive_avg_pool2d.default", opAdaptivePool<kMean, 2>},
    {"aten.adaptive_avg_pool3d.default", opAdaptivePool<kMean, 3>},
    {"aten.adaptive_max_pool1d.default", opAdaptivePool<kMax, 1>},
    {"aten.adaptive_max_pool2d.default", opAdaptivePool<kMax, 2>},
    {"aten.adaptive_max_pool3d.default", opAdaptivePool<kMax, 3>},
    {"aten.avg_pool1d.default", opAveragePool<1>},
    {"aten.avg_pool2d.default", opAveragePool<2>},
    {"aten.avg_pool3d.default", opAveragePool<3>},
    {"aten.max_pool1d.default", opMaxPool<1>},
    {"aten.max_pool1d_with_indices.default", opMaxPool<1>},
    {"aten.max_pool2d.default", opMaxPool<2>},
    {"aten.max_pool2d_with_indices.default", opMaxPool<2>},
    {"aten.max_pool3d.default", opMaxPool<3>},
    {"aten.max_pool3d_with_indices.default", opMaxPool<3>},
    {"aten.max_unpool2d.default", opMaxUnpool<2>, "self,indices"},
    {"aten.max_unpool3d.default", opMaxUnpool<3>, "self,indices"},
};
} // namespace

llvm::ArrayRef<OpRow> poolOps() { return kPoolOps; }

} // namespace tessera::pt2
