//===- Neural.cpp - whole ops that frameworks have -------------------------===//

#include "frontends/common/Neural.h"

#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Program.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

Value atLeast(Build &b, Value x, double bound) {
  Value limit = b.splatLike(x, bound);
  return b.select(b.compare(CompareDirection::Le, x, limit), limit, x);
}

Value atMost(Build &b, Value x, double bound) {
  Value limit = b.splatLike(x, bound);
  return b.select(b.compare(CompareDirection::Ge, x, limit), limit, x);
}

Value minimum(Build &b, Value x, Value y) {
  Type element = tensorType(x).getElementType();
  if (element.isInteger(1))
    return b.mul(x, y);
  // The least integer has no negative, nor has an unsigned one.
  if (!isa<FloatType>(element))
    return b.select(b.compare(CompareDirection::Lt, x, y), x, y);
  return b.neg(b.max(b.neg(x), b.neg(y)));
}

/// Where a quotient of integers, which goes towards 0, is not rounded down: what it leaves has not the divisor's sign.
static Value isRoundedUp(Build &b, Value remainder, Value y) {
  Value zero = b.splatLike(remainder, 0.0);
  Value isNegative = b.compare(CompareDirection::Lt, remainder, zero),
        isDivisorNegative = b.compare(CompareDirection::Lt, y, zero),
        differs = b.compare(CompareDirection::Ne, isNegative, isDivisorNegative),
        isRest = b.compare(CompareDirection::Ne, remainder, zero);
  return b.mul(differs, isRest);
}

Value floorDivide(Build &b, Value x, Value y) {
  Value quotient = b.div(x, y), remainder = b.sub(x, b.mul(quotient, y));
  return b.select(isRoundedUp(b, remainder, y), b.sub(quotient, b.splatLike(quotient, 1.0)), quotient);
}

Value floorRemainder(Build &b, Value x, Value y) {
  Value remainder = b.sub(x, b.mul(b.div(x, y), y));
  return b.select(isRoundedUp(b, remainder, y), b.add(remainder, y), remainder);
}

Value mean(Build &b, Value x, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(x)[dim];
  Value sum = b.sum(x, dims);
  sum.getDefiningOp()->setAttr(kMean, b.builder.getUnitAttr());
  return b.scale(sum, 1.0 / static_cast<double>(count));
}

std::pair<Value, Value> dropOut(Build &b, Value x, double rate, Step &step) {
  Value seed = step.seed();
  auto numbers = RngUniformOp::create(b.builder, b.loc, tensorType(x).clone(b.builder.getF32Type()), seed, ValueRange{},
                                      step.randomStreams++, DenseI64ArrayAttr());
  if (step.mode != kEvaluationMode) // one that is on in evaluation mode is there to stay
    numbers->setAttr(kDropout, b.builder.getUnitAttr());
  Value keep = b.compare(CompareDirection::Ge, numbers, b.splatLike(numbers, rate));
  return {b.select(keep, b.scale(x, 1.0 / (1.0 - rate)), b.splatLike(x, 0.0)), keep};
}

Value logSumExp(Build &b, Value x, ArrayRef<int64_t> dims) {
  Value top = StopGradientOp::create(b.builder, b.loc, b.reduce(ReduceKind::Max, x, dims));
  // An infinite maximum is no shift: the difference would be no number.
  Value infinite = b.splatLike(top, std::numeric_limits<double>::infinity());
  Value isInfinite = b.compare(CompareDirection::Eq, b.unary<AbsOp>(top), infinite);
  top = b.select(isInfinite, b.splatLike(top, 0.0), top);
  Value shifted = b.sub(x, b.broadcastReduced(top, shapeOf(x), dims));
  return b.add(b.unary<LogOp>(b.sum(b.exp(shifted), dims)), top);
}

Value logSoftmax(Build &b, Value x, int64_t dim) {
  Value top = StopGradientOp::create(b.builder, b.loc, b.reduce(ReduceKind::Max, x, {dim}));
  Value shifted = b.sub(x, b.broadcastReduced(top, shapeOf(x), {dim}));
  Value lse = b.unary<LogOp>(b.sum(b.exp(shifted), {dim}));
  return b.sub(shifted, b.broadcastReduced(lse, shapeOf(x), {dim}));
}

LayerNormOp normaliseInner(Build &b, Value x, ArrayRef<int64_t> inner, NormMode mode, Value scale, Value bias,
                           double epsilon) {
  int64_t width = 1;
  for (int64_t size : inner)
    width *= size;
  SmallVector<int64_t> flat(shapeOf(x).drop_back(inner.size()));
  flat.push_back(width);
  for (Value *vector : {&scale, &bias})
    if (*vector)
      *vector = b.reshape(*vector, {width});
  Type element = tensorType(x).getElementType();
  auto statistics = RankedTensorType::get(ArrayRef<int64_t>(flat).drop_back(), accumulationType(element));
  return LayerNormOp::create(b.builder, b.loc, tensorType(x).clone(flat), statistics, statistics, mode,
                             b.reshape(x, flat), scale, bias, llvm::APFloat(epsilon));
}

LayerNormOp normaliseGroups(Build &b, Value x, int64_t groups, double epsilon) {
  const int64_t samples = shapeOf(x)[0], width = tensorType(x).getNumElements() / (samples * groups);
  Value grouped = b.reshape(x, {samples, groups, width});
  return normaliseInner(b, grouped, {width}, NormMode::Layer, Value(), Value(), epsilon);
}

