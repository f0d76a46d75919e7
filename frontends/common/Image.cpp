//===- Image.cpp - elements that move between space and channels ------------===//

#include "frontends/common/Image.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

Value blocksToSpace(Build &b, Value x, int64_t block) {
  ArrayRef<int64_t> s = shapeOf(x);
  const int64_t channels = s[1] / (block * block);
  const SmallVector<int64_t> result = {s[0], channels, s[2] * block, s[3] * block};
  Value split = b.reshape(x, {s[0], channels, block, block, s[2], s[3]});
  return b.reshape(b.transpose(split, {0, 1, 4, 2, 5, 3}), result);
}

Value spaceToBlocks(Build &b, Value x, int64_t block) {
  ArrayRef<int64_t> s = shapeOf(x);
  const SmallVector<int64_t> result = {s[0], s[1] * block * block, s[2] / block, s[3] / block};
  Value split = b.reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  return b.reshape(b.transpose(split, {0, 1, 3, 5, 2, 4}), result);
}

bool countBlocks(Call &n, Window &w) {
  w.output.clear();
  for (size_t d = 0; d < w.rank(); ++d) {
    for (int64_t size : {w.input[d], w.kernel[d], w.strides[d], w.dilations[d]})
      if (size < 1 || size > kMaxSpatial)
        return succeeded(n.fail("image, block or strides are out of range"));
    for (int64_t size : {w.low[d], w.high[d]})
      if (size < 0 || size > kMaxSpatial)
        return succeeded(n.fail("pads are out of range"));
    const int64_t room = w.input[d] + w.low[d] + w.high[d] - w.extent(d);
    w.output.push_back(room < 0 ? 0 : room / w.strides[d] + 1);
    if (w.kernel[d] > 1024)
      return succeeded(n.fail("blocks of more than 1024 elements along a dimension are not supported"));
  }
  return true;
}

FailureOr<Value> foldImage(Call &n, Value x, const Window &w) {
  ArrayRef<int64_t> s = shapeOf(x);
  int64_t elements = 1, positions = 1;
  for (size_t d = 0; d < w.rank(); ++d) {
    elements *= w.kernel[d];
    positions *= w.output[d];
  }
  if (positions == 0 || s[1] % elements != 0 || s[2] != positions)
    return n.fail("input " + shapeText(s) + " does not fit the blocks of the image");
  SmallVector<int64_t> shape = {s[0], s[1] / elements};
  llvm::append_range(shape, w.kernel);
  llvm::append_range(shape, w.output);
  Value result = n.b.reshape(x, shape);
  for (auto d = static_cast<int64_t>(w.rank()) - 1; d >= 0; --d) // what is left: the elements of d + 1 dimensions, then
    result = foldWindows(n.b, result, 2 + d, 2 + d + 1 + d, w, d); // all positions
  return result;
}

Value unfoldImage(Build &b, Value x, const Window &w) {
  const auto rank = static_cast<int64_t>(w.rank());
  const SmallVector<int64_t> shape(shapeOf(x));
  SmallVector<int64_t> low(rank + 2, 0), high(rank + 2, 0);
  for (int64_t d = 0; d < rank; ++d) {
    low[2 + d] = w.low[d];
    high[2 + d] = w.high[d];
  }
  x = b.pad(x, low, high);
  // After dimension d: [N, C, elements of the first d + 1, their positions, what is left of space].
  for (int64_t d = 0; d < rank; ++d) {
    SmallVector<Value> parts;
    for (int64_t offset = 0; offset < w.kernel[d]; ++offset) {
      Value part = windowSlice(b, x, 2 + 2 * d, w, d, offset);
      SmallVector<int64_t> wider(shapeOf(part));
      wider.insert(wider.begin() + 2 + d, 1);
      parts.push_back(b.reshape(part, wider));
    }
    x = parts.size() == 1 ? parts.front() : b.concat(parts, 2 + d);
  }
  int64_t elements = shape[1], positions = 1;
  for (int64_t d = 0; d < rank; ++d) {
    elements *= w.kernel[d];
    positions *= w.output[d];
  }
  return b.reshape(x, {shape[0], elements, positions});
}

} // namespace tessera::frontend
