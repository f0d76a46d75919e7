//===- Pool.cpp - poolings --------------------------------------------------===//

#include "frontends/common/Pool.h"

#include "compiler/dialect/train/Ties.h"
#include "frontends/common/Axis.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
constexpr double kLowest = -std::numeric_limits<double>::infinity();

/// Whether the second of two elements of a window is its maximum: a tie's gradient goes to the first one. What is no
/// number wins.
Value winsSecond(Build &b, Value first, Value second) {
  return b.max(b.compare(CompareDirection::Gt, second, first), b.compare(CompareDirection::Ne, second, second));
}

/// The sum or the maximum of two elements of a window, `first` being the one that comes first.
Value combine(Build &b, ReduceKind kind, Value first, Value second) {
  return kind == ReduceKind::Max ? b.select(winsSecond(b, first, second), second, first) : b.add(first, second);
}

/// One over how many elements of the input (or of the padded input) each average is.
HostTensor windowFactors(Type element, const Window &w, bool countPadding) {
  std::vector<double> counts = {1};
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t from = countPadding ? -w.low[d] : 0, to = w.input[d] + (countPadding ? w.high[d] : 0);
    std::vector<double> wider;
    for (double outer : counts)
      for (int64_t out = 0; out < w.output[d]; ++out) {
        // The window's elements at first, first + dilation, … that are in [from, to).
        const int64_t first = out * w.strides[d] - w.low[d];
        auto below = [&](int64_t limit) {
          return std::clamp<int64_t>(llvm::divideCeilSigned(limit - first, w.dilations[d]), 0, w.kernel[d]);
        };
        const int64_t count = below(to) - below(from);
        wider.push_back(outer * static_cast<double>(std::max<int64_t>(1, count)));
      }
    counts = std::move(wider);
  }
  for (double &count : counts)
    count = 1 / count;
  return HostTensor::ofFloats(RankedTensorType::get(w.output, element), std::move(counts));
}

/// What the windows see of each dimension before it: padding, at the end as far as windows of ceil_mode reach.
struct Reach {
  SmallVector<int64_t> low, high;
  bool isPadded = false;

  Reach(const Window &w, size_t rank) : low(rank, 0), high(rank, 0) {
    for (size_t d = 0; d < w.rank(); ++d) {
      low[2 + d] = w.low[d];
      high[2 + d] = std::max<int64_t>(0, w.reach(d) - w.input[d] - w.low[d]);
      isPadded |= low[2 + d] != 0 || high[2 + d] != 0;
    }
  }
};

LogicalResult checkUnrolled(Call &n, const Window &w) {
  for (int64_t size : w.kernel)
    if (size > 1024)
      return n.fail("overlapping or padded windows of more than 1024 elements along a dimension are not supported");
  return success();
}
} // namespace

Value reduceWindows(Build &b, ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  Value result = b.reduce(kind, x, dims);
  if (kind == ReduceKind::Max)
    result.getDefiningOp()->setAttr(kFirst, b.builder.getUnitAttr());
  return result;
}

/// A reduction where windows tile the input, else strided slices, one dimension after the other from the last, so that
/// elements meet in their order in memory.
FailureOr<Value> overWindows(Call &n, const Window &w, Value x, ReduceKind kind, double padValue) {
  Build &b = n.b;
  ArrayRef<int64_t> shape = shapeOf(x);
  bool tiles = true;
  SmallVector<int64_t> split(shape.take_front(2)), inner;
  for (size_t d = 0; d < w.rank(); ++d) {
    tiles &= w.low[d] == 0 && w.high[d] == 0 && w.strides[d] == w.kernel[d] && w.dilations[d] == 1 &&
             w.input[d] == w.output[d] * w.kernel[d];
    inner.push_back(static_cast<int64_t>(split.size()) + 1);
    split.append({w.output[d], w.kernel[d]});
  }
  if (tiles)
    return reduceWindows(b, kind, b.reshape(x, split), inner);
  if (failed(checkUnrolled(n, w)))
    return failure();
  const Reach reach(w, shape.size());
  if (reach.isPadded)
    x = b.pad(x, reach.low, reach.high, {}, padValue);
  for (size_t d = w.rank(); d-- > 0;) {
    Value result;
    for (int64_t offset = 0; offset < w.kernel[d]; ++offset) {
      Value element = windowSlice(b, x, static_cast<int64_t>(2 + d), w, d, offset);
      result = result ? combine(b, kind, result, element) : element;
    }
    x = result;
  }
  return x;
}

FailureOr<Value> maxPool(Call &n, const Window &w, Value x) { return overWindows(n, w, x, ReduceKind::Max, kLowest); }

