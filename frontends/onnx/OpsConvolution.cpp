//===- OpsConvolution.cpp - convolutions and transposed convolutions ------===//

#include "frontends/common/Convolution.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Spatial.h"

using namespace mlir;

namespace tessera::onnx_import {

namespace {
LogicalResult opConv(Node &n) {
  Window w;
  if (failed(checkFilterRank(n)) || !readWindow(n, n.shape(1).drop_front(2), w))
    return failure();
  const int64_t groups = n.attr("group", 1);
  if (failed(checkFilter(n, n.shape(1)[1] * groups, groups)))
    return failure();
  Value x = n.input(0), filter = n.input(1);
  return setWithBias(n, convolve(n.b, x, filter, w, groups));
}

/// The window of the convolution whose gradient with respect to its input a transposed convolution is: `output` is the
/// node's input, `input` the node's output. `extra`: rows at the end of the output that no window reaches.
bool readTransposedWindow(Node &n, Window &w, SmallVectorImpl<int64_t> &extra) {
  auto fail = [&](const Twine &why) { return succeeded(n.fail(why)); };
  if (!readWindowShape(n, n.shape(1).drop_front(2), w))
    return false;
  auto padding = n.attrInts("output_padding"), given = n.attrInts("output_shape");
  const std::string autoPad = n.attrString("auto_pad", "NOTSET");
  const bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if ((padding && padding->size() != w.rank()) || (given && given->size() != w.rank()))
    return fail("output_padding or output_shape has not one value per spatial dimension");
  if (!same && autoPad != "VALID" && autoPad != "NOTSET")
    return fail("auto_pad is '" + autoPad + "'");
  std::swap(w.input, w.output);
  extra.assign(w.rank(), 0);
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t after = padding ? (*padding)[d] : 0;
    auto reach = transposedReach(n, w, d, after);
    if (!reach)
      return false;
    if (given || same) {
      const int64_t pads = *reach - (given ? (*given)[d] : w.output[d] * w.strides[d]);
      if (pads < 0)
        return fail("output_shape is larger than what the windows reach");
      w.low[d] = autoPad == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
      w.high[d] = pads - w.low[d];
    } else if (autoPad == "VALID") {
      w.low[d] = w.high[d] = 0;
    }
    if (!finishTransposed(n, w, d, *reach, after, extra[d]))
      return false;
  }
  return true;
}

LogicalResult opConvTranspose(Node &n) {
  Window w;
  SmallVector<int64_t, 3> extra;
  if (failed(checkFilterRank(n)) || !readTransposedWindow(n, w, extra))
    return failure();
  const int64_t groups = n.attr("group", 1);
  if (failed(checkFilter(n, n.shape(1)[0], groups)))
    return failure();
  Value y = n.input(0), filter = n.input(1);
  return setWithBias(n, convolveTransposed(n.b, y, filter, w, extra, groups));
}

const OpRow kConvolutionOps[] = {
    {"", "Conv", kAny, kNew, 2, opConv},
    {"", "ConvTranspose", kAny, kNew, 2, opConvTranspose},
};
} // namespace

ArrayRef<OpRow> convolutionOps() { return kConvolutionOps; }

} // namespace tessera::onnx_import
