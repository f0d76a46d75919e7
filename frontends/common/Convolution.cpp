//===- Convolution.cpp - convolutions of one to three dimensions ----------===//

#include "frontends/common/Convolution.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
// Everything is a convolution of images. One dimension becomes images of height 1. Three dimensions become one image of
// height and width for each depth of the result, whose channels are those of the input at each depth of the window:
// [N, C, D, H, W] becomes [N*D', C*K, H, W], and the filter [O, C, K, h, w] is [O, C*K, h, w].

/// `sizes` as those of images: [..., height, width] after `keep` others.
SmallVector<int64_t> imageShape(ArrayRef<int64_t> sizes, ArrayRef<int64_t> spatial) {
  SmallVector<int64_t> shape(sizes);
  shape.append(2 - std::min<size_t>(2, spatial.size()), 1);
  llvm::append_range(shape, spatial.take_back(2));
  return shape;
}

/// Height and width of what has one value per spatial dimension, `filler` where there is no height.
SmallVector<int64_t> ofImage(ArrayRef<int64_t> spatial, int64_t filler) {
  SmallVector<int64_t> values(2 - std::min<size_t>(2, spatial.size()), filler);
  llvm::append_range(values, spatial.take_back(2));
  return values;
}

struct ImageWindow {
  SmallVector<int64_t> strides, dilations, padding;

  explicit ImageWindow(const Window &w)
      : strides(ofImage(w.strides, 1)), dilations(ofImage(w.dilations, 1)), padding(ofImage(w.low, 0)) {
    llvm::append_range(padding, ofImage(w.high, 0));
  }
};

/// The filter [O, C, spatial…] for images.
Value imageFilter(Build &b, Value filter, const Window &w) {
  ArrayRef<int64_t> f = shapeOf(filter);
  const int64_t depth = w.rank() == 3 ? w.kernel[0] : 1;
  return b.reshape(filter, imageShape({f[0], f[1] * depth}, w.kernel));
}

/// [N, C, D, H, W] to [N*D', C*K, H, W]: at each depth of the result what its window sees.
Value unfoldDepth(Build &b, Value x, const Window &w) {
  SmallVector<int64_t> shape(shapeOf(x)), low(5, 0), high(5, 0);
  low[2] = w.low[0];
  high[2] = std::max<int64_t>(0, w.reach(0) - w.input[0] - w.low[0]);
  if (low[2] != 0 || high[2] != 0)
    x = b.pad(x, low, high);
  SmallVector<Value> parts;
  for (int64_t offset = 0; offset < w.kernel[0]; ++offset)
    parts.push_back(
        b.reshape(windowSlice(b, x, 2, w, 0, offset), {shape[0], shape[1], 1, w.output[0], shape[3], shape[4]}));
  Value stacked = parts.size() == 1 ? parts.front() : b.concat(parts, 2);
  return b.reshape(b.transpose(stacked, {0, 3, 1, 2, 4, 5}),
                   {shape[0] * w.output[0], shape[1] * w.kernel[0], shape[3], shape[4]});
}

/// The gradient of unfoldDepth: [N*D', C*K, H, W] to [N, C, D, H, W].
Value foldDepth(Build &b, Value y, int64_t samples, const Window &w) {
  ArrayRef<int64_t> shape = shapeOf(y);
  Value split = b.reshape(y, {samples, w.output[0], shape[1] / w.kernel[0], w.kernel[0], shape[2], shape[3]});
  return b.transpose(foldWindows(b, split, 3, 1, w, 0), {0, 2, 1, 3, 4});
}

/// Each depth of a window becomes an op.
constexpr int64_t kDeepestFilter = 1024;
} // namespace

LogicalResult checkFilter(Call &n, int64_t channels, int64_t groups) {
  ArrayRef<int64_t> f = n.shape(1);
  if (groups < 1 || f[0] % groups != 0 || n.shape(0)[1] != channels || n.element(1) != n.element(0))
    return n.fail("filter " + shapeText(f) + " does not fit input " + shapeText(n.shape(0)) + " with " + Twine(groups) +
                  " groups");
  return success();
}

