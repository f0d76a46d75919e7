//===- OpsPool.cpp - pooling -----------------------------------------------===//

#include "frontends/common/Pool.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Spatial.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
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
  auto result = averagePool(n, w, n.input(0), countPadding);
  return failed(result) ? failure() : n.set(*result);
}

LogicalResult opMaxPool(Node &n) {
  Window w;
  if (!readPool(n, w))
    return failure();
  if (n.wants(1))
    return n.fail("the indices output is not supported");
  auto result = maxPool(n, w, n.input(0));
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

const OpRow kPoolOps[] = {
    {"", "AveragePool", kAny, kNew, 1, opAveragePool},
    {"", "GlobalAveragePool", kAny, kNew, 1, opGlobalPool<true>},
    {"", "GlobalMaxPool", kAny, kNew, 1, opGlobalPool<false>},
    {"", "LpPool", kAny, kNew, 1, opLpPool},
    {"", "MaxPool", kAny, kNew, 1, opMaxPool},
};
} // namespace

ArrayRef<OpRow> poolOps() { return kPoolOps; }

} // namespace tessera::onnx_import