BatchStatistics batchStatistics(Build &b, Value x, StringRef runningMean, StringRef runningVariance) {
  SmallVector<int64_t> dims;
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(shapeOf(x)))
    if (dim != 1) {
      dims.push_back(static_cast<int64_t>(dim));
      count *= size;
    }
  auto average = [&](Value of, StringRef buffer) {
    Value sum = b.sum(of, dims);
    sum.getDefiningOp()->setAttr(kStatistics, b.builder.getUnitAttr());
    if (!buffer.empty())
      sum.getDefiningOp()->setAttr(kRunning, b.builder.getStringAttr(buffer));
    return b.scale(sum, 1.0 / static_cast<double>(count));
  };
  Value mean = average(x, runningMean), centred = b.sub(x, b.broadcast(mean, shapeOf(x), {1}));
  return {mean, average(b.mul(centred, centred), runningVariance)};
}

BatchStatistics nextStatistics(Build &b, const BatchStatistics &running, const BatchStatistics &ofBatch,
                               double momentum, int64_t count) {
  auto next = [&](Value before, Value batch, double factor) {
    Value fixed = StopGradientOp::create(b.builder, b.loc, b.convert(batch, tensorType(before).getElementType()));
    return b.add(b.scale(fixed, momentum * factor), b.scale(before, 1.0 - momentum));
  };
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  return {next(running.mean, ofBatch.mean, 1.0), next(running.variance, ofBatch.variance, unbiased)};
}

Value normaliseChannels(Build &b, Value x, const BatchStatistics &by, Value scale, Value bias, double epsilon) {
  auto wide = [&](Value vector) { return b.broadcast(vector, shapeOf(x), {1}); };
  Value factor = b.unary<RsqrtOp>(b.add(by.variance, b.splatLike(by.variance, epsilon)));
  if (scale)
    factor = b.mul(factor, scale);
  Value centred = b.sub(x, wide(by.mean)), y = b.mul(centred, wide(factor));
  return bias ? b.add(y, wide(bias)) : y;
}

LogicalResult checkAttention(Call &n, AttentionArguments &a) {
  Build &b = n.b;
  ArrayRef<int64_t> q = shapeOf(a.query), k = shapeOf(a.key), v = shapeOf(a.value);
  if (q[0] != k[0] || k[0] != v[0] || k[1] != v[1] || k[1] == 0 || q[1] % k[1] != 0 || q[3] != k[3] || k[2] != v[2] ||
      q[3] == 0)
    return n.fail("query, key and value do not fit each other");
  if (a.mask) {
    Type element = tensorType(a.mask).getElementType();
    ArrayRef<int64_t> given = shapeOf(a.mask);
    SmallVector<int64_t> shape(4 - std::min<size_t>(given.size(), 4), 1);
    llvm::append_range(shape, given);
    auto common = broadcastShape(shape, {q[0], q[1], q[2], k[2]});
    if (!common || ArrayRef<int64_t>(*common) != ArrayRef<int64_t>({q[0], q[1], q[2], k[2]}) ||
        !(element.isInteger(1) || element == tensorType(a.query).getElementType()))
      return n.fail("mask of shape " + shapeText(given) + " does not fit query and key");
    a.mask = b.reshape(a.mask, shape);
    shape[3] = k[2];
    a.mask = b.broadcastTo(a.mask, shape);
  }
  if (!a.isCausal || q[2] == k[2])
    return success();
  // Frameworks align the diagonal at the upper left, train.attention at the lower right: the mask is written out.
  if (a.mask && !tensorType(a.mask).getElementType().isInteger(1))
    return n.fail("is_causal with an additive mask needs as many queries as keys");
  auto index = RankedTensorType::get({1, 1, q[2], k[2]}, b.builder.getI64Type());
  Value below = b.compare(CompareDirection::Ge, b.iota(index, 2), b.iota(index, 3));
  if (a.mask) {
    auto shape = broadcastShape(shapeOf(a.mask), shapeOf(below));
    below = b.mul(b.broadcastTo(a.mask, *shape), b.broadcastTo(below, *shape));
  }
  a.mask = below;
  a.isCausal = false;
  return success();
}

Value attention(Build &b, const AttentionArguments &a) {
  ArrayRef<int64_t> q = shapeOf(a.query);
  auto type = tensorType(a.query);
  auto made = AttentionOp::create(b.builder, b.loc, type.clone({q[0], q[1], q[2], shapeOf(a.value)[3]}),
                                  RankedTensorType::get({q[0], q[1], q[2]}, accumulationType(type.getElementType())),
                                  a.query, a.key, a.value, a.mask, /*begin=*/Value(), /*end=*/Value(),
                                  llvm::APFloat(a.scale), a.isCausal,
                                  /*window=*/IntegerAttr(), /*density=*/FloatAttr(), AttentionSplitAttr());
  return made.getResult();
}

Value classRows(Build &b, Value scores) {
  ArrayRef<int64_t> shape = shapeOf(scores);
  const auto rank = static_cast<int64_t>(shape.size());
  SmallVector<int64_t> permutation = {0};
  int64_t rows = shape[0];
  for (int64_t dim = 2; dim < rank; ++dim) {
    permutation.push_back(dim);
    rows *= shape[dim];
  }
  permutation.push_back(1);
  return b.reshape(rank == 2 ? scores : b.transpose(scores, permutation), {rows, shape[1]});
}

} // namespace tessera::frontend
