//===- OpsNeural.cpp - normalisations, attention, embeddings, dropout ------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/pt2/Call.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Softmax ---

Value logSoftmax(Build &b, Value x, int64_t dim) {
  Value top = StopGradientOp::create(b.builder, b.loc, b.reduce(ReduceKind::Max, x, {dim}));
  Value shifted = b.sub(x, b.broadcastReduced(top, shapeOf(x), {dim}));
  Value lse = b.unary<LogOp>(b.sum(b.exp(shifted), {dim}));
  return b.sub(shifted, b.broadcastReduced(lse, shapeOf(x), {dim}));
}

template <bool logarithm> LogicalResult opSoftmax(Call &c) {
  auto dim = axisOf(c.integerOr("dim", -1), c.rank("self"));
  Type element = c.resultElement();
  if (!dim || c.rank("self") == 0 || c.shape("self")[*dim] == 0 || !isa_and_nonnull<FloatType>(element))
    return c.fail("expected floating point and a dimension that is not empty");
  Value x = c.b.convert(c.value("self"), element);
  if (logarithm)
    return c.set(logSoftmax(c.b, x, *dim));
  return c.set(SoftmaxOp::create(c.b.builder, c.b.loc, x.getType(), x, *dim).getResult());
}

// --- Normalisations ---

/// Over the last dimensions, which `normalized_shape` gives; result, and mean and 1/deviation where they are wanted.
LogicalResult normalisation(Call &c, NormMode mode, std::optional<double> epsilon) {
  auto inner = c.ints("normalized_shape");
  ArrayRef<int64_t> shape = c.shape("input");
  if (!inner || inner->empty() || inner->size() > shape.size() || !c.isFloat("input") ||
      shape.take_back(inner->size()) != ArrayRef<int64_t>(*inner))
    return c.fail("normalized_shape does not fit an input of shape " + shapeText(shape));
  int64_t width = 1;
  for (int64_t size : *inner)
    width *= size;
  if (width == 0)
    return c.fail("normalises over no elements");
  Build &b = c.b;
  SmallVector<int64_t> flat(shape.drop_back(inner->size())), kept(flat);
  flat.push_back(width);
  kept.append(inner->size(), 1);
  Value affine[2];
  for (auto [place, name] : {std::pair(0, "weight"), std::pair(1, "bias")}) {
    if (!c.isTensor(name))
      continue;
    if (c.shape(name) != ArrayRef<int64_t>(*inner) || c.element(name) != c.element("input"))
      return c.fail("'" + Twine(name) + "' does not fit");
    affine[place] = b.reshape(c.value(name), {width});
  }
  auto statistics = RankedTensorType::get(ArrayRef<int64_t>(flat).drop_back(), accumulationType(c.element("input")));
  auto norm = LayerNormOp::create(b.builder, b.loc, c.type("input").clone(flat), statistics, statistics, mode,
                                  b.reshape(c.value("input"), flat), affine[0], affine[1],
                                  llvm::APFloat(epsilon.value_or(1e-5)));
  if (failed(c.set(b.reshape(norm.getResult(), shape))) || failed(c.set(b.reshape(norm.getMean(), kept), 1)))
    return failure();
  return c.set(b.reshape(norm.getRstd(), kept), 2);
}
LogicalResult opLayerNorm(Call &c) { return normalisation(c, NormMode::Layer, c.number("eps")); }
LogicalResult opRmsNorm(Call &c) {
  // Without eps PyTorch takes that of the type in which it computes: f32 for narrower ones.
  if (c.number("eps"))
    return normalisation(c, NormMode::Rms, c.number("eps"));
  return normalisation(c, NormMode::Rms, c.element("input").isF64() ? 0x1p-52 : 0x1p-23);
}

