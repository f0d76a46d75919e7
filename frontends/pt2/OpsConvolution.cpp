//===- OpsConvolution.cpp - convolutions of one and two dimensions ---------===//

#include "frontends/pt2/Call.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// One number for each of `rank` dimensions, also where one stands for all; nothing if one is out of [least, 2^24].
std::optional<SmallVector<int64_t>> spatial(Call &c, StringRef name, size_t rank, int64_t least, int64_t fallback) {
  SmallVector<int64_t> values =
      c.has(name) ? c.ints(name).value_or(SmallVector<int64_t>()) : SmallVector<int64_t>{fallback};
  if (values.size() == 1)
    values.resize(rank, values[0]);
  if (values.size() != rank || llvm::any_of(values, [&](int64_t value) { return value < least || value > (1 << 24); }))
    return std::nullopt;
  return values;
}

LogicalResult opConvolution(Call &c) {
  if (c.flag("transposed", false))
    return c.fail("transposed convolutions are not supported");
  ArrayRef<int64_t> x = c.shape("input"), f = c.shape("weight");
  const size_t rank = f.size() - std::min<size_t>(2, f.size());
  if (rank < 1 || rank > 2 || x.size() != f.size() || !c.isFloat("input") || c.element("input") != c.element("weight"))
    return c.fail("expected [N, C, W] or [N, C, H, W] and a filter of as many dimensions");
  auto strides = spatial(c, "stride", rank, 1, 1), dilations = spatial(c, "dilation", rank, 1, 1);
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  if (!strides || !dilations)
    return c.fail("strides or dilations are out of range");
  if (std::string word = c.text("padding", ""); word == "same") {
    for (size_t d = 0; d < rank; ++d) {
      const int64_t total = (*dilations)[d] * (f[2 + d] - 1);
      low[d] = total / 2;
      high[d] = total - low[d];
    }
  } else if (word.empty()) {
    auto given = spatial(c, "padding", rank, 0, 0);
    if (!given)
      return c.fail("the padding is out of range");
    low = high = *given;
  } else if (word != "valid") {
    return c.fail("padding is '" + word + "'");
  }
  const int64_t groups = c.integerOr("groups", 1);
  if (groups < 1 || f[0] % groups != 0 || x[1] != f[1] * groups)
    return c.fail("a filter of " + shapeText(f) + " does not fit an input of " + shapeText(x) + " in " + Twine(groups) +
                  " groups");
  SmallVector<int64_t> result = {x[0], f[0]};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = (f[2 + d] - 1) * (*dilations)[d] + 1, padded = x[2 + d] + low[d] + high[d];
    if (f[2 + d] < 1 || extent > padded)
      return c.fail("the window is larger than the padded input");
    result.push_back((padded - extent) / (*strides)[d] + 1);
  }
  // One dimension becomes images of height 1.
  auto image = [&](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> made(shape);
    if (rank == 1)
      made.insert(made.begin() + 2, 1);
    return made;
  };
  auto ofImage = [&](SmallVector<int64_t> values, int64_t filler) {
    if (rank == 1)
      values.insert(values.begin(), filler);
    return values;
  };
  SmallVector<int64_t> padding = ofImage(low, 0);
  llvm::append_range(padding, ofImage(high, 0));
  Build &b = c.b;
  Value y = Conv2dOp::create(b.builder, b.loc, c.type("input").clone(image(result)),
                             b.reshape(c.value("input"), image(x)), b.reshape(c.value("weight"), image(f)),
                             ofImage(*strides, 1), padding, ofImage(*dilations, 1), groups);
  y = b.reshape(y, result);
  if (c.isTensor("bias")) {
    if (c.shape("bias") != ArrayRef<int64_t>{f[0]} || c.element("bias") != c.element("input"))
      return c.fail("the bias does not fit");
    y = b.add(y, b.broadcast(c.value("bias"), result, {1}));
  }
  return c.set(y);
}

const OpRow kRows[] = {
    {"aten.conv1d.default", opConvolution, "input,weight"},      {"aten.conv1d.padding", opConvolution, "input,weight"},
    {"aten.conv2d.default", opConvolution, "input,weight"},      {"aten.conv2d.padding", opConvolution, "input,weight"},
    {"aten.convolution.default", opConvolution, "input,weight"},
};
} // namespace

llvm::ArrayRef<OpRow> convolutionOps() { return kRows; }

} // namespace tessera::pt2
