//===- OpsResize.cpp - interpolation, images read at computed positions --------===//
//
// Positions are computed in f32 as PyTorch does (aten/src/ATen/native/UpSample.h), f64 images' in f64.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Grid.h"
#include "frontends/common/Resize.h"
#include "frontends/common/Window.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Sizes of a result, and the factors that the program gives; 0: none is given.
struct Sizes {
  SmallVector<int64_t> result;
  SmallVector<double> scales;
};

constexpr StringLiteral kScales[] = {"scales_d", "scales_h", "scales_w"};

/// Of an image [N, C, spatial…], by `output_size` or `scale_factors`.
bool readSizes(Call &c, StringRef image, size_t space, Sizes &s) {
  if (c.rank(image) != static_cast<int64_t>(space) + 2 || !c.isFloat(image) || c.type(image).getNumElements() == 0)
    return succeeded(c.fail("expected floating point with samples, channels and " + Twine(space) + " dimensions"));
  s.scales.assign(space, 0);
  // scale_factors, or scales_d, scales_h and scales_w, or scales.
  if (auto factors = c.floats("scale_factors"))
    s.scales = *factors;
  else
    for (size_t d = 0; d < space; ++d)
      s.scales[d] = c.numberOr(kScales[3 - space + d], c.numberOr("scales", 0));
  if (auto given = c.has("output_size") ? c.ints("output_size") : std::nullopt)
    s.result = *given;
  else if (c.has("scale_factors") && s.scales.size() == space)
    for (auto [size, scale] : llvm::zip_equal(c.shape(image).drop_front(2), s.scales))
      s.result.push_back(static_cast<int64_t>(std::clamp(static_cast<double>(size) * scale, 0.0, 0x1p40)));
  if (s.result.size() != space || s.scales.size() != space ||
      llvm::any_of(s.result, [](int64_t size) { return size < 1 || size > frontend::kMaxSpatial; }))
    return succeeded(c.fail("output_size or scale_factors are out of range"));
  for (auto [from, to, scale] : llvm::zip_equal(c.shape(image).drop_front(2), s.result, s.scales))
    if (scale != 0 && !(std::abs(static_cast<double>(from) * scale - static_cast<double>(to)) <= 1))
      return succeeded(c.fail("output_size is not what scale_factors give"));
  SmallVector<int64_t> shape(c.shape(image).take_front(2));
  llvm::append_range(shape, s.result);
  return countElements(shape) ? true : succeeded(c.fail("the result is too large"));
}

/// How many elements of the image one of the result is.
template <typename Float> Float stepOf(int64_t from, int64_t to, double scale) {
  return scale > 0 ? static_cast<Float>(1.0 / scale) : static_cast<Float>(from) / static_cast<Float>(to);
}

template <typename Float> double positionOf(int64_t at, int64_t from, int64_t to, double scale, bool alignCorners) {
  if (alignCorners)
    return to == 1 ? 0.0 : static_cast<Float>(from - 1) / static_cast<Float>(to - 1) * static_cast<Float>(at);
  return stepOf<Float>(from, to, scale) * (static_cast<Float>(at) + Float(0.5)) - Float(0.5);
}

template <bool isExact, int space> LogicalResult opNearest(Call &c) {
  const StringRef image = c.isTensor("input") ? "input" : "self";
  Sizes s;
  if (!readSizes(c, image, space, s))
    return failure();
  Value x = c.value(image);
  for (int64_t d = space - 1; d >= 0; --d) {
    const int64_t from = c.shape(image)[2 + d], to = s.result[d];
    const auto step = stepOf<float>(from, to, s.scales[d]);
    SmallVector<int64_t> indices;
    for (int64_t at = 0; at < to; ++at) {
      const float position = (static_cast<float>(at) + (isExact ? 0.5F : 0.0F)) * step;
      int64_t index = std::min(static_cast<int64_t>(std::clamp(std::floor(position), 0.0F, 0x1p40F)), from - 1);
      if (from == to || (!isExact && to == 2 * from)) // whatever the scale is
        index = from == to ? at : at / 2;
      indices.push_back(index);
    }
    x = frontend::takeAlong(c.b, x, 2 + d, indices);
  }
  return c.set(x);
}

template <bool isCubic, bool antialias, int space> LogicalResult opInterpolate(Call &c) {
  const StringRef image = c.isTensor("input") ? "input" : "self";
  const bool alignCorners = c.flag("align_corners", false);
  Sizes s;
  if (!readSizes(c, image, space, s))
    return failure();
  if (antialias && alignCorners)
    return c.fail("align_corners with antialiasing is not supported");
  frontend::Interpolation by;
  by.isCubic = isCubic;
  by.cubic = antialias ? -0.5 : -0.75;
  by.antialias = by.excludeOutside = antialias;
  Type element = c.element(image);
  Value x = c.b.convert(c.value(image), computedIn(element));
  for (int64_t d = space - 1; d >= 0; --d) {
    const int64_t from = c.shape(image)[2 + d], to = s.result[d];
    if (from == to && (s.scales[d] == 0 || s.scales[d] == 1 || alignCorners))
      continue;
    SmallVector<double> positions;
    for (int64_t at = 0; at < to; ++at)
      positions.push_back(element.isF64() ? positionOf<double>(at, from, to, s.scales[d], alignCorners)
                                          : positionOf<float>(at, from, to, s.scales[d], alignCorners));
    auto made = by.along(c, x, 2 + d, positions, 1 / stepOf<double>(from, to, s.scales[d]));
    if (failed(made))
      return failure();
    x = *made;
  }
  return c.set(c.b.convert(x, element));
}

