//===- Pad.cpp - padding --------------------------------------------------===//

#include "frontends/common/Pad.h"

#include "frontends/common/Axis.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

bool checkPads(Call &n, ArrayRef<int64_t> shape, const Pads &p) {
  SmallVector<int64_t> result;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    const int64_t before = p.before[axis], after = p.after[axis];
    if (before < -kMaxElements || before > kMaxElements || after < -kMaxElements || after > kMaxElements)
      return succeeded(n.fail("pads of dimension " + Twine(axis) + " are too large"));
    if (std::max<int64_t>(0, -before) + std::max<int64_t>(0, -after) > size)
      return succeeded(n.fail("negative pads remove more than dimension " + Twine(axis) + " has"));
    result.push_back(size + before + after);
  }
  return countElements(result) ? true : succeeded(n.fail("result of shape " + shapeText(result) + " is too large"));
}

Value padConstant(Build &b, Value x, const Pads &p, double value) {
  SmallVector<int64_t> low, high, from, to;
  for (auto [size, before, after] : llvm::zip_equal(shapeOf(x), p.before, p.after)) {
    low.push_back(std::max<int64_t>(before, 0));
    high.push_back(std::max<int64_t>(after, 0));
    from.push_back(std::max<int64_t>(-before, 0));
    to.push_back(size - std::max<int64_t>(-after, 0));
  }
  if (ArrayRef<int64_t>(to) != shapeOf(x) || llvm::any_of(from, [](int64_t f) { return f != 0; }))
    x = b.slice(x, from, to);
  return b.pad(x, low, high, {}, value);
}

FailureOr<Value> padFromInput(Call &n, Value x, const Pads &p, PadMode mode, StringRef name) {
  for (int64_t axis = 0; axis < static_cast<int64_t>(shapeOf(x).size()); ++axis) {
    const int64_t size = shapeOf(x)[axis], before = p.before[axis], after = p.after[axis];
    if (before == 0 && after == 0)
      continue;
    const int64_t most = std::max(before, after);
    if (size == 0 || (mode == PadMode::Reflect && most >= size) || (mode == PadMode::Wrap && most > size))
      return n.fail("pads of " + Twine(most) + " are more than dimension " + Twine(axis) + " of size " + Twine(size) +
                    " can be padded by in mode '" + name + "'");
    if (mode == PadMode::Wrap && (before < 0 || after < 0))
      return n.fail("negative pads are not supported in mode '" + name + "'");
    if (size + before + after > kMaxConstantElements)
      return n.fail("dimension " + Twine(axis) + " is too large to be padded in mode '" + name + "'");
    SmallVector<int64_t> indices;
    for (int64_t at = -before; at < size + after; ++at) {
      if (mode == PadMode::Edge)
        indices.push_back(std::clamp<int64_t>(at, 0, size - 1));
      else if (mode == PadMode::Reflect)
        indices.push_back(at < 0 ? -at : at < size ? at : 2 * (size - 1) - at);
      else
        indices.push_back((at + size) % size);
    }
    x = takeAlong(n.b, x, axis, indices);
  }
  return x;
}

} // namespace tessera::frontend
