//===- OpsPad.cpp - padding --------------------------------------------------===//

#include "frontends/common/Pad.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;

namespace tessera::pt2 {

namespace {
/// Pairs of numbers, the last dimension's first.
bool readPads(Call &c, StringRef name, frontend::Pads &p) {
  auto amounts = c.ints(name);
  const int64_t rank = c.rank("self");
  if (!amounts || amounts->size() % 2 != 0 || static_cast<int64_t>(amounts->size()) > 2 * rank)
    return succeeded(c.fail("expected two numbers for each of the last dimensions"));
  p = frontend::Pads(rank);
  for (size_t i = 0; i < amounts->size() / 2; ++i) {
    const int64_t dim = rank - 1 - static_cast<int64_t>(i);
    p.before[dim] = (*amounts)[2 * i];
    p.after[dim] = (*amounts)[2 * i + 1];
  }
  return frontend::checkPads(c, c.shape("self"), p);
}

LogicalResult padFrom(Call &c, StringRef name, frontend::PadMode mode, StringRef word) {
  frontend::Pads pads;
  if (!readPads(c, name, pads))
    return failure();
  auto result = frontend::padFromInput(c, c.value("self"), pads, mode, word);
  return failed(result) ? failure() : c.set(*result);
}

LogicalResult padWith(Call &c) {
  frontend::Pads pads;
  const double value = c.numberOr("value", 0);
  if (!readPads(c, "pad", pads) || failed(c.splat(c.element("self"), value)))
    return failure();
  return c.set(frontend::padConstant(c.b, c.value("self"), pads, value));
}

LogicalResult opPad(Call &c) {
  const std::string mode = c.text("mode", "constant");
  if (mode == "constant")
    return padWith(c);
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    return c.fail("mode is '" + mode + "'");
  return padFrom(c, "pad",
                 mode == "reflect"     ? frontend::PadMode::Reflect
                 : mode == "replicate" ? frontend::PadMode::Edge
                                       : frontend::PadMode::Wrap,
                 mode);
}

LogicalResult opReflect(Call &c) { return padFrom(c, "padding", frontend::PadMode::Reflect, "reflect"); }
LogicalResult opReplicate(Call &c) { return padFrom(c, "padding", frontend::PadMode::Edge, "replicate"); }
LogicalResult opCircular(Call &c) { return padFrom(c, "pad", frontend::PadMode::Wrap, "circular"); }

const OpRow kPadOps[] = {
    {"aten._pad_circular.default", opCircular},
    {"aten.constant_pad_nd.default", padWith},
    {"aten.pad.default", opPad},
    {"aten.reflection_pad1d.default", opReflect},
    {"aten.reflection_pad2d.default", opReflect},
    {"aten.reflection_pad3d.default", opReflect},
    {"aten.replication_pad1d.default", opReplicate},
    {"aten.replication_pad2d.default", opReplicate},
    {"aten.replication_pad3d.default", opReplicate},
};
} // namespace

llvm::ArrayRef<OpRow> padOps() { return kPadOps; }

} // namespace tessera::pt2
