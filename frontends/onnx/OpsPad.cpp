//===- OpsPad.cpp - padding ---------------------------------------------------===//

#include "frontends/common/Pad.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;

namespace tessera::onnx_import {

namespace {
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
  p = Pads(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = *axisOf(axes[i], rank);
    p.before[axis] = (*pads)[i];
    p.after[axis] = (*pads)[i + axes.size()];
  }
  return checkPads(n, n.shape(0), p);
}

LogicalResult opPad(Node &n) {
  Pads pads;
  if (!readPads(n, pads))
    return failure();
  const std::string mode = n.attrString("mode", "constant");
  if (mode == "constant") {
    std::optional<double> value = n.has(2) ? n.scalar(2) : 0.0;
    return value ? n.set(padConstant(n.b, n.input(0), pads, *value)) : n.fail("pads and value must be known at import");
  }
  if (mode != "edge" && mode != "reflect" && mode != "wrap")
    return n.fail("mode is '" + mode + "', expected constant, edge, reflect or wrap");
  const PadMode from = mode == "edge" ? PadMode::Edge : mode == "reflect" ? PadMode::Reflect : PadMode::Wrap;
  auto result = padFromInput(n, n.input(0), pads, from, mode);
  return failed(result) ? failure() : n.set(*result);
}

const OpRow kPadOps[] = {
    {"", "Pad", kAny, kNew, 2, opPad},
};
} // namespace

ArrayRef<OpRow> padOps() { return kPadOps; }

} // namespace tessera::onnx_import
