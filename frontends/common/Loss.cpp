//===- Loss.cpp - losses that frameworks have -------------------------------===//

#include "frontends/common/Loss.h"

#include "compiler/dialect/train/Loss.h"
#include "frontends/common/Neural.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

static Value isCounted(Build &b, Value targets, IntegerAttr ignored) {
  return b.compare(CompareDirection::Ne, targets, b.splatLike(targets, static_cast<double>(ignored.getInt())));
}

Value pickedLoss(Build &b, Value scores, Value targets, IntegerAttr ignored) {
  Value wide = b.broadcast(b.convert(targets, b.builder.getI64Type()), shapeOf(scores), {0});
  Value hit = b.compare(CompareDirection::Eq, wide, b.iota(tensorType(wide), 1));
  if (ignored)
    hit = b.mul(hit, isCounted(b, wide, ignored));
  return b.neg(b.sum(b.select(hit, scores, b.splatLike(scores, 0)), {1}));
}

Value targetWeights(Build &b, Value weights, Value targets, IntegerAttr ignored) {
  if (!ignored)
    return b.gatherRows(weights, targets);
  Value counts = isCounted(b, targets, ignored);
  Value picked = b.gatherRows(weights, b.select(counts, targets, b.splatLike(targets, 0)));
  return b.select(counts, picked, b.splatLike(picked, 0));
}

Value reduceRows(Build &b, Value rows, Value weights, Value targets, IntegerAttr ignored, Reduction reduction) {
  Value total = b.sumAll(rows);
  if (reduction == Reduction::Sum)
    return total;
  Value count = weights ? b.sumAll(weights)
                        : CountValidOp::create(b.builder, b.loc, tensorType(total), targets, ignored).getResult();
  return b.div(total, count);
}

Value reduceLoss(Build &b, Value each, Reduction reduction) {
  if (reduction == Reduction::None)
    return each;
  if (reduction == Reduction::Sum)
    return b.sumAll(each);
  return mean(b, each, llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shapeOf(each).size()))));
}

Value binaryCrossEntropy(Build &b, Value x, Value target) {
  auto stopped = [&](Value value) { return StopGradientOp::create(b.builder, b.loc, value).getResult(); };
  auto bounded = [&](Value logarithm) { return atLeast(b, logarithm, -100); };
  Value fixed = stopped(x), one = b.splatLike(x, 1);
  Value hit = bounded(b.unary<LogOp>(fixed)), miss = bounded(b.unary<Log1pOp>(b.neg(fixed)));
  Value loss = b.sub(b.mul(b.sub(target, one), miss), b.mul(target, hit));
  // Its slope in x is written beside it, times what is 0: that of the bounded logarithms would be another.
  Value spread = b.mul(b.sub(one, fixed), fixed);
  Value slope = stopped(b.div(b.sub(fixed, target), atLeast(b, spread, 1e-12)));
  return b.add(loss, b.mul(b.sub(x, fixed), slope));
}

Value distance(Build &b, Value x, int64_t dim, double p) {
  auto constant = [&](Value like, double value) { return b.splatLike(like, value); };
  if (p == 0) {
    Value differs = b.compare(CompareDirection::Ne, x, constant(x, 0));
    return b.sum(b.convert(differs, tensorType(x).getElementType()), {dim});
  }
  Value size = b.unary<AbsOp>(x);
  if (p == 1)
    return b.sum(size, {dim});
  if (std::isinf(p))
    return b.reduce(ReduceKind::Max, size, {dim});
  // Powers of 0 have no slope: what has the norm 0 does not go through them.
  auto isZero = [&](Value value) { return b.compare(CompareDirection::Eq, value, constant(value, 0)); };
  Value power;
  if (p == 2) {
    power = b.mul(x, x);
  } else {
    Value none = isZero(size);
    power = b.select(none, constant(size, 0), b.pow(b.select(none, constant(size, 1), size), constant(size, p)));
  }
  Value sum = b.sum(power, {dim}), none = isZero(sum), safe = b.select(none, constant(sum, 1), sum);
  Value root = p == 2 ? b.unary<SqrtOp>(safe) : b.pow(safe, constant(safe, 1 / p));
  return b.select(none, constant(root, 0), root);
}

Value cosineSimilarity(Build &b, Value x, Value y, int64_t dim, double epsilon) {
  auto unit = [&](Value vector) {
    Value norm = distance(b, vector, dim, 2);
    Value missing = atLeast(b, b.sub(b.splatLike(norm, epsilon), norm), 0);
    norm = b.add(norm, StopGradientOp::create(b.builder, b.loc, missing));
    return b.div(vector, b.broadcastReduced(norm, shapeOf(vector), {dim}));
  };
  return b.sum(b.mul(unit(x), unit(y)), {dim});
}

} // namespace tessera::frontend
