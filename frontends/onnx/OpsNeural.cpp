//===- OpsNeural.cpp - softmax, normalisations and attention --------------===//

#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
// --- Softmax ---

template <bool logarithm> LogicalResult opSoftmax(Node &n) {
  const int64_t rank = n.rank(0);
  auto axis = axisOf(n.attr("axis", n.opset < 13 ? 1 : -1), rank);
  if (!axis || !n.isFloat(0))
    return n.fail("expected a floating-point input and an axis in range");
  if (n.shape(0)[*axis] == 0)
    return n.fail("dimension " + Twine(*axis) + " is empty");
  Build &b = n.b;
  Value x = n.input(0);
  auto apply = [&](Value value, int64_t dim) -> Value {
    if (logarithm)
      return logSoftmax(b, value, dim);
    return SoftmaxOp::create(b.builder, b.loc, value.getType(), value, dim);
  };
  if (n.opset >= 13 || *axis == rank - 1)
    return n.set(apply(x, *axis));
  // Before opset 13 all dimensions from the axis on are one.
  int64_t rows = 1, columns = 1;
  for (auto [dim, size] : llvm::enumerate(n.shape(0)))
    (static_cast<int64_t>(dim) < *axis ? rows : columns) *= size;
  return n.set(b.reshape(apply(b.reshape(x, {rows, columns}), 1), n.shape(0)));
}

// --- Normalisations ---

LogicalResult normalisation(Node &n, NormMode mode) {
  const int64_t rank = n.rank(0);
  auto axis = axisOf(n.attr("axis", -1), rank);
  if (!axis || !n.isFloat(0))
    return n.fail("expected a floating-point input and an axis in range");
  ArrayRef<int64_t> inner = n.shape(0).drop_front(*axis);
  int64_t width = 1;
  for (int64_t size : inner)
    width *= size;
  if (width == 0)
    return n.fail("normalises over no elements");
  SmallVector<int64_t> kept(n.shape(0).take_front(*axis));
  kept.append(inner.size(), 1);
  Value affine[2];
  for (int i : {1, 2}) {
    if (!n.has(i))
      continue;
    auto common = broadcastShape(inner, n.shape(i));
    if (!common || ArrayRef<int64_t>(*common) != inner || n.element(i) != n.element(0))
      return n.fail("scale or bias of shape " + shapeText(n.shape(i)) + " does not broadcast to " + shapeText(inner));
    affine[i - 1] = n.inputTo(i, inner);
  }
  Build &b = n.b;
  const SmallVector<int64_t> shape(n.shape(0)), sizes(inner);
  LayerNormOp norm = normaliseInner(b, n.input(0), sizes, mode, affine[0], affine[1], n.attrFloat("epsilon", 1e-5));
  if (failed(n.set(b.reshape(norm.getResult(), shape))))
    return failure();
  if (n.wants(1) && failed(n.set(b.reshape(norm.getMean(), kept), 1)))
    return failure();
  return n.wants(2) ? n.set(b.reshape(norm.getRstd(), kept), 2) : success();
}

LogicalResult opLayerNormalization(Node &n) { return normalisation(n, NormMode::Layer); }
LogicalResult opRMSNormalization(Node &n) { return normalisation(n, NormMode::Rms); }

LogicalResult opBatchNormalization(Node &n) {
  const int64_t rank = n.rank(0);
  if (rank < 2 || !n.isFloat(0))
    return n.fail("expected a floating-point input of rank 2 or more");
  for (int i = 1; i < 5; ++i)
    if (n.rank(i) != 1 || n.shape(i)[0] != n.shape(0)[1] || n.element(i) != n.element(0))
      return n.fail("input " + Twine(i) + " is not a vector of " + Twine(n.shape(0)[1]) + " channels");
  const bool asWritten = n.opset >= 14 ? n.attr("training_mode", 0) != 0 : n.wants(1);
  const std::optional<bool> training = n.isNormalisedByBatch(n.proto.input(3), asWritten);
  if (!training)
    return n.fail(
        "it normalises by its running mean and variance, as after training; torch's exporter writes so whatever "
        "mode the module is in. Say what is meant with --batch-norm train (by the batch's mean and variance) or "
        "--batch-norm inference, or export with python -m tessera export");
  if (n.type(0).getNumElements() == 0)
    return n.fail("normalises over no elements");
  Build &b = n.b;
  Value x = n.input(0);
  BatchStatistics by{n.input(3), n.input(4)};
  if (*training) {
    by = batchStatistics(b, x);
    ++n.step->runningPairs;
    const double momentum = n.attrFloat("momentum", 0.9);
    auto running = [&](int input, Value batch) {
      return b.add(b.scale(n.input(input), momentum), b.scale(batch, 1.0 - momentum));
    };
    if (n.wants(1) && failed(n.set(running(3, by.mean), 1)))
      return failure();
    if (n.wants(2) && failed(n.set(running(4, by.variance), 2)))
      return failure();
  }
  return n.set(normaliseChannels(b, x, by, n.input(1), n.input(2), n.attrFloat("epsilon", 1e-5)));
}

