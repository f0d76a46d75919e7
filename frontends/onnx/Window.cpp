//===- Window.cpp - windows of convolutions and poolings ------------------===//

#include "frontends/onnx/Window.h"

#include "frontends/onnx/Axis.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

std::optional<SmallVector<int64_t, 3>> spatialAttr(Node &n, StringRef name, int64_t count) {
  SmallVector<int64_t, 3> values(count, 1);
  if (auto given = n.attrInts(name)) {
    if (static_cast<int64_t>(given->size()) != count)
      return std::nullopt;
    values.assign(given->begin(), given->end());
  }
  for (int64_t value : values)
    if (value < 1 || value > kMaxSpatial)
      return std::nullopt;
  return values;
}

bool readWindowShape(Node &n, ArrayRef<int64_t> kernel, Window &w) {
  auto fail = [&](const Twine &why) { return succeeded(n.fail(why)); };
  const int64_t count = n.rank(0) - 2;
  if (count < 1 || count > 3 || !n.isFloat(0))
    return fail("expected a floating-point input of rank 3 to 5");
  auto strides = spatialAttr(n, "strides", count), dilations = spatialAttr(n, "dilations", count);
  if (!strides || !dilations || static_cast<int64_t>(kernel.size()) != count)
    return fail("strides, dilations or kernel are not positive, or not one per spatial dimension");
  w.strides = *strides;
  w.dilations = *dilations;
  for (int64_t size : kernel)
    if (size < 1 || size > kMaxSpatial)
      return fail("kernel size " + Twine(size) + " is out of range");
  w.kernel.assign(kernel.begin(), kernel.end());
  w.input.assign(n.shape(0).begin() + 2, n.shape(0).end());
  w.low.assign(count, 0);
  w.high.assign(count, 0);
  w.output.assign(count, 0);
  auto pads = n.attrInts("pads");
  if (pads && static_cast<int64_t>(pads->size()) != 2 * count)
    return fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * count));
  for (int64_t d = 0; d < count; ++d) {
    if (w.extent(d) > kMaxSpatial || w.input[d] > kMaxSpatial)
      return fail("window or input is too large");
    if (pads) {
      w.low[d] = (*pads)[d];
      w.high[d] = (*pads)[d + count];
    }
    if (w.low[d] < 0 || w.high[d] < 0 || w.low[d] > kMaxSpatial || w.high[d] > kMaxSpatial)
      return fail("pads are negative or too large");
  }
  return true;
}

bool readWindow(Node &n, ArrayRef<int64_t> kernel, Window &w) {
  if (!readWindowShape(n, kernel, w))
    return false;
  const std::string autoPad = n.attrString("auto_pad", "NOTSET");
  for (size_t d = 0; d < w.rank(); ++d) {
    if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      const int64_t out = llvm::divideCeil(w.input[d], w.strides[d]);
      const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[d] + w.extent(d) - w.input[d]);
      w.low[d] = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.high[d] = total - w.low[d];
    } else if (autoPad == "VALID") {
      w.low[d] = w.high[d] = 0;
    } else if (autoPad != "NOTSET") {
      return succeeded(n.fail("auto_pad is '" + autoPad + "'"));
    }
    const int64_t room = w.input[d] + w.low[d] + w.high[d] - w.extent(d);
    w.output[d] = llvm::divideFloorSigned(room, w.strides[d]) + 1;
    // One more window, unless it would start in the padding at the end.
    if (n.attr("ceil_mode", 0) != 0 && llvm::mod(room, w.strides[d]) != 0 &&
        w.output[d] * w.strides[d] < w.input[d] + w.low[d])
      ++w.output[d];
    if (w.output[d] < 1)
      return succeeded(n.fail("window of " + Twine(w.extent(d)) + " is larger than the padded input"));
  }
  return true;
}

Value windowSlice(Build &b, Value x, int64_t axis, const Window &w, size_t d, int64_t offset) {
  const int64_t start = offset * w.dilations[d];
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), limits(shapeOf(x)), strides(starts.size(), 1);
  starts[axis] = start;
  limits[axis] = start + (w.output[d] - 1) * w.strides[d] + 1;
  strides[axis] = w.strides[d];
  return b.slice(x, starts, limits, strides);
}

Value foldWindows(Build &b, Value x, int64_t elements, int64_t axis, const Window &w, size_t d) {
  const int64_t end = w.low[d] + w.input[d], total = std::max(w.reach(d), end);
  SmallVector<int64_t> shape(shapeOf(x));
  shape.erase(shape.begin() + elements);
  axis -= axis > elements;
  Value result;
  for (int64_t offset = 0; offset < w.kernel[d]; ++offset) {
    SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0), interior(shape.size(), 0);
    low[axis] = offset * w.dilations[d];
    interior[axis] = w.strides[d] - 1;
    high[axis] = total - low[axis] - (w.output[d] - 1) * w.strides[d] - 1;
    Value part = b.pad(elementAlong(b, x, elements, offset), low, high, interior);
    result = result ? b.add(result, part) : part;
  }
  return sliceAlong(b, result, axis, w.low[d], end);
}

} // namespace tessera::onnx_import
