//===- OpsImage.cpp - elements that move between space and channels ------------===//

#include "frontends/common/Image.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// [..., C, H, W] as one [N, C, H, W], by `move`, and back.
template <typename Move> LogicalResult onImages(Call &c, Move move) {
  ArrayRef<int64_t> shape = c.shape("self"), leading = shape.drop_back(3);
  int64_t samples = 1;
  for (int64_t size : leading)
    samples *= size;
  SmallVector<int64_t> result(leading);
  Value x =
      move(c.b.reshape(c.value("self"), {samples, shape[shape.size() - 3], shape[shape.size() - 2], shape.back()}));
  llvm::append_range(result, shapeOf(x).drop_front());
  return c.set(c.b.reshape(x, result));
}

LogicalResult opPixelShuffle(Call &c) {
  const int64_t block = c.integerOr("upscale_factor", 0), rank = c.rank("self");
  if (rank < 3 || block < 1 || block > frontend::kMaxSpatial || c.shape("self")[rank - 3] % (block * block) != 0)
    return c.fail("the channels do not divide into blocks");
  return onImages(c, [&](Value x) { return frontend::blocksToSpace(c.b, x, block); });
}

LogicalResult opPixelUnshuffle(Call &c) {
  const int64_t block = c.integerOr("downscale_factor", 0), rank = c.rank("self");
  if (rank < 3 || block < 1 || block > frontend::kMaxSpatial || c.shape("self")[rank - 2] % block != 0 ||
      c.shape("self")[rank - 1] % block != 0)
    return c.fail("the image does not divide into blocks");
  return onImages(c, [&](Value x) { return frontend::spaceToBlocks(c.b, x, block); });
}

/// Channels (g, c) become (c, g).
LogicalResult opChannelShuffle(Call &c) {
  const SmallVector<int64_t> shape(c.shape("self"));
  const int64_t groups = c.integerOr("groups", 0);
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0)
    return c.fail("the channels do not divide into " + Twine(groups) + " groups");
  const int64_t inner =
      c.type("self").getNumElements() == 0 ? 0 : c.type("self").getNumElements() / (shape[0] * shape[1]);
  Value split = c.b.reshape(c.value("self"), {shape[0], groups, shape[1] / groups, inner});
  return c.set(c.b.reshape(c.b.transpose(split, {0, 2, 1, 3}), shape));
}

/// The blocks of an image of these sizes.
bool readBlocks(Call &c, ArrayRef<int64_t> image, frontend::Window &w) {
  auto kernel = c.spatial("kernel_size", 2, 1, 1), dilations = c.spatial("dilation", 2, 1, 1),
       padding = c.spatial("padding", 2, 0, 0), strides = c.spatial("stride", 2, 1, 1);
  if (!kernel || !dilations || !padding || !strides)
    return succeeded(c.fail("sizes, strides, padding or dilations are out of range"));
  w.input.assign(image.begin(), image.end());
  w.kernel = *kernel;
  w.dilations = *dilations;
  w.low = w.high = *padding;
  w.strides = *strides;
  return frontend::countBlocks(c, w);
}

LogicalResult opImageUnfold(Call &c) {
  const SmallVector<int64_t> shape(c.shape("self"));
  frontend::Window w;
  if (shape.size() != 3 && shape.size() != 4)
    return c.fail("expected an image");
  if (!readBlocks(c, ArrayRef<int64_t>(shape).take_back(2), w))
    return failure();
  if (w.output[0] < 1 || w.output[1] < 1)
    return c.fail("the blocks are larger than the padded image");
  SmallVector<int64_t> images(4 - shape.size(), 1);
  llvm::append_range(images, shape);
  if (!countElements({images[0], images[1], w.kernel[0], w.kernel[1], w.output[0], w.output[1]}))
    return c.fail("the result is too large");
  Value blocks = frontend::unfoldImage(c.b, c.b.reshape(c.value("self"), images), w);
  return c.set(shape.size() == 3 ? c.b.reshape(blocks, shapeOf(blocks).drop_front()) : blocks);
}

LogicalResult opFold(Call &c) {
  const SmallVector<int64_t> shape(c.shape("self"));
  auto size = c.spatial("output_size", 2, 1, 1);
  frontend::Window w;
  if ((shape.size() != 2 && shape.size() != 3) || !size || !c.isFloat("self"))
    return c.fail("expected floating-point blocks and the size of an image");
  if (!readBlocks(c, *size, w))
    return failure();
  SmallVector<int64_t> blocks(shape);
  if (shape.size() == 2)
    blocks.insert(blocks.begin(), 1);
  auto image = frontend::foldImage(c, c.b.reshape(c.value("self"), blocks), w);
  if (failed(image))
    return failure();
  return c.set(shape.size() == 2 ? c.b.reshape(*image, shapeOf(*image).drop_front()) : *image);
}

const OpRow kImageOps[] = {
    {"aten.channel_shuffle.default", opChannelShuffle},
    {"aten.col2im.default", opFold},
    {"aten.im2col.default", opImageUnfold},
    {"aten.native_channel_shuffle.default", opChannelShuffle},
    {"aten.pixel_shuffle.default", opPixelShuffle},
    {"aten.pixel_unshuffle.default", opPixelUnshuffle},
};
} // namespace

llvm::ArrayRef<OpRow> imageOps() { return kImageOps; }

} // namespace tessera::pt2