/// Normalises `groups` groups of channels per sample, then scales and shifts by channel (or by group).
LogicalResult overGroups(Node &n, int64_t groups, bool affineByGroup) {
  ArrayRef<int64_t> shape = n.shape(0);
  if (shape.size() < 2 || !n.isFloat(0) || groups < 1 || shape[1] % groups != 0 || n.type(0).getNumElements() == 0)
    return n.fail("expected a floating-point input that is not empty, with channels that divide into " + Twine(groups) +
                  " groups");
  const int64_t affine = affineByGroup ? groups : shape[1];
  for (int i : {1, 2})
    if (n.rank(i) != 1 || n.shape(i)[0] != affine || n.element(i) != n.element(0))
      return n.fail("input " + Twine(i) + " is not a vector of " + Twine(affine) + " elements");
  Build &b = n.b;
  auto spread = [&](int i, Value like) { return b.broadcast(n.input(i), shapeOf(like), {1}); };
  Value x = normaliseGroups(b, n.input(0), groups, n.attrFloat("epsilon", 1e-5)).getResult();
  if (!affineByGroup)
    x = b.reshape(x, shape);
  return n.set(b.reshape(b.add(b.mul(x, spread(1, x)), spread(2, x)), shape));
}

LogicalResult opInstanceNormalization(Node &n) {
  return n.rank(0) < 3 ? n.fail("expected an input of rank 3 or more") : overGroups(n, n.shape(0)[1], false);
}

LogicalResult opGroupNormalization(Node &n) {
  return overGroups(n, n.attr("num_groups", 0), /*affineByGroup=*/n.opset < 21);
}

// --- Attention (opset 23) ---

/// [B, T, H*D] to [B, H, T, D]; a value of rank 4 as it is.
Value heads(Node &n, int i, int64_t count) {
  if (n.rank(i) == 4)
    return n.input(i);
  ArrayRef<int64_t> shape = n.shape(i);
  return n.b.transpose(n.b.reshape(n.input(i), {shape[0], shape[1], count, shape[2] / count}), {0, 2, 1, 3});
}

LogicalResult opAttention(Node &n) {
  if (n.has(4) || n.has(5) || n.attrFloat("softcap", 0) != 0 || n.wants(1) || n.wants(2) || n.wants(3))
    return n.fail("past keys and values, softcap and outputs beyond the first are not supported");
  const int64_t queryHeads = n.attr("q_num_heads", 0), groups = n.attr("kv_num_heads", 0);
  for (int i = 0; i < 3; ++i) {
    const int64_t count = i == 0 ? queryHeads : groups;
    if (!n.isFloat(i) || n.element(i) != n.element(0) || (n.rank(i) != 4 && n.rank(i) != 3) ||
        (n.rank(i) == 3 && (count < 1 || n.shape(i)[2] % count != 0)))
      return n.fail("input " + Twine(i) + " is not [B, H, T, D], or [B, T, H*D] with a number of heads");
  }
  Build &b = n.b;
  AttentionArguments a{heads(n, 0, queryHeads),         heads(n, 1, groups),         heads(n, 2, groups),
                       n.has(3) ? n.input(3) : Value(), n.attr("is_causal", 0) != 0, 1};
  if (failed(checkAttention(n, a)))
    return failure();
  const SmallVector<int64_t> q(shapeOf(a.query));
  a.scale = n.attrFloat("scale", 1.0 / std::sqrt(static_cast<double>(q[3])));
  Value result = attention(b, a);
  if (n.rank(0) == 3)
    result = b.reshape(b.transpose(result, {0, 2, 1, 3}), {q[0], q[2], q[1] * shapeOf(a.value)[3]});
  return n.set(result);
}

const OpRow kNeuralOps[] = {
    {"", "Attention", 23, kNew, 3, opAttention},
    {"", "BatchNormalization", kAny, kNew, 5, opBatchNormalization},
    {"", "GroupNormalization", 18, kNew, 3, opGroupNormalization},
    {"", "InstanceNormalization", kAny, kNew, 3, opInstanceNormalization},
    {"", "LayerNormalization", 17, kNew, 2, opLayerNormalization},
    {"", "LogSoftmax", kAny, kNew, 1, opSoftmax<true>},
    {"", "RMSNormalization", 23, kNew, 2, opRMSNormalization},
    {"", "Softmax", kAny, kNew, 1, opSoftmax<false>},
};
} // namespace

ArrayRef<OpRow> neuralOps() { return kNeuralOps; }

} // namespace tessera::onnx_import
