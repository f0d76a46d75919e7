//===- Grid.cpp - images read at computed positions -------------------------===//
//
// A sample is a weighted sum of elements that are looked up; gradients reach the
// image through the elements and the grid through the weights, as in PyTorch
// (aten/src/ATen/native/GridSampler.h).
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Grid.h"

#include "compiler/dialect/train/Loss.h"
#include "frontends/common/Axis.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// `x` where it is in [low, high], else the nearest end.
Value clamp(Build &b, Value x, double low, double high) {
  Value least = b.splatLike(x, low), most = b.splatLike(x, high);
  x = b.select(b.compare(CompareDirection::Gt, x, least), x, least);
  return b.select(b.compare(CompareDirection::Lt, x, most), x, most);
}

/// One dimension of the image: positions, and how they leave it.
class Axis {
public:
  Axis(Build &b, int64_t size, GridPadding padding, bool alignCorners)
      : b(b), size(size), padding(padding), alignCorners(alignCorners) {}

  /// Positions in elements of grid coordinates in [-1, 1].
  Value denormalise(Value x) const {
    const double n = static_cast<double>(size);
    Value up = b.add(x, b.splatLike(x, 1.0));
    if (alignCorners)
      return b.scale(up, (n - 1) / 2);
    return b.scale(b.sub(b.scale(up, n), b.splatLike(x, 1.0)), 0.5);
  }

  /// Positions that padding brings into the image.
  Value inside(Value x) const {
    if (padding == GridPadding::Reflection)
      x = reflect(x);
    return padding == GridPadding::Zeros ? x : clamp(b, x, 0, last());
  }

  /// Indices of whole positions, as i64; those outside are the nearest.
  Value index(Value x) const { return b.convert(clamp(b, x, 0, last()), b.builder.getI64Type()); }

  /// `weight` where whole positions are in the image, or padding leaves none outside; else 0.
  Value masked(Value x, Value weight) const {
    if (padding != GridPadding::Zeros)
      return weight;
    Value zero = b.splatLike(weight, 0.0);
    weight = b.select(b.compare(CompareDirection::Ge, x, b.splatLike(x, 0.0)), weight, zero);
    return b.select(b.compare(CompareDirection::Le, x, b.splatLike(x, last())), weight, zero);
  }

private:
  double last() const { return static_cast<double>(size - 1); }

  /// Reflects positions at the centres of the outermost elements (align_corners) or at their outer edges.
  Value reflect(Value x) const {
    const double low = alignCorners ? 0 : -0.5, span = alignCorners ? last() : static_cast<double>(size);
    if (span == 0)
      return b.splatLike(x, 0.0);
    Value distance = b.unary<AbsOp>(b.sub(x, b.splatLike(x, low)));
    Value flips = b.unary<FloorOp>(b.scale(distance, 1 / span));
    Value extra = b.sub(distance, b.scale(flips, span));
    Value odd = b.sub(flips, b.scale(b.unary<FloorOp>(b.scale(flips, 0.5)), 2.0));
    return b.select(b.compare(CompareDirection::Eq, odd, b.splatLike(odd, 0.0)), b.add(extra, b.splatLike(extra, low)),
                    b.sub(b.splatLike(extra, span + low), extra));
  }

  Build &b;
  int64_t size;
  GridPadding padding;
  bool alignCorners;
};

/// An element of one dimension that takes part in a sample.
struct Tap {
  Value index, weight;
};

/// Keys, 1981, with a = -0.75.
Value cubic(Build &b, Value distance, bool near) {
  constexpr double a = -0.75;
  auto constant = [&](double value) { return b.splatLike(distance, value); };
  if (near) {
    Value inner = b.sub(b.scale(distance, a + 2), constant(a + 3));
    return b.add(b.mul(b.mul(inner, distance), distance), constant(1));
  }
  Value inner = b.add(b.mul(b.sub(b.scale(distance, a), constant(5 * a)), distance), constant(8 * a));
  return b.sub(b.mul(inner, distance), constant(4 * a));
}

SmallVector<Tap> tapsOf(Build &b, const Axis &axis, Value coordinate, GridMode mode) {
  Value x = axis.denormalise(coordinate);
  if (mode == GridMode::Nearest) {
    Value at = b.unary<RoundOp>(axis.inside(x));
    return {{axis.index(at), axis.masked(at, b.splatLike(at, 1.0))}};
  }
  SmallVector<Tap> taps;
  if (mode == GridMode::Linear) {
    x = axis.inside(x);
    Value first = b.unary<FloorOp>(x), second = b.add(first, b.splatLike(first, 1.0));
    taps.push_back({axis.index(first), axis.masked(first, b.sub(second, x))});
    taps.push_back({axis.index(second), axis.masked(second, b.sub(x, first))});
    return taps;
  }
  Value base = b.unary<FloorOp>(x), t = b.sub(x, base);
  for (int offset = -1; offset <= 2; ++offset) {
    Value shift = b.splatLike(t, offset), at = axis.inside(b.add(base, shift));
    Value weight = cubic(b, offset <= 0 ? b.sub(t, shift) : b.sub(shift, t), offset == 0 || offset == 1);
    taps.push_back({axis.index(at), axis.masked(at, weight)});
  }
  return taps;
}
} // namespace

