//===- OpsConvolution.cpp - convolution and pooling -----------------------===//

#include "compiler/dialect/train/Ties.h"
#include "frontends/onnx/OpTable.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// A window over the spatial dimensions, always two: a 1-D op gets a first dimension of size 1.
struct Window {
  SmallVector<int64_t, 2> input, kernel, strides, dilations, low, high, output;

  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  bool isPadded() const { return low[0] || low[1] || high[0] || high[1]; }
};

constexpr int64_t kMaxSpatial = int64_t{1} << 24;

/// Values of an attribute for `count` spatial dimensions, widened to two; nullopt if out of (0, kMaxSpatial].
std::optional<SmallVector<int64_t, 2>> spatial(Node &n, StringRef name, int64_t count) {
  SmallVector<int64_t, 2> values(count, 1);
  if (auto given = n.attrInts(name)) {
    if (static_cast<int64_t>(given->size()) != count)
      return std::nullopt;
    values.assign(given->begin(), given->end());
  }
  for (int64_t value : values)
    if (value < 1 || value > kMaxSpatial)
      return std::nullopt;
  values.insert(values.begin(), 2 - count, 1);
  return values;
}

LogicalResult readWindow(Node &n, ArrayRef<int64_t> kernel, Window &w) {
  const int64_t count = n.rank(0) - 2;
  if (count < 1 || count > 2 || !n.isFloat(0))
    return n.fail("expected a floating-point input of rank 3 or 4");
  auto strides = spatial(n, "strides", count), dilations = spatial(n, "dilations", count);
  if (!strides || !dilations || static_cast<int64_t>(kernel.size()) != count)
    return n.fail("strides, dilations or kernel are not positive, or not one per spatial dimension");
  w.strides = *strides;
  w.dilations = *dilations;
  for (int64_t size : kernel)
    if (size < 1 || size > kMaxSpatial)
      return n.fail("kernel size " + Twine(size) + " is out of range");
  w.kernel.assign(2 - count, 1);
  llvm::append_range(w.kernel, kernel);
  w.input.assign(2 - count, 1);
  llvm::append_range(w.input, n.shape(0).drop_front(2));
  w.low.assign(2, 0);
  w.high.assign(2, 0);
  w.output.assign(2, 0);
  const std::string autoPad = n.attrString("auto_pad", "NOTSET");
  auto pads = n.attrInts("pads");
  if (pads && static_cast<int64_t>(pads->size()) != 2 * count)
    return n.fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * count));
  for (size_t d = 0; d < 2; ++d) {
    if (w.extent(d) > kMaxSpatial || w.input[d] > kMaxSpatial)
      return n.fail("window or input is too large");
    const int64_t axis = static_cast<int64_t>(d) - (2 - count);
    if (autoPad == "NOTSET") {
      if (pads && axis >= 0) {
        w.low[d] = (*pads)[axis];
        w.high[d] = (*pads)[axis + count];
      }
    } else if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      const int64_t out = llvm::divideCeil(w.input[d], w.strides[d]);
      const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[d] + w.extent(d) - w.input[d]);
      w.low[d] = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.high[d] = total - w.low[d];
    } else if (autoPad != "VALID") {
      return n.fail("auto_pad is '" + autoPad + "'");
    }
    if (w.low[d] < 0 || w.high[d] < 0 || w.low[d] > kMaxSpatial || w.high[d] > kMaxSpatial)
      return n.fail("pads are negative or too large");
    int64_t room = w.input[d] + w.low[d] + w.high[d] - w.extent(d);
    if (n.attr("ceil_mode", 0) != 0 && room % w.strides[d] != 0) {
      // One more window, unless it would start in the padding at the end.
      const int64_t start = (room / w.strides[d] + 1) * w.strides[d];
      if (start < w.input[d] + w.low[d])
        room = start;
    }
    if (room < 0)
      return n.fail("window of " + Twine(w.extent(d)) + " is larger than the padded input");
    w.output[d] = room / w.strides[d] + 1;
  }
  return success();
}