LogicalResult opGroupNorm(Call &c) {
  ArrayRef<int64_t> shape = c.shape("input");
  const int64_t groups = c.integerOr("num_groups", c.integerOr("group", 0));
  if (shape.size() < 2 || !c.isFloat("input") || groups < 1 || shape[1] % groups != 0 ||
      c.type("input").getNumElements() == 0)
    return c.fail("expected floating point that is not empty, with channels that divide into " + Twine(groups) +
                  " groups");
  Build &b = c.b;
  auto flat = c.type("input").clone({shape[0], groups, c.type("input").getNumElements() / (shape[0] * groups)});
  auto statistics = RankedTensorType::get({shape[0], groups}, accumulationType(c.element("input")));
  auto norm = LayerNormOp::create(b.builder, b.loc, flat, statistics, statistics, NormMode::Layer,
                                  b.reshape(c.value("input"), flat.getShape()), Value(), Value(),
                                  llvm::APFloat(c.numberOr("eps", 1e-5)));
  Value x = b.reshape(norm.getResult(), shape);
  for (auto [name, isScale] : {std::pair("weight", true), std::pair("bias", false)}) {
    if (!c.isTensor(name))
      continue;
    if (c.shape(name) != ArrayRef<int64_t>{shape[1]} || c.element(name) != c.element("input"))
      return c.fail("'" + Twine(name) + "' does not fit");
    Value wide = b.broadcast(c.value(name), shape, {1});
    x = isScale ? b.mul(x, wide) : b.add(x, wide);
  }
  return c.set(x);
}

/// By the batch's mean and variance, as in training mode. Running statistics are not updated: nothing in the step
/// depends on them.
LogicalResult opBatchNorm(Call &c) {
  const int64_t rank = c.rank("input");
  if (!c.flag("training", false))
    return c.fail("normalises by its running statistics: put the module into training mode, or export without it");
  if (rank < 2 || !c.isFloat("input"))
    return c.fail("expected floating point with channels");
  Build &b = c.b;
  Value x = c.value("input");
  ArrayRef<int64_t> shape = c.shape("input");
  SmallVector<int64_t> dims;
  int64_t count = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != 1) {
      dims.push_back(dim);
      count *= shape[dim];
    }
  if (count == 0)
    return c.fail("normalises over no elements");
  auto statistics = [&](Value of) {
    Value sum = b.sum(of, dims);
    sum.getDefiningOp()->setAttr(kStatistics, b.builder.getUnitAttr());
    return b.scale(sum, 1.0 / static_cast<double>(count));
  };
  auto wide = [&](Value vector) { return b.broadcast(vector, shape, {1}); };
  Value mean = statistics(x), centred = b.sub(x, wide(mean)), variance = statistics(b.mul(centred, centred));
  Value scale = b.unary<RsqrtOp>(b.add(variance, b.splatLike(variance, c.numberOr("eps", 1e-5))));
  for (StringRef name : {"weight", "bias"})
    if (c.isTensor(name) && (c.shape(name) != ArrayRef<int64_t>{shape[1]} || c.element(name) != c.element("input")))
      return c.fail("'" + name + "' does not fit");
  if (c.isTensor("weight"))
    scale = b.mul(scale, c.value("weight"));
  Value y = b.mul(centred, wide(scale));
  ++*c.runningPairs;
  return c.set(c.isTensor("bias") ? b.add(y, wide(c.value("bias"))) : y);
}

// --- Dropout ---

/// `x` with elements set to 0 at random, and which ones are kept.
std::pair<Value, Value> dropped(Call &c, Value x, double rate) {
  Build &b = c.b;
  Value seed = c.seed();
  auto numbers = RngUniformOp::create(b.builder, b.loc, tensorType(x).clone(b.builder.getF32Type()), seed, ValueRange{},
                                      (*c.randomStreams)++, DenseI64ArrayAttr());
  Value keep = b.compare(CompareDirection::Ge, numbers, b.splatLike(numbers, rate));
  return {b.select(keep, b.scale(x, 1.0 / (1.0 - rate)), b.splatLike(x, 0.0)), keep};
}