LogicalResult opGridSampler(Call &c) {
  const int64_t mode = c.integerOr("interpolation_mode", 0), padding = c.integerOr("padding_mode", 0);
  if (c.at("input") != 0 || c.at("grid") != 1 || failed(frontend::checkGrid(c)))
    return c.reason.empty() ? c.fail("expected an image and a grid") : failure();
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2 || (mode == 2 && c.rank("input") != 4))
    return c.fail("the mode or the padding is unknown");
  frontend::GridOptions options;
  options.mode = std::array{frontend::GridMode::Linear, frontend::GridMode::Nearest, frontend::GridMode::Cubic}[mode];
  options.padding = std::array{frontend::GridPadding::Zeros, frontend::GridPadding::Border,
                               frontend::GridPadding::Reflection}[padding];
  options.alignCorners = c.flag("align_corners", false);
  Type element = c.element("input"), wide = computedIn(element);
  Value x = c.b.convert(c.value("input"), wide), grid = c.b.convert(c.value("grid"), wide);
  return c.set(c.b.convert(frontend::gridSample(c.b, x, grid, options), element));
}

LogicalResult opAffineGrid(Call &c) {
  auto size = c.ints("size");
  if (c.at("theta") != 0 || !size)
    return c.fail("expected a matrix per sample, and a size");
  Type element = c.element("theta");
  auto grid = frontend::affineGrid(c, c.b.convert(c.value("theta"), computedIn(element)), *size,
                                   c.flag("align_corners", false));
  return failed(grid) ? failure() : c.set(c.b.convert(*grid, element));
}

constexpr bool kLinear = false, kCubic = true, kSmooth = true;
const OpRow kResizeOps[] = {
    {"aten._upsample_bicubic2d_aa.default", opInterpolate<kCubic, kSmooth, 2>},
    {"aten._upsample_bicubic2d_aa.vec", opInterpolate<kCubic, kSmooth, 2>, "input"},
    {"aten._upsample_bilinear2d_aa.default", opInterpolate<kLinear, kSmooth, 2>},
    {"aten._upsample_bilinear2d_aa.vec", opInterpolate<kLinear, kSmooth, 2>, "input"},
    {"aten._upsample_nearest_exact1d.default", opNearest<true, 1>},
    {"aten._upsample_nearest_exact1d.vec", opNearest<true, 1>, "input"},
    {"aten._upsample_nearest_exact2d.default", opNearest<true, 2>},
    {"aten._upsample_nearest_exact2d.vec", opNearest<true, 2>, "input"},
    {"aten._upsample_nearest_exact3d.default", opNearest<true, 3>},
    {"aten._upsample_nearest_exact3d.vec", opNearest<true, 3>, "input"},
    {"aten.affine_grid_generator.default", opAffineGrid, "theta"},
    {"aten.grid_sampler.default", opGridSampler, "input,grid"},
    {"aten.grid_sampler_2d.default", opGridSampler, "input,grid"},
    {"aten.grid_sampler_3d.default", opGridSampler, "input,grid"},
    {"aten.upsample_bicubic2d.default", opInterpolate<kCubic, false, 2>},
    {"aten.upsample_bicubic2d.vec", opInterpolate<kCubic, false, 2>, "input"},
    {"aten.upsample_bilinear2d.default", opInterpolate<kLinear, false, 2>},
    {"aten.upsample_bilinear2d.vec", opInterpolate<kLinear, false, 2>, "input"},
    {"aten.upsample_linear1d.default", opInterpolate<kLinear, false, 1>},
    {"aten.upsample_linear1d.vec", opInterpolate<kLinear, false, 1>, "input"},
    {"aten.upsample_nearest1d.default", opNearest<false, 1>},
    {"aten.upsample_nearest1d.vec", opNearest<false, 1>, "input"},
    {"aten.upsample_nearest2d.default", opNearest<false, 2>},
    {"aten.upsample_nearest2d.vec", opNearest<false, 2>, "input"},
    {"aten.upsample_nearest3d.default", opNearest<false, 3>},
    {"aten.upsample_nearest3d.vec", opNearest<false, 3>, "input"},
    {"aten.upsample_trilinear3d.default", opInterpolate<kLinear, false, 3>},
    {"aten.upsample_trilinear3d.vec", opInterpolate<kLinear, false, 3>, "input"},
};
} // namespace

llvm::ArrayRef<OpRow> resizeOps() { return kResizeOps; }

} // namespace tessera::pt2
