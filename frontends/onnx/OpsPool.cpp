//===- OpsPool.cpp - pooling -----------------------------------------------===//

#include "compiler/dialect/train/Ties.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Spatial.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// The sum or the maximum of two elements of a window, `first` being the one that comes first: a tie's gradient goes to
/// it. What is no number wins.
Value combine(Build &b, ReduceKind kind, Value first, Value second) {
  if (kind != ReduceKind::Max)
    return b.add(first, second);
  Value wins = b.max(b.compare(CompareDirection::Gt, second, first), b.compare(CompareDirection::Ne, second, second));
  return b.select(wins, second, first);
}

/// A reduction of whole windows, with the same rule.
Value reduceWindows(Build &b, ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  Value result = b.reduce(kind, x, dims);
  if (kind == ReduceKind::Max)
    result.getDefiningOp()->setAttr(kFirst, b.builder.getUnitAttr());
  return result;
}

/// Combines all elements of each window: a reduction where windows tile the input, else strided slices, one dimension
/// after the other from the last, so that elements meet in their order in memory.
FailureOr<Value> overWindows(Node &n, const Window &w, Value x, ReduceKind kind, double padValue) {
  Build &b = n.b;
  ArrayRef<int64_t> shape = shapeOf(x);
  bool tiles = true;
  SmallVector<int64_t> split(shape.take_front(2)), inner, low(shape.size(), 0), high(shape.size(), 0);
  for (size_t d = 0; d < w.rank(); ++d) {
    tiles &= w.low[d] == 0 && w.high[d] == 0 && w.strides[d] == w.kernel[d] && w.dilations[d] == 1 &&
             w.input[d] == w.output[d] * w.kernel[d];
    inner.push_back(static_cast<int64_t>(split.size()) + 1);
    split.append({w.output[d], w.kernel[d]});
    // Windows of ceil_mode reach beyond the padding.
    low[2 + d] = w.low[d];
    high[2 + d] = std::max<int64_t>(0, w.reach(d) - w.input[d] - w.low[d]);
  }
  if (tiles)
    return reduceWindows(b, kind, b.reshape(x, split), inner);
  for (int64_t size : w.kernel)
    if (size > 1024)
      return n.fail("overlapping or padded windows of more than 1024 elements along a dimension are not supported");
  auto isSome = [](int64_t size) { return size != 0; };
  if (llvm::any_of(low, isSome) || llvm::any_of(high, isSome))
    x = b.pad(x, low, high, {}, padValue);
  for (size_t d = w.rank(); d-- > 0;) {
    Value result;
    for (int64_t offset = 0; offset < w.kernel[d]; ++offset) {
      Value element = windowSlice(b, x, static_cast<int64_t>(2 + d), w, d, offset);
      result = result ? combine(b, kind, result, element) : element;
    }
    x = result;
  }
  return x;
}

/// One over how many elements of the input (or of the padded input) each average is.
HostTensor windowFactors(Node &n, const Window &w, bool countPadding) {
  std::vector<double> counts = {1};
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t from = countPadding ? -w.low[d] : 0, to = w.input[d] + (countPadding ? w.high[d] : 0);
    std::vector<double> wider;
    for (double outer : counts)
      for (int64_t out = 0; out < w.output[d]; ++out) {
        // The window's elements at first, first + dilation, … that are in [from, to).
        const int64_t first = out * w.strides[d] - w.low[d];
        auto below = [&](int64_t limit) {
          return std::clamp<int64_t>(llvm::divideCeilSigned(limit - first, w.dilations[d]), 0, w.kernel[d]);
        };
        const int64_t count = below(to) - below(from);
        wider.push_back(outer * static_cast<double>(std::max<int64_t>(1, count)));
      }
    counts = std::move(wider);
  }
  for (double &count : counts)
    count = 1 / count;
  return HostTensor::ofFloats(RankedTensorType::get(w.output, n.element(0)), std::move(counts));
}

/// The window of a pooling node.
bool readPool(Node &n, Window &w) {
  auto kernel = n.attrInts("kernel_shape");
  if (!kernel)
    return succeeded(n.fail("kernel_shape is missing"));
  return readWindow(n, *kernel, w);
}

LogicalResult opAveragePool(Node &n) {
  Window w;
  if (!readPool(n, w))
    return failure();
  const bool countPadding = n.attr("count_include_pad", 0) != 0;
  // Without dilation PyTorch says what counts; with it only ONNX's reference does, which also counts beyond the
  // padding.
  for (size_t d = 0; d < w.rank() && countPadding; ++d)
    if (w.dilations[d] != 1 && w.reach(d) > w.low[d] + w.input[d] + w.high[d])
      return n.fail("dilated windows that reach beyond the padding are not supported with count_include_pad");
  auto sum = overWindows(n, w, n.input(0), ReduceKind::Sum, 0.0);
  if (failed(sum))
    return failure();
  int64_t count = 1;
  for (int64_t size : w.output)
    count *= size;
  if (count > kMaxConstantElements)
    return n.fail("result is too large");
  HostTensor factors = windowFactors(n, w, countPadding);
  Value factor = factors.uniform() ? n.b.splatLike(*sum, *factors.uniform())
                                   : n.b.broadcastTo(n.b.constant(factors.toAttr()), shapeOf(*sum));
  return n.set(n.b.mul(*sum, factor));
}

LogicalResult opMaxPool(Node &n) {
  Window w;
  if (!readPool(n, w))
    return failure();
  if (n.wants(1))
    return n.fail("the indices output is not supported");
  auto result = overWindows(n, w, n.input(0), ReduceKind::Max, -std::numeric_limits<double>::infinity());
  return failed(result) ? failure() : n.set(*result);
}

/// (Σ |x|^p)^(1/p) over each window.
LogicalResult opLpPool(Node &n) {
  Window w;
  if (!readPool(n, w))
    return failure();
  const int64_t order = n.attr("p", 2);
  if (order < 1)
    return n.fail("p is " + Twine(order) + ", expected at least 1");
  const double p = static_cast<double>(order);
  Build &b = n.b;
  Value size = b.unary<AbsOp>(n.input(0));
  auto sum = overWindows(n, w, b.pow(size, b.splatLike(size, p)), ReduceKind::Sum, 0.0);
  return failed(sum) ? failure() : n.set(b.pow(*sum, b.splatLike(*sum, 1 / p)));
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
  Value result = reduceWindows(n.b, average ? ReduceKind::Sum : ReduceKind::Max, n.input(0), dims);
  if (average)
    result = n.b.scale(result, 1.0 / static_cast<double>(count));
  return n.set(n.b.reshape(result, shape));
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "AveragePool", kAny, kNew, 1, opAveragePool},
    {"", "GlobalAveragePool", kAny, kNew, 1, opGlobalPool<true>},
    {"", "GlobalMaxPool", kAny, kNew, 1, opGlobalPool<false>},
    {"", "LpPool", kAny, kNew, 1, opLpPool},
    {"", "MaxPool", kAny, kNew, 1, opMaxPool},
};
} // namespace

ArrayRef<OpRow> poolOps() { return kRows; }

} // namespace tessera::onnx_import