LogicalResult opDropout(Call &c) {
  const StringRef name = c.isTensor("input") ? "input" : "self";
  const double rate = c.numberOr("p", 0.5);
  if (!c.flag("train", true) || rate == 0)
    return c.set(c.value(name));
  if (!(rate > 0 && rate < 1) || !c.isFloat(name))
    return c.fail("expected floating point and a rate below 1");
  auto [x, keep] = dropped(c, c.value(name), rate);
  return succeeded(c.set(x)) ? c.set(keep, 1) : failure();
}

// --- Attention ---

/// Written out, as probabilities with dropout are not attention any more.
Value attentionWithDropout(Call &c, Value query, Value key, Value value, Value mask, bool causal, double scale,
                           double rate) {
  Build &b = c.b;
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key);
  auto repeat = [&](Value x) { // each head of keys for its group of queries
    SmallVector<int64_t> wide = {k[0], k[1], q[1] / k[1], k[2], shapeOf(x)[3]};
    return b.reshape(b.broadcast(x, wide, {0, 1, 3, 4}), {q[0], q[1], k[2], shapeOf(x)[3]});
  };
  Value scores = b.scale(b.dot(query, repeat(key), {0, 1}, {0, 1}, {3}, {3}), scale);
  if (causal) {
    auto index = RankedTensorType::get(shapeOf(scores), b.builder.getI64Type());
    mask = b.compare(CompareDirection::Ge, b.iota(index, 2), b.iota(index, 3));
  }
  if (mask && tensorType(mask).getElementType().isInteger(1))
    scores = b.select(b.broadcastTo(mask, shapeOf(scores)), scores,
                      b.splatLike(scores, -std::numeric_limits<double>::infinity()));
  else if (mask)
    scores = b.add(scores, b.broadcastTo(mask, shapeOf(scores)));
  Value probabilities = SoftmaxOp::create(b.builder, b.loc, scores.getType(), scores, 3);
  return b.dot(dropped(c, probabilities, rate).first, repeat(value), {0, 1}, {0, 1}, {3}, {2});
}

LogicalResult opAttention(Call &c) {
  Build &b = c.b;
  const double rate = c.numberOr("dropout_p", 0);
  if (!(rate >= 0 && rate < 1))
    return c.fail("expected a rate of dropout below 1");
  for (StringRef name : {"query", "key", "value"})
    if (!c.isFloat(name) || c.element(name) != c.element("query") || c.rank(name) < 2 || c.rank(name) > 4)
      return c.fail("'" + name + "' is not [B, H, T, D]");
  auto four = [&](StringRef name) {
    SmallVector<int64_t> shape(4 - c.rank(name), 1);
    llvm::append_range(shape, c.shape(name));
    return b.reshape(c.value(name), shape);
  };
  Value query = four("query"), key = four("key"), value = four("value");
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  const bool isGrouped = c.flag("enable_gqa", false);
  if (q[0] != k[0] || k[0] != v[0] || k[1] != v[1] || k[1] == 0 || q[3] != k[3] || k[2] != v[2] || q[3] == 0 ||
      (isGrouped ? q[1] % k[1] != 0 : q[1] != k[1]))
    return c.fail("query, key and value do not fit each other");
  bool causal = c.flag("is_causal", false);
  Value mask;
  if (c.isTensor("attn_mask")) {
    if (causal)
      return c.fail("is_causal beside a mask");
    SmallVector<int64_t> shape(4 - std::min<int64_t>(c.rank("attn_mask"), 4), 1);
    llvm::append_range(shape, c.shape("attn_mask"));
    auto common = broadcastShape(shape, {q[0], q[1], q[2], k[2]});
    if (!common || ArrayRef<int64_t>(*common) != ArrayRef<int64_t>({q[0], q[1], q[2], k[2]}) ||
        !(c.element("attn_mask").isInteger(1) || c.element("attn_mask") == c.element("query")))
      return c.fail("a mask of shape " + shapeText(c.shape("attn_mask")) + " does not fit query and key");
    mask = b.reshape(c.value("attn_mask"), shape);
    shape[3] = k[2];
    mask = b.broadcastTo(mask, shape);
  }
  if (causal && q[2] != k[2]) {
    // PyTorch aligns the diagonal at the upper left, train.attention at the lower right: the mask is written out.
    auto index = RankedTensorType::get({1, 1, q[2], k[2]}, b.builder.getI64Type());
    mask = b.compare(CompareDirection::Ge, b.iota(index, 2), b.iota(index, 3));
    causal = false;
  }
  const double scale = c.numberOr("scale", 1.0 / std::sqrt(static_cast<double>(q[3])));
  SmallVector<int64_t> shape(c.shape("query"));
  shape.back() = v[3];
  if (rate > 0)
    return c.set(b.reshape(attentionWithDropout(c, query, key, value, mask, causal, scale, rate), shape));
  auto attention =
      AttentionOp::create(b.builder, b.loc, tensorType(query).clone({q[0], q[1], q[2], v[3]}),
                          RankedTensorType::get({q[0], q[1], q[2]}, accumulationType(c.element("query"))), query, key,
                          value, mask, /*begin=*/Value(), /*end=*/Value(), llvm::APFloat(scale), causal,
                          /*window=*/IntegerAttr(), /*density=*/FloatAttr(), AttentionSplitAttr());
  return c.set(b.reshape(attention.getResult(), shape));
}