LogicalResult checkGrid(Call &n) {
  const int64_t rank = n.rank(0), space = rank - 2;
  if (space < 1 || space > 3 || n.rank(1) != rank || n.shape(1).back() != space || n.shape(1)[0] != n.shape(0)[0] ||
      !n.isFloat(0) || n.element(1) != n.element(0) || n.type(0).getNumElements() == 0)
    return n.fail("input " + shapeText(n.shape(0)) + " and grid " + shapeText(n.shape(1)) + " do not fit each other");
  return success();
}

Value gridSample(Build &b, Value image, Value grid, const GridOptions &options) {
  const auto rank = static_cast<int64_t>(shapeOf(image).size()), space = rank - 2;
  ArrayRef<int64_t> shape = shapeOf(image);
  SmallVector<SmallVector<Tap>> taps;
  SmallVector<int64_t> channelsLast = {0}, back = {0, rank - 1};
  int64_t pixels = 1;
  for (int64_t d = 0; d < space; ++d) {
    const Axis axis(b, shape[2 + d], options.padding, options.alignCorners);
    taps.push_back(tapsOf(b, axis, elementAlong(b, grid, rank - 1, space - 1 - d), options.mode));
    pixels *= shape[2 + d];
    channelsLast.push_back(2 + d);
    back.push_back(1 + d);
  }
  channelsLast.push_back(1);
  Value table = b.reshape(b.transpose(image, channelsLast), {shape[0] * pixels, shape[1]});
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  Value result;
  // Every choice of a tap per dimension, counted in mixed radix.
  int64_t choices = 1;
  for (const auto &of : taps)
    choices *= static_cast<int64_t>(of.size());
  for (int64_t choice = 0; choice < choices; ++choice) {
    Value index, weight;
    int64_t rest = choice, stride = 1;
    for (int64_t d = space - 1; d >= 0; --d) {
      const Tap &tap = taps[d][rest % taps[d].size()];
      rest /= static_cast<int64_t>(taps[d].size());
      Value scaled = b.mul(tap.index, b.splatLike(tap.index, static_cast<double>(stride)));
      index = index ? b.add(index, scaled) : scaled;
      weight = weight ? b.mul(tap.weight, weight) : tap.weight;
      stride *= shape[2 + d];
    }
    Value sample = b.iota(tensorType(index), 0);
    index = b.add(index, b.mul(sample, b.splatLike(sample, static_cast<double>(pixels))));
    Value rows = b.gatherRows(table, index);
    rows.getDefiningOp()->setAttr(kOwnRows, b.builder.getUnitAttr());
    rows = b.mul(rows, b.broadcast(weight, shapeOf(rows), dims));
    result = result ? b.add(result, rows) : rows;
  }
  return b.transpose(result, back);
}

FailureOr<Value> affineGrid(Call &n, Value matrices, ArrayRef<int64_t> size, bool alignCorners) {
  const int64_t space = static_cast<int64_t>(size.size()) - 2;
  if (space < 2 || space > 3 || !n.isFloat(0) || n.shape(0) != ArrayRef<int64_t>({size.front(), space, space + 1}))
    return n.fail("expected a matrix per sample, and a size known at import that fits it");
  SmallVector<int64_t> result = {size.front()};
  int64_t pixels = 1;
  for (int64_t each : size.drop_front(2)) {
    if (each < 1 || each > kMaxConstantElements || (pixels *= each) > kMaxConstantElements)
      return n.fail("size " + shapeText(size) + " is empty or too large");
    result.push_back(each);
  }
  result.push_back(space);
  auto type = tensorType(matrices).clone({pixels, space + 1});
  std::vector<double> grid;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    int64_t rest = pixel;
    for (int64_t d = space - 1; d >= 0; --d) { // x, the last dimension, comes first
      const int64_t count = size[2 + d];
      const double at = static_cast<double>(rest % count), all = static_cast<double>(count);
      rest /= count;
      grid.push_back(roundTo(tensorType(matrices).getElementType(), !alignCorners ? (2 * at + 1) / all - 1
                                                                    : count == 1  ? 0.0
                                                                                  : 2 * at / (all - 1) - 1));
    }
    grid.push_back(1);
  }
  Value points = n.b.constant(HostTensor::ofFloats(type, std::move(grid)).toAttr());
  Value product = n.b.dot(matrices, points, {}, {}, {2}, {1});
  return n.b.reshape(n.b.transpose(product, {0, 2, 1}), result);
}

} // namespace tessera::frontend
