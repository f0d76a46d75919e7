//===- OpsImage.cpp - pixels that move between space and channels -----------===//

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
  ArrayRef<int64_t> x = n.shape(0);
  const int64_t channels = x[1] / (block * block);
  Build &b = n.b;
  Value split =
      mode == "DCR"
          ? b.transpose(b.reshape(n.input(0), {x[0], block, block, channels, x[2], x[3]}), {0, 3, 4, 1, 5, 2})
          : b.transpose(b.reshape(n.input(0), {x[0], channels, block, block, x[2], x[3]}), {0, 1, 4, 2, 5, 3});
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
  int64_t elements = 1, positions = 1;
  for (int64_t d = 0; d < count; ++d) {
    const int64_t low = pads ? (*pads)[d] : 0, high = pads ? (*pads)[d + count] : 0;
    for (int64_t size : {(*image)[d], (*block)[d], low + 1, high + 1})
      if (size < 1 || size > kMaxSpatial)
        return n.fail("image, block or pads are out of range");
    w.input.push_back((*image)[d]);
    w.kernel.push_back((*block)[d]);
    w.low.push_back(low);
    w.high.push_back(high);
    const int64_t room = w.input[d] + low + high - w.extent(d);
    w.output.push_back(room < 0 ? 0 : room / w.strides[d] + 1);
    elements *= w.kernel[d];
    positions *= w.output[d];
    if (w.kernel[d] > 1024)
      return n.fail("blocks of more than 1024 elements along a dimension are not supported");
  }
  ArrayRef<int64_t> x = n.shape(0);
  if (positions == 0 || x[1] % elements != 0 || x[2] != positions)
    return n.fail("input " + shapeText(x) + " does not fit the blocks of the image");
  SmallVector<int64_t> shape = {x[0], x[1] / elements};
  llvm::append_range(shape, w.kernel);
  llvm::append_range(shape, w.output);
  Value result = n.b.reshape(n.input(0), shape);
  for (int64_t d = count - 1; d >= 0; --d) // what is left: the elements of d + 1 dimensions, then all positions
    result = foldWindows(n.b, result, 2 + d, 2 + d + 1 + d, w, d);
  return n.set(result);
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "Col2Im", 18, kNew, 3, opCol2Im},
    {"", "DepthToSpace", kAny, kNew, 1, opDepthToSpace},
    {"", "SpaceToDepth", kAny, kNew, 1, opSpaceToDepth},
};
} // namespace

ArrayRef<OpRow> imageOps() { return kRows; }

} // namespace tessera::onnx_import
