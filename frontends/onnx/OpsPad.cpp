//===- OpsPad.cpp - padding ---------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Elements before and after each dimension; negative: that many are taken away.
struct Pads {
  SmallVector<int64_t> before, after;
};

bool readPads(Node &n, Pads &p) {
  auto fail = [&](const Twine &why) { return succeeded(n.fail(why)); };
  auto pads = n.ints(1);
  const int64_t rank = n.rank(0);
  if (!pads)
    return fail("pads and value must be known at import");
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (n.has(3)) {
    auto given = n.ints(3);
    if (!given || !axesOf(*given, rank))
      return fail("axes must be known at import and in range");
    axes = *given;
  }
  if (pads->size() != 2 * axes.size())
    return fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * axes.size()));
  p.before.assign(rank, 0);
  p.after.assign(rank, 0);
  SmallVector<int64_t> shape(n.shape(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = *axisOf(axes[i], rank), before = (*pads)[i], after = (*pads)[i + axes.size()];
    if (before < -kMaxElements || before > kMaxElements || after < -kMaxElements || after > kMaxElements)
      return fail("pads " + shapeText(*pads) + " are too large");
    if (std::max<int64_t>(0, -before) + std::max<int64_t>(0, -after) > shape[axis])
      return fail("negative pads remove more than dimension " + Twine(axis) + " has");
    p.before[axis] = before;
    p.after[axis] = after;
    shape[axis] += before + after;
  }
  return countElements(shape) ? true : fail("result of shape " + shapeText(shape) + " is too large");
}

LogicalResult padConstant(Node &n, const Pads &p) {
  std::optional<double> value = n.has(2) ? n.scalar(2) : 0.0;
  if (!value)
    return n.fail("pads and value must be known at import");
  SmallVector<int64_t> low, high, from, to;
  for (auto [size, before, after] : llvm::zip_equal(n.shape(0), p.before, p.after)) {
    low.push_back(std::max<int64_t>(before, 0));
    high.push_back(std::max<int64_t>(after, 0));
    from.push_back(std::max<int64_t>(-before, 0));
    to.push_back(size - std::max<int64_t>(-after, 0));
  }
  Value x = n.input(0);
  if (ArrayRef<int64_t>(to) != n.shape(0) || llvm::any_of(from, [](int64_t f) { return f != 0; }))
    x = n.b.slice(x, from, to);
  return n.set(n.b.pad(x, low, high, {}, *value));
}

/// Pads with elements of the input, one dimension after the other.
LogicalResult padFromInput(Node &n, const Pads &p, StringRef mode) {
  Value x = n.input(0);
  for (int64_t axis = 0; axis < n.rank(0); ++axis) {
    const int64_t size = n.shape(0)[axis], before = p.before[axis], after = p.after[axis];
    if (before == 0 && after == 0)
      continue;
    const int64_t most = std::max(before, after);
    if (size == 0 || (mode == "reflect" && most >= size) || (mode == "wrap" && most > size))
      return n.fail("pads of " + Twine(most) + " are more than dimension " + Twine(axis) + " of size " + Twine(size) +
                    " can be padded by in mode '" + mode + "'");
    if (mode == "wrap" && (before < 0 || after < 0))
      return n.fail("negative pads are not supported in mode 'wrap'");
    if (size + before + after > kMaxConstantElements)
      return n.fail("dimension " + Twine(axis) + " is too large to be padded in mode '" + mode + "'");
    SmallVector<int64_t> indices;
    for (int64_t at = -before; at < size + after; ++at) {
      if (mode == "edge")
        indices.push_back(std::clamp<int64_t>(at, 0, size - 1));
      else if (mode == "reflect")
        indices.push_back(at < 0 ? -at : at < size ? at : 2 * (size - 1) - at);
      else
        indices.push_back((at + size) % size);
    }
    x = takeAlong(n.b, x, axis, indices);
  }
  return n.set(x);
}

LogicalResult opPad(Node &n) {
  Pads pads;
  if (!readPads(n, pads))
    return failure();
  const std::string mode = n.attrString("mode", "constant");
  if (mode == "constant")
    return padConstant(n, pads);
  if (mode == "edge" || mode == "reflect" || mode == "wrap")
    return padFromInput(n, pads, mode);
  return n.fail("mode is '" + mode + "', expected constant, edge, reflect or wrap");
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "Pad", kAny, kNew, 2, opPad},
};
} // namespace

ArrayRef<OpRow> padOps() { return kRows; }

} // namespace tessera::onnx_import