LogicalResult setWithBias(Call &n, Value result) {
  if (!n.has(2))
    return n.set(result);
  const int64_t channels = shapeOf(result)[1];
  if (n.rank(2) != 1 || n.shape(2)[0] != channels || n.element(2) != n.element(0))
    return n.fail("bias has shape " + shapeText(n.shape(2)) + ", expected [" + Twine(channels) + "]");
  return n.set(n.b.add(result, n.b.broadcast(n.input(2), shapeOf(result), {1})));
}

LogicalResult checkFilterRank(Call &n) {
  if (n.rank(0) < 3 || n.rank(1) != n.rank(0))
    return n.fail("filter has rank " + Twine(n.rank(1)) + ", expected that of the input, at least 3");
  if (n.rank(1) == 5 && n.shape(1)[2] > kDeepestFilter)
    return n.fail("filters that are deeper than " + Twine(kDeepestFilter) + " are not supported");
  return success();
}

Value convolve(Build &b, Value input, Value filter, const Window &w, int64_t groups) {
  const SmallVector<int64_t> x(shapeOf(input));
  const int64_t channels = shapeOf(filter)[0];
  const ImageWindow image(w);
  const bool isDeep = w.rank() == 3;
  Value unfolded =
      isDeep ? unfoldDepth(b, input, w) : b.reshape(input, imageShape(ArrayRef<int64_t>(x).take_front(2), w.input));
  auto type = tensorType(input).clone(imageShape({shapeOf(unfolded)[0], channels}, w.output));
  Value y = Conv2dOp::create(b.builder, b.loc, type, unfolded, imageFilter(b, filter, w), image.strides, image.padding,
                             image.dilations, groups);
  if (isDeep)
    return b.transpose(b.reshape(y, {x[0], w.output[0], channels, w.output[1], w.output[2]}), {0, 2, 1, 3, 4});
  SmallVector<int64_t> shape = {x[0], channels};
  llvm::append_range(shape, w.output);
  return b.reshape(y, shape);
}

Value convolveTransposed(Build &b, Value y, Value filter, const Window &w, ArrayRef<int64_t> extra, int64_t groups) {
  const SmallVector<int64_t> x(shapeOf(y));
  const int64_t channels = shapeOf(filter)[1] * groups;
  const ImageWindow image(w);
  const bool isDeep = w.rank() == 3;
  if (isDeep)
    y = b.reshape(b.transpose(y, {0, 2, 1, 3, 4}), {x[0] * x[2], x[1], x[3], x[4]});
  else
    y = b.reshape(y, imageShape(ArrayRef<int64_t>(x).take_front(2), w.output));
  auto type = tensorType(y).clone(imageShape({shapeOf(y)[0], channels * (isDeep ? w.kernel[0] : 1)}, w.input));
  y = Conv2dInputGradOp::create(b.builder, b.loc, type, y, imageFilter(b, filter, w), image.strides, image.padding,
                                image.dilations, groups);
  if (isDeep)
    y = foldDepth(b, y, x[0], w);
  SmallVector<int64_t> shape = {x[0], channels}, low(x.size(), 0), high = {0, 0};
  llvm::append_range(shape, w.input);
  llvm::append_range(high, extra);
  y = b.reshape(y, shape);
  return llvm::any_of(extra, [](int64_t rows) { return rows != 0; }) ? b.pad(y, low, high) : y;
}

std::optional<int64_t> transposedReach(Call &n, const Window &w, size_t d, int64_t after) {
  if (after < 0 || after >= std::max(w.strides[d], w.dilations[d])) {
    (void)n.fail("output_padding is not less than the stride or the dilation");
    return std::nullopt;
  }
  int64_t total = 0;
  if (llvm::MulOverflow(w.output[d], w.strides[d], total) || total > kMaxSpatial || w.output[d] == 0) {
    (void)n.fail("result is empty or too large");
    return std::nullopt;
  }
  return w.reach(d) + after;
}

bool finishTransposed(Call &n, Window &w, size_t d, int64_t reach, int64_t after, int64_t &extra) {
  w.input[d] = reach - w.low[d] - w.high[d];
  if (w.input[d] < 1 || w.input[d] > kMaxSpatial)
    return succeeded(n.fail("result is empty or too large"));
  // Rows beyond the windows: padding takes them back, else they are zeros.
  w.high[d] -= after;
  extra = std::max<int64_t>(0, -w.high[d]);
  w.high[d] += extra;
  w.input[d] -= extra;
  return true;
}

} // namespace tessera::frontend