// --- Embeddings ---

LogicalResult opEmbedding(Call &c) {
  if (c.rank("weight") != 2 || c.isFloat("indices") || c.element("indices").isInteger(1))
    return c.fail("expected a table and integer indices");
  if (c.flag("scale_grad_by_freq", false) || c.flag("sparse", false))
    return c.fail("scale_grad_by_freq and sparse gradients are not supported");
  const int64_t padding = c.integerOr("padding_idx", -1);
  if (padding >= c.shape("weight")[0])
    return c.fail("padding_idx is outside of the table");
  // Positions that follow each other are rows that do.
  if (const HostTensor *known = c.constant("indices"); known && known->size() > 0 && padding < 0) {
    const int64_t first = known->ints[0], count = known->size();
    bool follow = first >= 0 && first + count <= c.shape("weight")[0];
    for (int64_t i = 0; follow && i < count; ++i)
      follow = known->ints[i] == first + i;
    SmallVector<int64_t> shape(known->shape());
    shape.push_back(c.shape("weight")[1]);
    if (follow)
      return c.set(c.b.reshape(c.b.slice(c.value("weight"), {first, 0}, {first + count, c.shape("weight")[1]}), shape));
  }
  return c.set(
      c.b.gatherRows(c.value("weight"), c.value("indices"), padding >= 0 ? std::optional(padding) : std::nullopt));
}

const OpRow kRows[] = {
    {"aten.batch_norm.default", opBatchNorm, "input"},
    {"aten.dropout.default", opDropout, "input"},
    {"aten.embedding.default", opEmbedding, "weight,indices"},
    {"aten.group_norm.default", opGroupNorm, "input"},
    {"aten.layer_norm.default", opLayerNorm, "input"},
    {"aten.log_softmax.int", opSoftmax<true>},
    {"aten._log_softmax.default", opSoftmax<true>},
    {"aten.native_dropout.default", opDropout, "input"},
    {"aten.native_layer_norm.default", opLayerNorm, "input"},
    {"aten.rms_norm.default", opRmsNorm, "input"},
    {"aten.scaled_dot_product_attention.default", opAttention, "query,key,value"},
    {"aten.softmax.int", opSoftmax<false>},
    {"aten._softmax.default", opSoftmax<false>},
};
} // namespace

llvm::ArrayRef<OpRow> neuralOps() { return kRows; }

} // namespace tessera::pt2