LogicalResult opConv(Node &n) {
  if (n.rank(0) < 3 || n.rank(1) != n.rank(0) || n.element(1) != n.element(0))
    return n.fail("filter has rank " + Twine(n.rank(1)) + ", expected that of the input, at least 3");
  Window w;
  if (failed(readWindow(n, n.shape(1).drop_front(2), w)))
    return failure();
  ArrayRef<int64_t> x = n.shape(0), f = n.shape(1);
  const int64_t groups = n.attr("group", 1);
  if (groups < 1 || f[0] % groups != 0 || x[1] % groups != 0 || f[1] != x[1] / groups)
    return n.fail("filter " + Node::shapeText(f) + " does not fit input " + Node::shapeText(x) + " with " +
                  Twine(groups) + " groups");
  Build &b = n.b;
  Value input = b.reshape(n.input(0), {x[0], x[1], w.input[0], w.input[1]});
  Value filter = b.reshape(n.input(1), {f[0], f[1], w.kernel[0], w.kernel[1]});
  SmallVector<int64_t> padding = {w.low[0], w.low[1], w.high[0], w.high[1]};
  Value result = Conv2dOp::create(b.builder, b.loc, n.type(0).clone({x[0], f[0], w.output[0], w.output[1]}), input,
                                  filter, w.strides, padding, w.dilations, groups);
  if (n.has(2)) {
    if (n.rank(2) != 1 || n.shape(2)[0] != f[0] || n.element(2) != n.element(0))
      return n.fail("bias has shape " + Node::shapeText(n.shape(2)) + ", expected [" + Twine(f[0]) + "]");
    result = b.add(result, b.broadcast(n.input(2), shapeOf(result), {1}));
  }
  SmallVector<int64_t> shape = {x[0], f[0]};
  llvm::append_range(shape, ArrayRef<int64_t>(w.output).take_back(n.rank(0) - 2));
  return n.set(b.reshape(result, shape));
}

/// The larger of two values, of which a tie's gradient goes to the earlier; what is no number wins.
Value laterIfLarger(Build &b, Value earlier, Value later) {
  Value wins = b.max(b.compare(CompareDirection::Gt, later, earlier), b.compare(CompareDirection::Ne, later, later));
  return b.select(wins, later, earlier);
}

/// Combines all elements of each window: a reduction where windows tile the input, else one strided slice per element
/// of the window.
FailureOr<Value> overWindows(Node &n, const Window &w, Value x, ReduceKind kind, double padValue) {
  Build &b = n.b;
  ArrayRef<int64_t> shape = shapeOf(x);
  const bool tiles = !w.isPadded() && w.strides == w.kernel && w.dilations[0] == 1 && w.dilations[1] == 1 &&
                     w.input[0] == w.output[0] * w.kernel[0] && w.input[1] == w.output[1] * w.kernel[1];
  if (tiles) {
    Value split = b.reshape(x, {shape[0], shape[1], w.output[0], w.kernel[0], w.output[1], w.kernel[1]});
    Value result = b.reduce(kind, split, {3, 5});
    if (kind == ReduceKind::Max)
      result.getDefiningOp()->setAttr(kFirst, b.builder.getUnitAttr());
    return result;
  }
  if (w.kernel[0] * w.kernel[1] > 1024)
    return n.fail("overlapping or padded windows of more than 1024 elements are not supported");
  // Windows of ceil_mode reach beyond the padding.
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = (w.output[d] - 1) * w.strides[d] + w.extent(d);
    low.push_back(w.low[d]);
    high.push_back(std::max<int64_t>(0, reach - w.input[d] - w.low[d]));
  }
  if (llvm::any_of(low, [](int64_t p) { return p; }) || llvm::any_of(high, [](int64_t p) { return p; }))
    x = b.pad(x, low, high, {}, padValue);
  Value result;
  for (int64_t i = 0; i < w.kernel[0]; ++i)
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      const int64_t top = i * w.dilations[0], left = j * w.dilations[1];
      Value element = b.slice(
          x, {0, 0, top, left},
          {shape[0], shape[1], top + (w.output[0] - 1) * w.strides[0] + 1, left + (w.output[1] - 1) * w.strides[1] + 1},
          {1, 1, w.strides[0], w.strides[1]});
      result = !result ? element : kind == ReduceKind::Max ? laterIfLarger(b, result, element) : b.add(result, element);
    }
  return result;
}

