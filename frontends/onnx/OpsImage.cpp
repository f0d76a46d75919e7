//===- OpsImage.cpp - pixels that move between space and channels -----------===//

#include "frontends/common/Image.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Spatial.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Whether the input is images whose dimensions divide by what each block takes; else the node failed.
bool isDivisible(Node &n, int64_t channels, int64_t space) {
  if (n.rank(0) != 4 || n.attr("blocksize", 0) < 1 || n.attr("blocksize", 0) > kMaxSpatial)
    return succeeded(n.fail("expected an input of rank 4 and a positive blocksize"));
  ArrayRef<int64_t> x = n.shape(0);
  if (x[1] % channels != 0 || x[2] % space != 0 || x[3] % space != 0)
    return succeeded(n.fail("input " + shapeText(x) + " does not divide into blocks"));
  return true;
}

LogicalResult opDepthToSpace(Node &n) {
  const int64_t block = n.attr("blocksize", 0);
  if (!isDivisible(n, block * block, 1))
    return failure();
  const std::string mode = n.attrString("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.fail("mode is '" + mode + "', expected DCR or CRD");
  if (mode == "CRD")
    return n.set(blocksToSpace(n.b, n.input(0), block));
  ArrayRef<int64_t> x = n.shape(0);
  const int64_t channels = x[1] / (block * block);
  Build &b = n.b;
  Value split = b.transpose(b.reshape(n.input(0), {x[0], block, block, channels, x[2], x[3]}), {0, 3, 4, 1, 5, 2});
  return n.set(b.reshape(split, {x[0], channels, x[2] * block, x[3] * block}));
}

LogicalResult opSpaceToDepth(Node &n) {
  const int64_t block = n.attr("blocksize", 0);
  if (!isDivisible(n, 1, block))
    return failure();
  ArrayRef<int64_t> x = n.shape(0);
  Value split = n.b.reshape(n.input(0), {x[0], x[1], x[2] / block, block, x[3] / block, block});
  return n.set(
      n.b.reshape(n.b.transpose(split, {0, 3, 5, 1, 2, 4}), {x[0], x[1] * block * block, x[2] / block, x[3] / block}));
}

/// [N, C*K…, L…] to images: the sum of the blocks that cover an element.
LogicalResult opCol2Im(Node &n) {
  auto image = n.ints(1), block = n.ints(2);
  if (!image || !block || n.rank(0) != 3 || !n.isFloat(0) || image->empty() || image->size() != block->size() ||
      image->size() > 3)
    return n.fail("expected an input of rank 3, and the shapes of image and block, of rank 1 to 3, known at import");
  const int64_t count = static_cast<int64_t>(image->size());
  auto strides = spatialAttr(n, "strides", count), dilations = spatialAttr(n, "dilations", count);
  auto pads = n.attrInts("pads");
  if (!strides || !dilations || (pads && static_cast<int64_t>(pads->size()) != 2 * count))
    return n.fail("strides, dilations or pads do not fit the image's rank");
  Window w;
  w.strides = *strides;
  w.dilations = *dilations;
  w.input.assign(image->begin(), image->end());
  w.kernel.assign(block->begin(), block->end());
  w.low.assign(count, 0);
  w.high.assign(count, 0);
  if (pads) {
    w.low.assign(pads->begin(), pads->begin() + count);
    w.high.assign(pads->begin() + count, pads->end());
  }
  if (!countBlocks(n, w))
    return failure();
  auto result = foldImage(n, n.input(0), w);
  return failed(result) ? failure() : n.set(*result);
}

const OpRow kImageOps[] = {
    {"", "Col2Im", 18, kNew, 3, opCol2Im},
    {"", "DepthToSpace", kAny, kNew, 1, opDepthToSpace},
    {"", "SpaceToDepth", kAny, kNew, 1, opSpaceToDepth},
};
} // namespace

ArrayRef<OpRow> imageOps() { return kImageOps; }

} // namespace tessera::onnx_import
