//===- OpsRotary.cpp - rotary positions (opset 23) -------------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Cosines or sines as [B, 1, T, R/2], for [B, H, T, R]: of each sample's positions, or rows of a table that
/// `position_ids` name.
FailureOr<Value> angles(Node &n, int i, ArrayRef<int64_t> heads, int64_t half) {
  if (n.element(i) != n.element(0) || n.rank(i) != (n.has(3) ? 2 : 3) || n.shape(i).back() != half)
    return n.fail("input " + Twine(i) + " is not of the input's type and of " + Twine(half) +
                  " angles for each position");
  Value table = n.input(i);
  if (n.has(3)) {
    if (n.rank(3) != 2 || n.shape(3)[0] != heads[0] || n.shape(3)[1] != heads[2])
      return n.fail("position_ids are not [B, T]");
    auto ids = checkedIndices(n, 3, n.shape(i)[0]);
    if (failed(ids))
      return failure();
    table = n.b.gatherRows(table, *ids);
  }
  if (shapeOf(table) != ArrayRef<int64_t>{heads[0], heads[2], half})
    return n.fail("input " + Twine(i) + " is not [B, T, " + Twine(half) + "]");
  return n.b.reshape(table, {heads[0], 1, heads[2], half});
}

/// Elements from `first` of the last dimension, `step` apart.
Value along(Build &b, Value x, int64_t first, int64_t end, int64_t step) {
  SmallVector<int64_t> starts(4, 0), limits(shapeOf(x)), steps(4, 1);
  starts[3] = first, limits[3] = end, steps[3] = step;
  return b.slice(x, starts, limits, steps);
}

LogicalResult opRotaryEmbedding(Node &n) {
  Build &b = n.b;
  const int64_t count = n.attr("num_heads", 0), rank = n.rank(0);
  const bool isFlat = rank == 3;
  if (!n.isFloat(0) || (rank != 3 && rank != 4) || (isFlat && (count < 1 || n.shape(0)[2] % count != 0)))
    return n.fail("expected [B, H, T, D], or [B, T, H*D] with a number of heads");
  Value x = n.input(0);
  if (isFlat)
    x = b.transpose(b.reshape(x, {n.shape(0)[0], n.shape(0)[1], count, n.shape(0)[2] / count}), {0, 2, 1, 3});
  const SmallVector<int64_t> heads(shapeOf(x));
  const int64_t given = n.attr("rotary_embedding_dim", 0), turned = given == 0 ? heads[3] : given, half = turned / 2;
  if (turned < 2 || turned % 2 != 0 || turned > heads[3])
    return n.fail("an odd number of elements is turned, or more than a head has");
  auto cosine = angles(n, 1, heads, half), sine = angles(n, 2, heads, half);
  if (failed(cosine) || failed(sine))
    return failure();
  const bool interleaved = n.attr("interleaved", 0) != 0;
  Value first = interleaved ? along(b, x, 0, turned, 2) : along(b, x, 0, half, 1);
  Value second = interleaved ? along(b, x, 1, turned, 2) : along(b, x, half, turned, 1);
  const SmallVector<int64_t> part(shapeOf(first));
  Value c = b.broadcastTo(*cosine, part), s = b.broadcastTo(*sine, part);
  SmallVector<Value> parts = {b.sub(b.mul(c, first), b.mul(s, second)), b.add(b.mul(s, first), b.mul(c, second))};
  SmallVector<int64_t> shape(part);
  if (interleaved) {
    shape.push_back(1);
    for (Value &value : parts)
      value = b.reshape(value, shape);
  }
  shape = part;
  shape[3] = turned;
  parts = {b.reshape(b.concat(parts, interleaved ? 4 : 3), shape)};
  if (turned < heads[3])
    parts.push_back(along(b, x, turned, heads[3], 1));
  Value result = parts.size() == 1 ? parts[0] : b.concat(parts, 3);
  return n.set(isFlat ? b.reshape(b.transpose(result, {0, 2, 1, 3}), n.shape(0)) : result);
}

const OpRow kRotaryOps[] = {
    {"", "RotaryEmbedding", 23, kNew, 3, opRotaryEmbedding},
};
} // namespace

ArrayRef<OpRow> rotaryOps() { return kRotaryOps; }

} // namespace tessera::onnx_import
