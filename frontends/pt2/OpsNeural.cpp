//===- OpsNeural.cpp - normalisations, attention, embeddings ---------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Indexing.h"
#include "frontends/common/Neural.h"
#include "frontends/common/Pool.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Softmax ---

template <bool logarithm> LogicalResult opSoftmax(Call &c) {
  auto dim = axisOf(c.integerOr("dim", -1), c.rank("self"));
  Type element = c.resultElement();
  if (!dim || c.rank("self") == 0 || c.shape("self")[*dim] == 0 || !isa_and_nonnull<FloatType>(element))
    return c.fail("expected floating point and a dimension that is not empty");
  if (logarithm)
    return c.set(
        c.b.convert(frontend::logSoftmax(c.b, c.b.convert(c.value("self"), computedIn(element)), *dim), element));
  Value x = c.b.convert(c.value("self"), element);
  return c.set(SoftmaxOp::create(c.b.builder, c.b.loc, x.getType(), x, *dim).getResult());
}

// --- Normalisations ---

/// Over the last dimensions, which `normalized_shape` gives; result, and mean and 1/deviation where they are wanted.
LogicalResult normalisation(Call &c, NormMode mode, std::optional<double> epsilon) {
  auto inner = c.ints("normalized_shape");
  ArrayRef<int64_t> shape = c.shape("input");
  if (!(epsilon.value_or(0) >= 0))
    return c.fail("eps is not 0 or above");
  if (!inner || inner->empty() || inner->size() > shape.size() || !c.isFloat("input") ||
      shape.take_back(inner->size()) != ArrayRef<int64_t>(*inner))
    return c.fail("normalized_shape does not fit an input of shape " + shapeText(shape));
  int64_t width = 1;
  for (int64_t size : *inner)
    width *= size;
  if (width == 0)
    return c.fail("normalises over no elements");
  SmallVector<int64_t> kept(shape.drop_back(inner->size()));
  kept.append(inner->size(), 1);
  for (StringRef name : {"weight", "bias"})
    if (c.isTensor(name) && (c.shape(name) != ArrayRef<int64_t>(*inner) || c.element(name) != c.element("input")))
      return c.fail("'" + name + "' does not fit");
  Build &b = c.b;
  Value x = c.value("input"), scale = c.optional("weight"), bias = c.optional("bias");
  LayerNormOp norm = frontend::normaliseInner(b, x, *inner, mode, scale, bias, epsilon.value_or(1e-5));
  if (failed(c.set(b.reshape(norm.getResult(), shapeOf(x)))))
    return failure();
  // PyTorch gives the statistics no gradient.
  for (auto [i, value] : {std::pair(1, norm.getMean()), std::pair(2, norm.getRstd())}) {
    Value statistic = StopGradientOp::create(b.builder, b.loc, b.reshape(value, kept));
    if (failed(c.set(statistic, i)))
      return failure();
  }
  return success();
}
LogicalResult opLayerNorm(Call &c) { return normalisation(c, NormMode::Layer, c.number("eps")); }
LogicalResult opRmsNorm(Call &c) {
  // Without eps PyTorch takes that of the type in which it computes: f32 for narrower ones.
  if (c.number("eps"))
    return normalisation(c, NormMode::Rms, c.number("eps"));
  return normalisation(c, NormMode::Rms, c.element("input").isF64() ? 0x1p-52 : 0x1p-23);
}

