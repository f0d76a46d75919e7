//===- Window.cpp - windows of convolutions and poolings ------------------===//

#include "frontends/common/Window.h"

#include "frontends/common/Axis.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

bool checkWindow(Call &n, ArrayRef<int64_t> input, Window &w) {
  auto fail = [&](const Twine &why) { return succeeded(n.fail(why)); };
  for (int64_t size : w.kernel)
    if (size < 1 || size > kMaxSpatial)
      return fail("kernel size " + Twine(size) + " is out of range");
  w.input.assign(input.begin(), input.end());
  w.output.assign(w.rank(), 0);
  for (size_t d = 0; d < w.rank(); ++d) {
    if (w.extent(d) > kMaxSpatial || w.input[d] > kMaxSpatial)
      return fail("window or input is too large");
    if (w.low[d] < 0 || w.high[d] < 0 || w.low[d] > kMaxSpatial || w.high[d] > kMaxSpatial)
      return fail("pads are negative or too large");
  }
  return true;
}

bool countWindows(Call &n, Window &w, size_t d, bool ceilMode) {
  const int64_t room = w.input[d] + w.low[d] + w.high[d] - w.extent(d);
  w.output[d] = llvm::divideFloorSigned(room, w.strides[d]) + 1;
  if (ceilMode && llvm::mod(room, w.strides[d]) != 0 && w.output[d] * w.strides[d] < w.input[d] + w.low[d])
    ++w.output[d];
  if (w.output[d] < 1)
    return succeeded(n.fail("window of " + Twine(w.extent(d)) + " is larger than the padded input"));
  return true;
}

Value windowSlice(Build &b, Value x, int64_t axis, const Window &w, size_t d, int64_t offset) {
  const int64_t start = offset * w.dilations[d];
  return sliceAlong(b, x, axis, start, start + (w.output[d] - 1) * w.strides[d] + 1, w.strides[d]);
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

} // namespace tessera::frontend