FailureOr<std::pair<Value, Value>> maxPoolWithPlaces(Call &n, const Window &w, Value x) {
  if (failed(checkUnrolled(n, w)))
    return failure();
  Build &b = n.b;
  int64_t count = 1;
  for (int64_t size : w.input)
    count *= size;
  SmallVector<int64_t> spatial = {1, 1};
  llvm::append_range(spatial, w.input);
  Value place = b.reshape(b.iota(RankedTensorType::get({count}, b.builder.getI64Type()), 0), spatial);
  place = b.broadcastTo(place, shapeOf(x));
  const Reach reach(w, spatial.size());
  if (reach.isPadded) {
    x = b.pad(x, reach.low, reach.high, {}, kLowest);
    place = b.pad(place, reach.low, reach.high, {}, -1); // not of the input: anything wins over it
  }
  for (size_t d = w.rank(); d-- > 0;) {
    Value best, where;
    for (int64_t offset = 0; offset < w.kernel[d]; ++offset) {
      const auto axis = static_cast<int64_t>(2 + d);
      Value element = windowSlice(b, x, axis, w, d, offset), at = windowSlice(b, place, axis, w, d, offset);
      if (!best) {
        best = element;
        where = at;
        continue;
      }
      Value wins = winsSecond(b, best, element);
      wins = b.max(wins, b.compare(CompareDirection::Lt, where, b.splatLike(where, 0)));
      best = b.select(wins, element, best);
      where = b.select(wins, at, where);
    }
    x = best;
    place = where;
  }
  return std::pair(x, place);
}

FailureOr<Value> averagePool(Call &n, const Window &w, Value x, bool countPadding, std::optional<double> divisor) {
  Build &b = n.b;
  auto sum = overWindows(n, w, x, ReduceKind::Sum, 0.0);
  if (failed(sum))
    return failure();
  if (divisor)
    return b.scale(*sum, 1 / *divisor);
  int64_t count = 1;
  for (int64_t size : w.output)
    count *= size;
  if (count > kMaxConstantElements)
    return n.fail("result is too large");
  HostTensor factors = windowFactors(tensorType(x).getElementType(), w, countPadding);
  Value factor = factors.uniform() ? b.splatLike(*sum, *factors.uniform())
                                   : b.broadcastTo(b.constant(factors.toAttr()), shapeOf(*sum));
  return b.mul(*sum, factor);
}

/// One dimension: a reduction where the parts have one size and do not overlap, else of what a lookup gives for each.
static FailureOr<Value> poolAlong(Call &n, Value x, int64_t axis, int64_t count, ReduceKind kind) {
  Build &b = n.b;
  const SmallVector<int64_t> shape(shapeOf(x));
  const int64_t size = shape[axis];
  auto start = [&](int64_t i) { return i * size / count; };
  auto length = [&](int64_t i) { return ((i + 1) * size + count - 1) / count - start(i); };
  int64_t longest = 0;
  for (int64_t i = 0; i < count; ++i)
    longest = std::max<int64_t>(longest, length(i));
  if (count * longest > kMaxConstantElements)
    return n.fail("result is too large");
  if (size % count != 0) {
    SmallVector<int64_t> indices;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t at = 0; at < longest; ++at)
        indices.push_back(start(i) + std::min<int64_t>(at, length(i) - 1));
    x = takeAlong(b, x, axis, indices);
  }
  SmallVector<int64_t> split(shape);
  split[axis] = count;
  split.insert(split.begin() + axis + 1, longest);
  x = b.reshape(x, split);
  if (kind == ReduceKind::Max) // an element that a lookup repeats ties with itself
    return reduceWindows(b, kind, x, {axis + 1});
  auto context = b.builder.getContext();
  std::vector<int64_t> isIn;
  std::vector<double> factors;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t at = 0; at < longest; ++at)
      isIn.push_back(at < length(i) ? 1 : 0);
    factors.push_back(1.0 / static_cast<double>(length(i)));
  }
  if (llvm::is_contained(isIn, 0)) {
    HostTensor mask = HostTensor::ofInts(RankedTensorType::get({count, longest}, IntegerType::get(context, 1)), isIn);
    x = b.select(b.broadcast(b.constant(mask.toAttr()), split, {axis, axis + 1}), x, b.splatLike(x, 0));
  }
  x = b.sum(x, {axis + 1});
  HostTensor factor =
      HostTensor::ofFloats(RankedTensorType::get({count}, tensorType(x).getElementType()), std::move(factors));
  return b.mul(x, factor.uniform() ? b.splatLike(x, *factor.uniform())
                                   : b.broadcast(b.constant(factor.toAttr()), shapeOf(x), {axis}));
}

FailureOr<Value> adaptivePool(Call &n, Value x, ArrayRef<int64_t> counts, ReduceKind kind) {
  const auto first = static_cast<int64_t>(shapeOf(x).size() - counts.size());
  for (size_t d = counts.size(); d-- > 0;) {
    if (counts[d] < 1 || counts[d] > kMaxSpatial || shapeOf(x)[first + d] < 1 || shapeOf(x)[first + d] > kMaxSpatial)
      return n.fail("input or result is empty or too large");
    auto pooled = poolAlong(n, x, first + static_cast<int64_t>(d), counts[d], kind);
    if (failed(pooled))
      return failure();
    x = *pooled;
  }
  return x;
}

} // namespace tessera::frontend