/// How many elements of the input (or of the padded input) each average is over.
HostTensor windowCounts(Node &n, const Window &w, bool countPadding) {
  std::vector<double> counts;
  auto covered = [&](size_t d, int64_t out) {
    const int64_t start = out * w.strides[d] - w.low[d];
    const int64_t from = countPadding ? -w.low[d] : 0, to = w.input[d] + (countPadding ? w.high[d] : 0);
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      const int64_t at = start + k * w.dilations[d];
      count += at >= from && at < to;
    }
    return count;
  };
  for (int64_t i = 0; i < w.output[0]; ++i)
    for (int64_t j = 0; j < w.output[1]; ++j)
      counts.push_back(1.0 / static_cast<double>(std::max<int64_t>(1, covered(0, i) * covered(1, j))));
  return HostTensor::ofFloats(RankedTensorType::get({w.output[0], w.output[1]}, n.element(0)), std::move(counts));
}

template <bool average> LogicalResult opPool(Node &n) {
  auto kernel = n.attrInts("kernel_shape");
  Window w;
  if (!kernel)
    return n.fail("kernel_shape is missing");
  if (failed(readWindow(n, *kernel, w)))
    return failure();
  if (n.wants(1))
    return n.fail("the indices output is not supported");
  ArrayRef<int64_t> shape = n.shape(0);
  Build &b = n.b;
  Value x = b.reshape(n.input(0), {shape[0], shape[1], w.input[0], w.input[1]});
  auto result = overWindows(n, w, x, average ? ReduceKind::Sum : ReduceKind::Max,
                            average ? 0.0 : -std::numeric_limits<double>::infinity());
  if (failed(result))
    return failure();
  if (average) {
    if (w.output[0] * w.output[1] > kMaxConstantElements)
      return n.fail("result is too large");
    HostTensor factors = windowCounts(n, w, n.attr("count_include_pad", 0) != 0);
    Value factor = factors.uniform() ? b.splatLike(*result, *factors.uniform())
                                     : b.broadcastTo(b.constant(factors.toAttr()), shapeOf(*result));
    result = b.mul(*result, factor);
  }
  SmallVector<int64_t> outShape = {shape[0], shape[1]};
  llvm::append_range(outShape, ArrayRef<int64_t>(w.output).take_back(n.rank(0) - 2));
  return n.set(b.reshape(*result, outShape));
}

template <bool average> LogicalResult opGlobalPool(Node &n) {
  if (n.rank(0) < 3 || !n.isFloat(0) || n.type(0).getNumElements() == 0)
    return n.fail("expected a floating-point input of rank 3 or more that is not empty");
  SmallVector<int64_t> shape(n.shape(0)), dims;
  int64_t count = 1;
  for (int64_t dim = 2; dim < n.rank(0); ++dim) {
    dims.push_back(dim);
    count *= shape[dim];
    shape[dim] = 1;
  }
  Value result = n.b.reduce(average ? ReduceKind::Sum : ReduceKind::Max, n.input(0), dims);
  if (!average)
    result.getDefiningOp()->setAttr(kFirst, n.b.builder.getUnitAttr());
  else
    result = n.b.scale(result, 1.0 / static_cast<double>(count));
  return n.set(n.b.reshape(result, shape));
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "AveragePool", kAny, kNew, 1, opPool<true>},
    {"", "Conv", kAny, kNew, 2, opConv},
    {"", "GlobalAveragePool", kAny, kNew, 1, opGlobalPool<true>},
    {"", "GlobalMaxPool", kAny, kNew, 1, opGlobalPool<false>},
    {"", "MaxPool", kAny, kNew, 1, opPool<false>},
};
} // namespace

ArrayRef<OpRow> convolutionOps() { return kRows; }

} // namespace tessera::onnx_import
