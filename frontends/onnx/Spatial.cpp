//===- Spatial.cpp - attributes of convolutions and poolings --------------===//

#include "frontends/onnx/Spatial.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

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
  w.kernel.assign(kernel.begin(), kernel.end());
  w.low.assign(count, 0);
  w.high.assign(count, 0);
  if (auto pads = n.attrInts("pads")) {
    if (static_cast<int64_t>(pads->size()) != 2 * count)
      return fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * count));
    w.low.assign(pads->begin(), pads->begin() + count);
    w.high.assign(pads->begin() + count, pads->end());
  }
  return checkWindow(n, n.shape(0).drop_front(2), w);
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
    if (!countWindows(n, w, d, n.attr("ceil_mode", 0) != 0))
      return false;
  }
  return true;
}

} // namespace tessera::onnx_import
