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

LogicalResult opConvolution(Call &c) {
  if (c.flag("transposed", false))
    return c.fail("transposed convolutions are not supported");
  // input, weight and bias are the first arguments, as of ONNX's op.
  if (c.at("input") != 0 || c.at("weight") != 1 || !c.isFloat("input") || failed(frontend::checkFilterRank(c)))
    return c.reason.empty() ? c.fail("expected floating point and a filter") : failure();
  frontend::Window w;
  w.kernel.assign(c.shape("weight").drop_front(2).begin(), c.shape("weight").end());
  auto strides = c.spatial("stride", w.rank(), 1, 1), dilations = c.spatial("dilation", w.rank(), 1, 1);
  if (w.rank() > 3 || !strides || !dilations)
    return c.fail("strides or dilations are out of range, or there are more than three dimensions");
  w.strides = *strides;
  w.dilations = *dilations;
  w.low.assign(w.rank(), 0);
  w.high.assign(w.rank(), 0);
  // Sizes first, then the padding, which may follow from them.
  if (!frontend::checkWindow(c, w) || !readPadding(c, w) || !frontend::checkWindow(c, w))
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

const OpRow kRows[] = {
    {"aten.conv1d.default", opConvolution, "input,weight"},      {"aten.conv1d.padding", opConvolution, "input,weight"},
    {"aten.conv2d.default", opConvolution, "input,weight"},      {"aten.conv2d.padding", opConvolution, "input,weight"},
    {"aten.conv3d.default", opConvolution, "input,weight"},      {"aten.conv3d.padding", opConvolution, "input,weight"},
    {"aten.convolution.default", opConvolution, "input,weight"},
};
} // namespace

llvm::ArrayRef<OpRow> convolutionOps() { return kRows; }

} // namespace tessera::pt2
