#include "passes/shard/partition/AttentionKeys.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

RankedTensorType indexType(Build &build, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, build.builder.getI64Type());
}

Value number(Build &build, ArrayRef<int64_t> shape, int64_t value) {
  return build.constant(SplatElementsAttr::get(indexType(build, shape), build.builder.getI64IntegerAttr(value)));
}

/// The larger or the smaller of each two, of one or of all samples.
Value pick(Build &build, Value a, Value b, CompareDirection direction) {
  if (!a || !b)
    return a ? a : b;
  const int64_t samples = std::max(shapeOf(a)[0], shapeOf(b)[0]);
  a = build.broadcastTo(a, {samples, shapeOf(a)[1]});
  b = build.broadcastTo(b, {samples, shapeOf(b)[1]});
  return build.select(build.compare(direction, a, b), a, b);
}

/// `value` (tensor<i64>) for each element of `like`.
Value repeated(Build &build, Value value, Value like) { return build.broadcast(value, shapeOf(like), {}); }

/// `x - first`, not below 0 nor above `most`.
Value clampedFrom(Build &build, Value x, Value first, int64_t most) {
  Value rest = build.sub(x, repeated(build, first, x));
  rest = build.max(rest, number(build, shapeOf(x), 0));
  Value limit = number(build, shapeOf(x), most);
  return build.select(build.compare(CompareDirection::Lt, rest, limit), rest, limit);
}

} // namespace

SeenKeys seenKeys(Build &build, const AttentionMasks &masks, Value indices, SeenKeys given) {
  if (!masks.causal)
    return given;
  const int64_t count = shapeOf(indices)[0];
  Value last = build.reshape(indices, {1, count});
  last = build.add(last, number(build, {1, count}, masks.keys - masks.queries));
  SeenKeys seen;
  seen.end = pick(build, build.add(last, number(build, {1, count}, 1)), given.end, CompareDirection::Lt);
  seen.begin = given.begin;
  if (masks.window)
    seen.begin =
        pick(build, build.sub(last, number(build, {1, count}, *masks.window - 1)), given.begin, CompareDirection::Gt);
  if (!seen.begin)
    seen.begin = number(build, shapeOf(seen.end), 0);
  const int64_t samples = std::max(shapeOf(seen.begin)[0], shapeOf(seen.end)[0]);
  seen.begin = build.broadcastTo(seen.begin, {samples, count});
  seen.end = build.broadcastTo(seen.end, {samples, count});
  return seen;
}

SeenKeys seenKeysOf(dist::CollectiveBuilder &collectives, Build &build, const SeenKeys &seen, const dist::Split &split,
                    int64_t keys, dist::MeshAttr mesh, Value position) {
  if (!seen.begin)
    return seen;
  const SmallVector<Value, 2> starts = collectives.rangeStarts(split, keys, position);
  const int64_t run = keys / (dist::groupSize(mesh, split) * static_cast<int64_t>(starts.size()));
  Value zero = build.constant(DenseElementsAttr::get(indexType(build, {}), int64_t{0}));
  // How many of the member's keys are in front of x.
  auto countBelow = [&](Value x) {
    x = clampedFrom(build, build.max(x, number(build, shapeOf(x), 0)), zero, keys); // any number is a bound
    Value below;
    for (Value start : starts) {
      Value here = clampedFrom(build, x, start, run);
      below = below ? build.add(below, here) : here;
    }
    return below;
  };
  return {countBelow(seen.begin), countBelow(seen.end)};
}

} // namespace tessera::shard
