//===- OpsConvolution.cpp - convolutions of one to three dimensions --------===//

#include "frontends/common/Convolution.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// The padding that `padding` names: a number for each dimension, "valid", or "same", whose odd element is at the end.
bool readPadding(Call &c, frontend::Window &w) {
  const std::string word = c.text("padding", "");
  if (!word.empty() && word != "same" && word != "valid")
    return succeeded(c.fail("padding is '" + word + "'"));
  auto given =
      word.empty() ? c.spatial("padding", w.rank(), 0, 0) : std::optional(SmallVector<int64_t, 3>(w.rank(), 0));
  if (!given)
    return succeeded(c.fail("the padding is out of range"));
  w.low = w.high = *given;
  for (size_t d = 0; word == "same" && d < w.rank(); ++d) {
    w.low[d] = (w.extent(d) - 1) / 2;
    w.high[d] = w.extent(d) - 1 - w.low[d];
  }
  return true;
}

/// What all convolutions say of their windows, with padding that `readPadding` reads once sizes are known.
bool readWindow(Call &c, frontend::Window &w) {
  w.kernel.assign(c.shape("weight").drop_front(2).begin(), c.shape("weight").end());
  auto strides = c.spatial("stride", w.rank(), 1, 1), dilations = c.spatial("dilation", w.rank(), 1, 1);
  if (w.rank() > 3 || !strides || !dilations)
    return succeeded(c.fail("strides or dilations are out of range, or there are more than three dimensions"));
  w.strides = *strides;
  w.dilations = *dilations;
  w.low.assign(w.rank(), 0);
  w.high.assign(w.rank(), 0);
  ArrayRef<int64_t> sizes = c.shape("input").drop_front(2);
  // Sizes first, then the padding, which may follow from them.
  return frontend::checkWindow(c, sizes, w) && readPadding(c, w) && frontend::checkWindow(c, sizes, w);
}

LogicalResult convolution(Call &c) {
  frontend::Window w;
  if (!readWindow(c, w))
    return failure();
  for (size_t d = 0; d < w.rank(); ++d)
    if (!frontend::countWindows(c, w, d, /*ceilMode=*/false))
      return failure();
  const int64_t groups = c.integerOr("groups", 1);
  if (failed(frontend::checkFilter(c, c.shape("weight")[1] * groups, groups)))
    return failure();
  Value x = c.value("input"), filter = c.value("weight");
  return frontend::setWithBias(c, frontend::convolve(c.b, x, filter, w, groups));
}

LogicalResult transposedConvolution(Call &c) {
  frontend::Window w;
  if (!readWindow(c, w))
    return failure();
  auto after = c.spatial("output_padding", w.rank(), 0, 0);
  if (!after)
    return c.fail("output_padding is out of range");
  std::swap(w.input, w.output);
  SmallVector<int64_t, 3> extra(w.rank(), 0);
  for (size_t d = 0; d < w.rank(); ++d) {
    auto reach = frontend::transposedReach(c, w, d, (*after)[d]);
    if (!reach || !frontend::finishTransposed(c, w, d, *reach, (*after)[d], extra[d]))
      return failure();
  }
  const int64_t groups = c.integerOr("groups", 1);
  if (failed(frontend::checkFilter(c, c.shape("weight")[0], groups)))
    return failure();
  Value y = c.value("input"), filter = c.value("weight");
  return frontend::setWithBias(c, frontend::convolveTransposed(c.b, y, filter, w, extra, groups));
}

/// Of one sample, too.
template <bool isTransposed> LogicalResult opConvolution(Call &c) {
  // input, weight and bias are the first arguments, as of ONNX's op.
  if (c.at("input") != 0 || c.at("weight") != 1 || !c.isFloat("input"))
    return c.fail("expected floating point and a filter");
  const bool isOne = c.rank("weight") >= 3 && c.rank("input") == c.rank("weight") - 1;
  if (isOne) {
    SmallVector<int64_t> shape(c.shape("input"));
    shape.insert(shape.begin(), 1);
    Value batch = c.b.reshape(c.value("input"), shape);
    c.inputs[0] = Entry();
    c.inputs[0].value = batch;
  }
  if (failed(frontend::checkFilterRank(c)) ||
      failed(isTransposed || c.flag("transposed", false) ? transposedConvolution(c) : convolution(c)))
    return failure();
  if (!isOne)
    return success();
  Value result = c.outputs[0].value;
  return c.set(c.b.reshape(result, shapeOf(result).drop_front()));
}

const OpRow kConvolutionOps[] = {
    {"aten.conv1d.default", opConvolution<false>, "input,weight"},
    {"aten.conv1d.padding", opConvolution<false>, "input,weight"},
    {"aten.conv2d.default", opConvolution<false>, "input,weight"},
    {"aten.conv2d.padding", opConvolution<false>, "input,weight"},
    {"aten.conv3d.default", opConvolution<false>, "input,weight"},
    {"aten.conv3d.padding", opConvolution<false>, "input,weight"},
    {"aten.convolution.default", opConvolution<false>, "input,weight"},
    {"aten.conv_transpose1d.default", opConvolution<true>, "input,weight"},
    {"aten.conv_transpose2d.input", opConvolution<true>, "input,weight"},
    {"aten.conv_transpose3d.input", opConvolution<true>, "input,weight"},
};
} // namespace

llvm::ArrayRef<OpRow> convolutionOps() { return kConvolutionOps; }

} // namespace tessera::pt2