/// Over groups of channels of each sample; result, and mean and 1/deviation where they are wanted.
LogicalResult overGroups(Call &c, int64_t groups) {
  const SmallVector<int64_t> shape(c.shape("input"));
  if (shape.size() < 2 || !c.isFloat("input") || groups < 1 || shape[1] % groups != 0 ||
      c.type("input").getNumElements() == 0)
    return c.fail("expected floating point that is not empty, with channels that divide into " + Twine(groups) +
                  " groups");
  if (!(c.numberOr("eps", 1e-5) >= 0))
    return c.fail("eps is not 0 or above");
  Build &b = c.b;
  LayerNormOp norm = frontend::normaliseGroups(b, c.value("input"), groups, c.numberOr("eps", 1e-5));
  Value x = b.reshape(norm.getResult(), shape);
  Value statistics[] = {norm.getMean(), norm.getRstd()};
  for (int i : {1, 2})
    if (c.wants(i) && c.resultElement(i) && failed(c.set(b.convert(statistics[i - 1], c.resultElement(i)), i)))
      return failure();
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
LogicalResult opGroupNorm(Call &c) { return overGroups(c, c.integerOr("num_groups", c.integerOr("group", 0))); }

/// Each channel of each sample.
LogicalResult opInstanceNorm(Call &c) {
  if (!c.flag("use_input_stats", true))
    return c.fail("it normalises by its running mean and variance, which is not supported");
  if (c.names("running_mean") || c.names("running_var"))
    return c.fail("its running statistics would not be updated; track_running_stats=False has none");
  return c.rank("input") < 3 ? c.fail("expected samples, channels and further dimensions")
                             : overGroups(c, c.shape("input")[1]);
}

/// By the batch's mean and variance in training mode, which the running ones follow then; else by the running ones.
LogicalResult opBatchNorm(Call &c) {
  if (c.rank("input") < 2 || !c.isFloat("input") || c.type("input").getNumElements() == 0)
    return c.fail("expected floating point with channels that is not empty");
  const bool byBatch = c.isNormalisedByBatch;
  for (StringRef name : {"weight", "bias", "running_mean", "running_var"})
    if (c.isTensor(name) && (c.shape(name) != c.shape("input").slice(1, 1) || c.element(name) != c.element("input")))
      return c.fail("'" + name + "' does not fit");
  if (!byBatch && (!c.isTensor("running_mean") || !c.isTensor("running_var")))
    return c.fail("it has no running mean and variance");
  const int64_t count = c.type("input").getNumElements() / c.shape("input")[1];
  if (byBatch && count == 1)
    return c.fail("expected more than one value per channel in training");
  Build &b = c.b;
  Type element = c.element("input");
  auto wide = [&](Value value) { return value ? b.convert(value, computedIn(element)) : value; };
  Value x = wide(c.value("input")), scale = wide(c.optional("weight")), bias = wide(c.optional("bias"));
  frontend::BatchStatistics by;
  if (byBatch)
    by = frontend::batchStatistics(b, x, c.bufferNames.lookup("running_mean"), c.bufferNames.lookup("running_var"));
  if (byBatch && c.isTensor("running_mean") && c.isTensor("running_var")) {
    const frontend::BatchStatistics running = {wide(c.value("running_mean")), wide(c.value("running_var"))};
    auto next = frontend::nextStatistics(b, running, by, c.numberOr("momentum", 0.1), count);
    c.setNext("running_mean", b.convert(next.mean, element));
    c.setNext("running_var", b.convert(next.variance, element));
  } else if (!byBatch) {
    by = {wide(c.value("running_mean")), wide(c.value("running_var"))};
  }
  return c.set(b.convert(frontend::normaliseChannels(b, x, by, scale, bias, c.numberOr("eps", 1e-5)), element));
}

// --- Attention ---

/// Written out, as probabilities with dropout are not attention any more.
Value attentionWithDropout(Call &c, const frontend::AttentionArguments &a, double rate) {
  Build &b = c.b;
  const SmallVector<int64_t> q(shapeOf(a.query)), k(shapeOf(a.key));
  auto repeat = [&](Value x) { // each head of keys for its group of queries
    const int64_t width = shapeOf(x)[3];
    return b.reshape(b.broadcast(x, {k[0], k[1], q[1] / k[1], k[2], width}, {0, 1, 3, 4}), {q[0], q[1], k[2], width});
  };
  Value scores = b.scale(b.dot(a.query, repeat(a.key), {0, 1}, {0, 1}, {3}, {3}), a.scale), mask = a.mask;
  if (a.isCausal) {
    auto index = RankedTensorType::get(shapeOf(scores), b.builder.getI64Type());
    mask = b.compare(CompareDirection::Ge, b.iota(index, 2), b.iota(index, 3));
  }
  if (mask && tensorType(mask).getElementType().isInteger(1))
    scores = b.select(b.broadcastTo(mask, shapeOf(scores)), scores,
                      b.splatLike(scores, -std::numeric_limits<double>::infinity()));
  else if (mask)
    scores = b.add(scores, b.broadcastTo(mask, shapeOf(scores)));
  // A query that sees nothing has probabilities of 0, not of 0 / 0.
  Value top = b.reduce(ReduceKind::Max, scores, {3});
  Value isBlind = b.broadcastReduced(
      b.compare(CompareDirection::Eq, top, b.splatLike(top, -std::numeric_limits<double>::infinity())), shapeOf(scores),
      {3});
  Value zero = b.splatLike(scores, 0);
  scores = b.select(isBlind, zero, scores);
  Value probabilities = SoftmaxOp::create(b.builder, b.loc, scores.getType(), scores, 3);
  probabilities = b.select(isBlind, zero, probabilities);
  return b.dot(frontend::dropOut(b, probabilities, rate, c.step).first, repeat(a.value), {0, 1}, {0, 1}, {3}, {2});
}

LogicalResult opAttention(Call &c) {
  const double rate = c.numberOr("dropout_p", 0);
  if (!(rate >= 0 && rate < 1))
    return c.fail("expected a rate of dropout below 1");
  for (StringRef name : {"query", "key", "value"})
    if (!c.isFloat(name) || c.element(name) != c.element("query") || c.rank(name) < 2 || c.rank(name) > 4)
      return c.fail("'" + name + "' is not [B, H, T, D]");
  auto four = [&](StringRef name) {
    SmallVector<int64_t> shape(4 - c.rank(name), 1);
    llvm::append_range(shape, c.shape(name));
    return c.b.reshape(c.value(name), shape);
  };
  Value query = four("query"), key = four("key"), value = four("value");
  frontend::AttentionArguments a{query, key, value, c.optional("attn_mask"), c.flag("is_causal", false), 1};
  if (a.mask && a.isCausal)
    return c.fail("is_causal beside a mask");
  // One head of keys and values is broadcast.
  const bool isOne = shapeOf(key)[1] == 1 && shapeOf(value)[1] == 1;
  if (!c.flag("enable_gqa", false) && shapeOf(query)[1] != shapeOf(key)[1] && !isOne)
    return c.fail("queries and keys have different numbers of heads, and enable_gqa is not set");
  if (failed(frontend::checkAttention(c, a)))
    return failure();
  a.scale = c.numberOr("scale", 1.0 / std::sqrt(static_cast<double>(shapeOf(query)[3])));
  SmallVector<int64_t> shape(c.shape("query"));
  shape.back() = shapeOf(value)[3];
  return c.set(c.b.reshape(rate > 0 ? attentionWithDropout(c, a, rate) : frontend::attention(c.b, a), shape));
}

// --- Embeddings ---

LogicalResult opEmbedding(Call &c) {
  if (c.rank("weight") != 2 || c.isFloat("indices") || c.element("indices").isInteger(1))
    return c.fail("expected a table and integer indices");
  if (c.flag("scale_grad_by_freq", false) || c.flag("sparse", false))
    return c.fail("scale_grad_by_freq and sparse gradients are not supported");
  int64_t padding = c.integerOr("padding_idx", -1);
  if (padding >= c.shape("weight")[0])
    return c.fail("padding_idx is outside of the table");
  Value table = c.value("weight");
  if (auto said = c.step.padding.find(table); said != c.step.padding.end()) { // --padding-idx
    said->second.placed = true;
    padding = said->second.row;
  }
  const HostTensor *known = c.known("indices");
  if (known && llvm::any_of(known->ints, [&](int64_t row) { return row < 0 || row >= c.shape("weight")[0]; }))
    return c.fail("an index is outside of the table");
  // Positions that follow each other are rows that do.
  if (auto first = known && padding < 0 ? frontend::consecutiveFrom(known, c.shape("weight")[0]) : std::nullopt) {
    SmallVector<int64_t> shape(known->shape());
    shape.push_back(c.shape("weight")[1]);
    Value rows = c.b.slice(table, {*first, 0}, {*first + known->size(), c.shape("weight")[1]});
    return c.set(c.b.reshape(rows, shape));
  }
  Value indices = c.value("indices");
  return c.set(c.b.gatherRows(table, indices, padding >= 0 ? std::optional(padding) : std::nullopt));
}

/// Bags of indices: rows of a matrix, or what lies between offsets, which must be known and make bags of one size.
std::optional<std::pair<int64_t, int64_t>> bagsOf(Call &c) {
  if (c.rank("indices") == 2)
    return std::pair(c.shape("indices")[0], c.shape("indices")[1]);
  const HostTensor *offsets = c.rank("indices") == 1 ? c.known("offsets") : nullptr;
  if (!offsets || offsets->isFloat() || offsets->shape().size() != 1)
    return std::nullopt;
  const int64_t all = c.shape("indices")[0];
  SmallVector<int64_t> ends(offsets->ints.begin(), offsets->ints.end());
  if (!c.flag("include_last_offset", false))
    ends.push_back(all);
  const auto bags = static_cast<int64_t>(ends.size()) - 1;
  if (bags < 1 || all % bags != 0)
    return std::nullopt;
  for (auto [i, end] : llvm::enumerate(ends))
    if (end != static_cast<int64_t>(i) * (all / bags))
      return std::nullopt;
  return std::pair(bags, all / bags);
}

/// The row that counts in no bag; the overload that is named after it counts a negative one from the end.
FailureOr<std::optional<int64_t>> paddingOfBags(Call &c) {
  const bool isWrapped = StringRef(c.node.target).ends_with(".padding_idx");
  if (isWrapped && !c.has("padding_idx"))
    return std::optional<int64_t>();
  const int64_t given = c.integerOr("padding_idx", -1);
  if (!isWrapped && given < 0)
    return std::optional<int64_t>();
  auto row = axisOf(given, c.shape("weight")[0]);
  if (!row)
    return c.fail("padding_idx is outside of the table");
  return row;
}

LogicalResult opEmbeddingBag(Call &c) {
  const int64_t mode = c.integerOr("mode", 0); // sum, mean, max
  if (c.rank("weight") != 2 || c.isFloat("indices") || c.element("indices").isInteger(1) || mode < 0 || mode > 2)
    return c.fail("expected a table, integer indices and a mode");
  if (c.flag("scale_grad_by_freq", false) || c.flag("sparse", false))
    return c.fail("scale_grad_by_freq and sparse gradients are not supported");
  if (c.wants(1) || c.wants(2) || c.wants(3))
    return c.fail("results beyond the first are not supported");
  auto padding = paddingOfBags(c);
  if (failed(padding))
    return failure();
  auto bags = bagsOf(c);
  if (!bags || bags->second == 0)
    return c.fail("expected offsets that are known and make bags of one size");
  const int64_t width = c.shape("weight")[1];
  auto indices = frontend::checkedIndices(c, c.at("indices"), c.shape("weight")[0]);
  if (failed(indices))
    return failure();
  if (!countElements({bags->first, bags->second, width}))
    return c.fail("the result is too large");
  Build &b = c.b;
  const SmallVector<int64_t> bagged = {bags->first, bags->second};
  Value places = b.reshape(*indices, bagged), rows = b.gatherRows(c.value("weight"), places, *padding);
  if (c.isTensor("per_sample_weights")) {
    if (mode != 0 || c.element("per_sample_weights") != c.element("weight") ||
        c.shape("per_sample_weights") != c.shape("indices"))
      return c.fail("the weights of samples do not fit");
    Value weights = b.reshape(c.value("per_sample_weights"), bagged);
    rows = b.mul(rows, b.broadcast(weights, shapeOf(rows), {0, 1}));
  }
  Value count; // of each bag, padding left out
  if (*padding) {
    Value counts = b.compare(CompareDirection::Ne, places, b.splatLike(places, static_cast<double>(**padding)));
    const double nothing = mode == 2 ? -std::numeric_limits<double>::infinity() : 0;
    rows = b.select(b.broadcast(counts, shapeOf(rows), {0, 1}), rows, b.splatLike(rows, nothing));
    count = b.sum(b.convert(counts, c.element("weight")), {1});
    count = b.broadcast(count, {bags->first, width}, {0});
  }
  if (mode == 2) { // the first maximum has the gradient; a bag of nothing is 0
    Value most = frontend::reduceWindows(b, ReduceKind::Max, rows, {1});
    return c.set(count ? b.select(frontend::compareWith(b, CompareDirection::Gt, count, 0), most, b.splatLike(most, 0))
                       : most);
  }
  if (mode == 0)
    return c.set(b.sum(rows, {1}));
  return c.set(count ? b.div(b.sum(rows, {1}), b.max(count, b.splatLike(count, 1))) : frontend::mean(b, rows, {1}));
}

const OpRow kNeuralOps[] = {
    {"aten.batch_norm.default", opBatchNorm, "input"},
    {"aten.embedding.default", opEmbedding, "weight,indices"},
    {"aten.embedding_bag.default", opEmbeddingBag, "weight,indices,offsets"},
    {"aten.embedding_bag.padding_idx", opEmbeddingBag, "weight,indices,offsets"},
    {"aten._embedding_bag.default", opEmbeddingBag, "weight,indices,offsets"},
    {"aten._embedding_bag_forward_only.default", opEmbeddingBag, "weight,indices,offsets"},
    {"aten.group_norm.default", opGroupNorm, "input"},
    {"aten.instance_norm.default", opInstanceNorm, "input"},
    {"aten.layer_norm.default", opLayerNorm, "input"},
    {"aten.log_softmax.int", opSoftmax<true>},
    {"aten._log_softmax.default", opSoftmax<true>},
    {"aten.native_group_norm.default", opGroupNorm, "input"},
    {"aten.native_layer_norm.default", opLayerNorm, "input"},
    {"aten.rms_norm.default", opRmsNorm, "input"},
    {"aten.scaled_dot_product_attention.default", opAttention, "query,key,value"},
    {"aten.softmax.int", opSoftmax<false>},
    {"aten.special_log_softmax.default", opSoftmax<true>},
    {"aten.special_softmax.default", opSoftmax<false>},
    {"aten._softmax.default", opSoftmax<false>},
};
} // namespace

llvm::ArrayRef<OpRow> neuralOps() { return kNeuralOps; }

} // namespace tessera::pt2
