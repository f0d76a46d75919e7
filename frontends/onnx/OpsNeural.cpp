//===- OpsNeural.cpp - softmax, normalisations and attention --------------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/onnx/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
// --- Softmax ---

Value logSoftmax(Build &b, Value x, int64_t dim) {
  Value top = StopGradientOp::create(b.builder, b.loc, b.reduce(ReduceKind::Max, x, {dim}));
  Value shifted = b.sub(x, b.broadcastReduced(top, shapeOf(x), {dim}));
  Value lse = b.unary<LogOp>(b.sum(b.exp(shifted), {dim}));
  return b.sub(shifted, b.broadcastReduced(lse, shapeOf(x), {dim}));
}

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
  Build &b = n.b;
  SmallVector<int64_t> flat(n.shape(0).take_front(*axis)), kept(flat);
  flat.push_back(width);
  kept.append(inner.size(), 1);
  Value affine[2];
  for (int i : {1, 2}) {
    if (!n.has(i))
      continue;
    auto common = broadcastShape(inner, n.shape(i));
    if (!common || ArrayRef<int64_t>(*common) != inner || n.element(i) != n.element(0))
      return n.fail("scale or bias of shape " + shapeText(n.shape(i)) + " does not broadcast to " + shapeText(inner));
    affine[i - 1] = b.reshape(n.inputTo(i, inner), {width});
  }
  auto statistics = RankedTensorType::get(ArrayRef<int64_t>(flat).drop_back(), accumulationType(n.element(0)));
  auto norm = LayerNormOp::create(b.builder, b.loc, n.type(0).clone(flat), statistics, statistics, mode,
                                  b.reshape(n.input(0), flat), affine[0], affine[1],
                                  llvm::APFloat(n.attrFloat("epsilon", 1e-5)));
  if (failed(n.set(b.reshape(norm.getResult(), n.shape(0)))))
    return failure();
  if (n.wants(1) && failed(n.set(b.reshape(norm.getMean(), kept), 1)))
    return failure();
  return n.wants(2) ? n.set(b.reshape(norm.getRstd(), kept), 2) : success();
}

LogicalResult opLayerNormalization(Node &n) { return normalisation(n, NormMode::Layer); }
LogicalResult opRMSNormalization(Node &n) { return normalisation(n, NormMode::Rms); }

/// A vector of channels broadcast over dimension 1 of the input.
Value overChannels(Node &n, Value vector) { return n.b.broadcast(vector, n.shape(0), {1}); }

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
        "--batch-norm inference, or export with tools/export_torch.py");
  Build &b = n.b;
  Value x = n.input(0), mean = n.input(3), variance = n.input(4);
  SmallVector<int64_t> dims;
  int64_t count = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != 1) {
      dims.push_back(dim);
      count *= n.shape(0)[dim];
    }
  if (count == 0)
    return n.fail("normalises over no elements");
  if (*training) {
    const double factor = 1.0 / static_cast<double>(count), momentum = n.attrFloat("momentum", 0.9);
    auto statistics = [&](Value of) {
      Value sum = b.sum(of, dims);
      sum.getDefiningOp()->setAttr(kStatistics, b.builder.getUnitAttr());
      return b.scale(sum, factor);
    };
    mean = statistics(x);
    ++*n.runningPairs;
    Value centred = b.sub(x, overChannels(n, mean));
    variance = statistics(b.mul(centred, centred));
    auto running = [&](int input, Value batch) {
      return b.add(b.scale(n.input(input), momentum), b.scale(batch, 1.0 - momentum));
    };
    if (n.wants(1) && failed(n.set(running(3, mean), 1)))
      return failure();
    if (n.wants(2) && failed(n.set(running(4, variance), 2)))
      return failure();
  }
  Value rstd = b.unary<RsqrtOp>(b.add(variance, b.splatLike(variance, n.attrFloat("epsilon", 1e-5))));
  Value scale = b.mul(rstd, n.input(1));
  Value centred = b.sub(x, overChannels(n, mean));
  return n.set(b.add(b.mul(centred, overChannels(n, scale)), overChannels(n, n.input(2))));
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
  const int64_t width = n.type(0).getNumElements() / (shape[0] * groups);
  auto flat = n.type(0).clone({shape[0], groups, width});
  auto statistics = RankedTensorType::get({shape[0], groups}, accumulationType(n.element(0)));
  auto norm = LayerNormOp::create(b.builder, b.loc, flat, statistics, statistics, NormMode::Layer,
                                  b.reshape(n.input(0), flat.getShape()), Value(), Value(),
                                  llvm::APFloat(n.attrFloat("epsilon", 1e-5)));
  auto spread = [&](int i, Value like) { return b.broadcast(n.input(i), shapeOf(like), {1}); };
  Value x = norm.getResult();
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
  Value query = heads(n, 0, queryHeads), key = heads(n, 1, groups), value = heads(n, 2, groups);
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  if (q[0] != k[0] || k[0] != v[0] || k[1] != v[1] || k[1] == 0 || q[1] % k[1] != 0 || q[3] != k[3] || k[2] != v[2] ||
      q[3] == 0)
    return n.fail("query, key and value do not fit each other");
  bool causal = n.attr("is_causal", 0) != 0;
  Value mask;
  if (n.has(3)) {
    SmallVector<int64_t> shape(4 - std::min<int64_t>(n.rank(3), 4), 1);
    llvm::append_range(shape, n.shape(3));
    auto common = broadcastShape(shape, {q[0], q[1], q[2], k[2]});
    if (!common || ArrayRef<int64_t>(*common) != ArrayRef<int64_t>({q[0], q[1], q[2], k[2]}) ||
        !(n.element(3).isInteger(1) || n.element(3) == n.element(0)))
      return n.fail("mask of shape " + shapeText(n.shape(3)) + " does not fit query and key");
    mask = b.reshape(n.input(3), shape);
    shape[3] = k[2];
    mask = b.broadcastTo(mask, shape);
  }
  if (causal && q[2] != k[2]) {
    // ONNX aligns the diagonal at the upper left, train.attention at the lower right: write the mask out.
    if (mask && !tensorType(mask).getElementType().isInteger(1))
      return n.fail("is_causal with an additive mask needs as many queries as keys");
    auto index = RankedTensorType::get({1, 1, q[2], k[2]}, b.builder.getI64Type());
    Value below = b.compare(CompareDirection::Ge, b.iota(index, 2), b.iota(index, 3));
    if (mask) {
      auto shape = broadcastShape(shapeOf(mask), shapeOf(below));
      below = b.mul(b.broadcastTo(mask, *shape), b.broadcastTo(below, *shape));
    }
    mask = below;
    causal = false;
  }
  const double scale = n.attrFloat("scale", 1.0 / std::sqrt(static_cast<double>(q[3])));
  auto type = tensorType(query);
  auto attention =
      AttentionOp::create(b.builder, b.loc, type.clone({q[0], q[1], q[2], v[3]}),
                          RankedTensorType::get({q[0], q[1], q[2]}, accumulationType(n.element(0))), query, key, value,
                          mask, /*begin=*/Value(), /*end=*/Value(), llvm::APFloat(scale), causal,
                          /*window=*/IntegerAttr(), /*density=*/FloatAttr(), AttentionSplitAttr());
  Value result = attention.getResult();
  if (n.rank(0) == 3)
    result = b.reshape(b.transpose(result, {0, 2, 1, 3}), {q[0], q[2], q[1] * v[3]});
  return n.set(result);
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
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

ArrayRef<OpRow> neuralOps() { return kRows; }

} // namespace tessera::onnx_import
