//===- OpsGrid.cpp - GridSample and AffineGrid ------------------------------===//

#include "frontends/common/Grid.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;

namespace tessera::onnx_import {

namespace {
LogicalResult opGridSample(Node &n) {
  std::string mode = n.attrString("mode", n.opset < 20 ? "bilinear" : "linear");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  const std::string border = n.attrString("padding_mode", "zeros");
  if (failed(checkGrid(n)))
    return failure();
  if ((mode != "linear" && mode != "nearest" && mode != "cubic") ||
      (border != "zeros" && border != "border" && border != "reflection"))
    return n.fail("mode '" + mode + "' with padding '" + border + "' is not supported");
  GridOptions options;
  options.mode = mode == "linear" ? GridMode::Linear : mode == "nearest" ? GridMode::Nearest : GridMode::Cubic;
  options.padding = border == "zeros"    ? GridPadding::Zeros
                    : border == "border" ? GridPadding::Border
                                         : GridPadding::Reflection;
  options.alignCorners = n.attr("align_corners", 0) != 0;
  return n.set(gridSample(n.b, n.input(0), n.input(1), options));
}

LogicalResult opAffineGrid(Node &n) {
  auto size = n.ints(1);
  auto grid = affineGrid(n, n.input(0), size.value_or(SmallVector<int64_t>()), n.attr("align_corners", 0) != 0);
  return failed(grid) ? failure() : n.set(*grid);
}

const OpRow kGridOps[] = {
    {"", "AffineGrid", 20, kNew, 2, opAffineGrid},
    {"", "GridSample", 16, kNew, 2, opGridSample},
};
} // namespace

ArrayRef<OpRow> gridOps() { return kGridOps; }

} // namespace tessera::onnx_import
