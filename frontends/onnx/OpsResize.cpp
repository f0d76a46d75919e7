//===- OpsResize.cpp - interpolation ----------------------------------------===//
//
// Resize is separable: along each dimension the nearest element, or an
// interpolation. The formulas are those of the ONNX specification (Resize,
// opset 19) and of its reference implementation.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Resize.h"
#include "frontends/onnx/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
struct Resize {
  std::string transformation, rounding;

  /// Where element `at` of a result of `to` elements lies among `from` elements; nullopt: unknown transformation.
  std::optional<double> position(int64_t at, int64_t from, int64_t to, double scale) const {
    const double x = static_cast<double>(at);
    if (transformation == "align_corners")
      return to == 1 ? 0.0 : x * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    if (transformation == "asymmetric")
      return x / scale;
    if (transformation == "half_pixel" || (transformation == "pytorch_half_pixel" && to > 1))
      return (x + 0.5) / scale - 0.5;
    if (transformation == "pytorch_half_pixel")
      return 0.0;
    if (transformation == "half_pixel_symmetric") {
      const double width = scale * static_cast<double>(from), centre = static_cast<double>(from) / 2;
      return centre * (1 - static_cast<double>(to) / width) + (x + 0.5) / scale - 0.5;
    }
    return std::nullopt;
  }

  double nearest(double x) const {
    if (rounding == "floor")
      return std::floor(x);
    if (rounding == "ceil")
      return std::ceil(x);
    return rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
  }
};

/// Sizes of the result, and scales, of the dimensions that the node names; others keep theirs. False if it failed.
bool readSizes(Node &n, SmallVectorImpl<int64_t> &shape, SmallVectorImpl<double> &scales) {
  auto fail = [&](const Twine &why) { return succeeded(n.fail(why)); };
  const int64_t rank = n.rank(0);
  shape.assign(n.shape(0).begin(), n.shape(0).end());
  scales.assign(rank, 1.0);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto given = n.attrInts("axes")) {
    if (!axesOf(*given, rank))
      return fail("axes are out of range or occur twice");
    axes = *given;
  }
  const bool bySize = n.has(3);
  const HostTensor *given = bySize ? n.constant(3) : n.has(2) ? n.constant(2) : nullptr;
  if (!given || given->size() != static_cast<int64_t>(axes.size()))
    return fail("scales or sizes must be known at import, one per dimension");
  if (bySize && n.attrString("keep_aspect_ratio_policy", "stretch") != "stretch")
    return fail("keep_aspect_ratio_policy is '" + n.attrString("keep_aspect_ratio_policy", "") + "'");
  for (auto [i, each] : llvm::enumerate(axes)) {
    const int64_t axis = *axisOf(each, rank), from = shape[axis];
    const double value = given->number(static_cast<int64_t>(i));
    const double to = bySize ? value : std::floor(static_cast<double>(from) * value);
    if (!(to >= 1) || to > static_cast<double>(kMaxConstantElements) || from < 1)
      return fail("size " + Twine(from) + " of dimension " + Twine(axis) + " cannot be scaled by the node's values");
    shape[axis] = static_cast<int64_t>(to);
    scales[axis] = bySize ? to / static_cast<double>(from) : value;
  }
  return countElements(shape) ? true : fail("result of shape " + shapeText(shape) + " is too large");
}

LogicalResult opResize(Node &n) {
  Resize r;
  Interpolation interpolation;
  const std::string mode = n.attrString("mode", "nearest");
  r.transformation = n.attrString("coordinate_transformation_mode", "half_pixel");
  r.rounding = n.attrString("nearest_mode", "round_prefer_floor");
  interpolation.isCubic = mode == "cubic";
  interpolation.cubic = n.attrFloat("cubic_coeff_a", -0.75);
  interpolation.excludeOutside = n.attr("exclude_outside", 0) != 0;
  interpolation.antialias = n.attr("antialias", 0) != 0;
  const bool isNearest = mode == "nearest";
  if (!n.isFloat(0) || (!isNearest && mode != "linear" && mode != "cubic"))
    return n.fail("expected a floating-point input and mode nearest, linear or cubic");
  SmallVector<int64_t> shape;
  SmallVector<double> scales;
  if (!readSizes(n, shape, scales))
    return failure();
  Build &b = n.b;
  Value x = n.input(0);
  // The last dimension first: where images grow, the products before the last are smaller.
  for (int64_t axis = n.rank(0) - 1; axis >= 0; --axis) {
    const int64_t from = n.shape(0)[axis], to = shape[axis];
    if (from == to && scales[axis] == 1.0)
      continue;
    SmallVector<double> positions;
    for (int64_t at = 0; at < to; ++at) {
      auto position = r.position(at, from, to, scales[axis]);
      if (!position)
        return n.fail("coordinate_transformation_mode is '" + r.transformation + "'");
      positions.push_back(*position);
    }
    if (!isNearest) {
      auto made = interpolation.along(n, x, axis, positions, scales[axis]);
      if (failed(made))
        return failure();
      x = *made;
      continue;
    }
    SmallVector<int64_t> indices;
    for (double position : positions)
      indices.push_back(std::clamp<int64_t>(static_cast<int64_t>(r.nearest(position)), 0, from - 1));
    x = takeAlong(b, x, axis, indices);
  }
  return n.set(x);
}

const OpRow kResizeOps[] = {
    {"", "Resize", kAny, kNew, 1, opResize},
};
} // namespace

ArrayRef<OpRow> resizeOps() { return kResizeOps; }

} // namespace tessera::onnx_import
