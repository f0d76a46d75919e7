//===- OpsDistance.cpp - losses and distances of numbers and vectors ----------===//
//
// Formulas and slopes are those of aten/src/ATen/native/Loss.cpp and Distance.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/LossCall.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::atLeast;
using frontend::plus;

/// Tensors of floats by their names, in the type to compute in and their common shape.
template <size_t count>
FailureOr<std::array<Value, count>> together(Call &c, const std::array<StringRef, count> &names) {
  SmallVector<int64_t> common;
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail("the result is not floating point");
  for (StringRef name : names) {
    auto shape = broadcastShape(common, c.shape(name));
    if (!shape)
      return c.fail("the shapes do not broadcast");
    common = *shape;
  }
  std::array<Value, count> made;
  for (auto [value, name] : llvm::zip_equal(made, names))
    value = c.b.broadcastTo(c.b.convert(c.value(name), computedIn(element)), common);
  return made;
}

/// Reduces losses of elements.
LogicalResult finish(Call &c, Value each) {
  auto reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  if (*reduction == Reduction::Mean && tensorType(each).getNumElements() == 0)
    return c.fail("nothing is averaged");
  return c.set(c.b.convert(frontend::reduceLoss(c.b, each, *reduction), c.resultElement()));
}

/// make(builder, x, target), of each element.
template <typename Make> LogicalResult ofPairs(Call &c, Make make) {
  auto both = together<2>(c, {c.isTensor("self") ? "self" : "input", "target"});
  return failed(both) ? failure() : finish(c, make(c.b, (*both)[0], (*both)[1]));
}

Value isEqual(Build &b, Value x, double number) { return frontend::compareWith(b, CompareDirection::Eq, x, number); }
Value zeroLike(Build &b, Value x) { return b.splatLike(x, 0); }

// --- Of numbers ---

LogicalResult opMse(Call &c) {
  return ofPairs(c, [](Build &b, Value x, Value y) {
    Value difference = b.sub(x, y);
    return b.mul(difference, difference);
  });
}
LogicalResult opL1(Call &c) {
  return ofPairs(c, [](Build &b, Value x, Value y) { return b.unary<AbsOp>(b.sub(x, y)); });
}
/// Where |x - y| is below `beta`, `curve` times its square, else `slope` times what is above half of `beta`.
LogicalResult rounded(Call &c, double beta, double curve, double slope) {
  return ofPairs(c, [&](Build &b, Value x, Value y) {
    Value difference = b.sub(x, y), size = b.unary<AbsOp>(difference);
    Value inner = b.scale(b.mul(difference, difference), curve), outer = b.scale(plus(b, size, -0.5 * beta), slope);
    return b.select(frontend::compareWith(b, CompareDirection::Lt, size, beta), inner, outer);
  });
}
LogicalResult opSmoothL1(Call &c) {
  const double beta = c.numberOr("beta", 1);
  if (!(beta >= 0))
    return c.fail("beta is below 0");
  if (beta > 0)
    return rounded(c, beta, 0.5 / beta, 1);
  return ofPairs(c, [](Build &b, Value x, Value y) { // PyTorch's slopes where x = y are -1 in both
    Value same = StopGradientOp::create(b.builder, b.loc, b.add(x, y)), tie = b.sub(same, b.add(x, y));
    Value below = b.select(b.compare(CompareDirection::Lt, x, y), b.sub(y, x), tie);
    return b.select(b.compare(CompareDirection::Gt, x, y), b.sub(x, y), below);
  });
}

LogicalResult opHuber(Call &c) {
  const double delta = c.numberOr("delta", 1);
  return delta > 0 ? rounded(c, delta, 0.5, delta) : c.fail("delta is not above 0");
}

/// Multiplies with 'weight' if there is one; null if the call failed.
Value weighted(Call &c, Value each) {
  if (!c.isTensor("weight"))
    return each;
  auto shape = broadcastShape(shapeOf(each), c.shape("weight"));
  if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(each) || !c.isFloat("weight")) {
    (void)c.fail("the weights do not broadcast to the input");
    return {};
  }
  Value weight = c.b.convert(c.value("weight"), tensorType(each).getElementType());
  return c.b.mul(each, c.b.broadcastTo(weight, *shape));
}

LogicalResult opBinary(Call &c) {
  auto both = together<2>(c, {"self", "target"});
  if (failed(both))
    return failure();
  Value each = weighted(c, frontend::binaryCrossEntropy(c.b, (*both)[0], (*both)[1]));
  return each ? finish(c, each) : failure();
}

/// (1 - t) x + w softplus(-x), where w is 1, or (pos_weight - 1) t + 1.
LogicalResult opBinaryOfLogits(Call &c) {
  auto both = together<2>(c, {"self", "target"});
  if (failed(both))
    return failure();
  Build &b = c.b;
  auto [x, target] = *both;
  Value one = b.splatLike(x, 1), curve = b.unary<SoftplusOp>(b.neg(x));
  if (c.isTensor("pos_weight")) {
    auto shape = broadcastShape(shapeOf(x), c.shape("pos_weight"));
    if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(x) || !c.isFloat("pos_weight"))
      return c.fail("pos_weight does not broadcast to the input");
    Value weight = b.broadcastTo(b.convert(c.value("pos_weight"), tensorType(x).getElementType()), *shape);
    curve = b.mul(curve, b.add(b.mul(b.sub(weight, one), target), one));
  }
  Value each = weighted(c, b.add(b.mul(b.sub(one, target), x), curve));
  return each ? finish(c, each) : failure();
}

/// t (log t - x), where 0 log 0 is 0; of targets that are logarithms exp(t) (t - x).
LogicalResult opKlDiv(Call &c) {
  return ofPairs(c, [&](Build &b, Value x, Value target) {
    if (c.flag("log_target", false))
      return b.mul(b.exp(target), b.sub(target, x));
    Value isZero = isEqual(b, target, 0), safe = b.select(isZero, b.splatLike(target, 1), target);
    Value entropy = b.select(isZero, zeroLike(b, target), b.mul(target, b.unary<LogOp>(safe)));
    return b.sub(entropy, b.mul(target, x));
  });
}

/// Written so that it does not overflow.
LogicalResult opSoftMargin(Call &c) {
  return ofPairs(c, [](Build &b, Value x, Value target) { return b.unary<SoftplusOp>(b.neg(b.mul(target, x))); });
}

/// x where the target is not -1, plus max(0, margin - x) where it is not 1.
LogicalResult opHingeEmbedding(Call &c) {
  const double margin = c.numberOr("margin", 1);
  return ofPairs(c, [&](Build &b, Value x, Value target) {
    Value zero = zeroLike(b, x), excess = atLeast(b, plus(b, b.neg(x), margin), 0);
    return b.add(b.select(isEqual(b, target, 1), zero, excess), b.select(isEqual(b, target, -1), zero, x));
  });
}

/// exp(x) - t x, or x - t log(x + eps); `full` adds Stirling's formula for log t! where t is above 1.
LogicalResult opPoisson(Call &c) {
  const double epsilon = c.numberOr("eps", 1e-8);
  const bool isLogarithm = c.flag("log_input", true), isFull = c.flag("full", false);
  return ofPairs(c, [&](Build &b, Value x, Value target) {
    Value loss =
        isLogarithm ? b.sub(b.exp(x), b.mul(target, x)) : b.sub(x, b.mul(target, b.unary<LogOp>(plus(b, x, epsilon))));
    if (!isFull)
      return loss;
    Value counts = frontend::compareWith(b, CompareDirection::Gt, target, 1);
    Value safe = b.select(counts, target, b.splatLike(target, 2)), logarithm = b.unary<LogOp>(safe);
    Value stirling = b.add(b.sub(b.mul(safe, logarithm), safe), // log(2 pi t) / 2
                           b.scale(plus(b, logarithm, std::log(2 * M_PI)), 0.5));
    return b.add(loss, b.select(counts, stirling, zeroLike(b, stirling)));
  });
}

LogicalResult opMarginRanking(Call &c) {
  auto all = together<3>(c, {"input1", "input2", "target"});
  if (failed(all))
    return failure();
  auto [x, y, target] = *all;
  Build &b = c.b;
  return finish(c, atLeast(b, plus(b, b.neg(b.mul(target, b.sub(x, y))), c.numberOr("margin", 0)), 0));
}

// --- Of vectors ---

bool hasVectors(Value x) { return !shapeOf(x).empty() && shapeOf(x).back() > 0; }

/// Of the last dimension.
Value pairDistance(Build &b, Value x, Value y, double p, double epsilon) {
  return frontend::distance(b, plus(b, b.sub(x, y), epsilon), static_cast<int64_t>(shapeOf(x).size()) - 1, p);
}

LogicalResult opCosineSimilarity(Call &c) {
  auto both = together<2>(c, {"x1", "x2"});
  if (failed(both))
    return failure();
  auto dim = axisOf(c.integerOr("dim", 1), static_cast<int64_t>(shapeOf((*both)[0]).size()));
  if (!dim || shapeOf((*both)[0]).empty() || shapeOf((*both)[0])[*dim] == 0)
    return c.fail("the dimension is out of range or empty");
  Value result = frontend::cosineSimilarity(c.b, (*both)[0], (*both)[1], *dim, c.numberOr("eps", 1e-8));
  return c.set(c.b.convert(result, c.resultElement()));
}

LogicalResult opPairwiseDistance(Call &c) {
  const double p = c.numberOr("p", 2);
  auto both = together<2>(c, {"x1", "x2"});
  if (failed(both))
    return failure();
  auto [x, y] = *both;
  if (!(p >= 0) || !hasVectors(x))
    return c.fail("p is below 0, or the vectors are empty");
  Value result = pairDistance(c.b, x, y, p, c.numberOr("eps", 1e-6));
  if (c.flag("keepdim", false)) {
    SmallVector<int64_t> shape(shapeOf(x));
    shape.back() = 1;
    result = c.b.reshape(result, shape);
  }
  return c.set(c.b.convert(result, c.resultElement()));
}

/// 1 - cos where the target is 1, max(0, cos - margin) where it is -1.
LogicalResult opCosineEmbedding(Call &c) {
  auto both = together<2>(c, {"input1", "input2"});
  if (failed(both))
    return failure();
  auto [x, y] = *both;
  const auto dim = static_cast<int64_t>(c.rank("target"));
  if (dim > 1 || static_cast<int64_t>(shapeOf(x).size()) != dim + 1 || !hasVectors(x) ||
      c.shape("target") != shapeOf(x).drop_back())
    return c.fail("the target does not fit the inputs");
  Build &b = c.b;
  auto square = [&](Value a) { return plus(b, b.sum(b.mul(a, a), {dim}), 1e-12); };
  Value cosine = b.div(b.sum(b.mul(x, y), {dim}), b.unary<SqrtOp>(b.mul(square(x), square(y))));
  Value target = b.convert(c.value("target"), tensorType(x).getElementType()), zero = zeroLike(b, cosine);
  Value near = b.sub(b.splatLike(cosine, 1), cosine), far = atLeast(b, plus(b, cosine, -c.numberOr("margin", 0)), 0);
  return finish(c, b.add(b.select(isEqual(b, target, 1), near, zero), b.select(isEqual(b, target, -1), far, zero)));
}

LogicalResult opTripletMargin(Call &c) {
  const double p = c.numberOr("p", 2), epsilon = c.numberOr("eps", 1e-6);
  auto all = together<3>(c, {"anchor", "positive", "negative"});
  if (failed(all))
    return failure();
  auto [anchor, positive, negative] = *all;
  if (!(p >= 0) || !hasVectors(anchor))
    return c.fail("p is below 0, or the vectors are empty");
  Build &b = c.b;
  Value near = pairDistance(b, anchor, positive, p, epsilon), far = pairDistance(b, anchor, negative, p, epsilon);
  if (c.flag("swap", false))
    far = frontend::minimum(b, far, pairDistance(b, positive, negative, p, epsilon));
  return finish(c, atLeast(b, plus(b, b.sub(near, far), c.numberOr("margin", 1)), 0));
}

/// Distances of all pairs of vectors, [..., P, M] and [..., R, M].
LogicalResult opCdist(Call &c) {
  const double p = c.numberOr("p", 2);
  Type element = c.resultElement();
  ArrayRef<int64_t> x = c.shape("x1"), y = c.shape("x2");
  if (!isa_and_nonnull<FloatType>(element) || x.size() < 2 || y.size() < 2 || x.back() != y.back() || x.back() == 0 ||
      !(p >= 0))
    return c.fail("expected vectors of one size that are not empty, and p of 0 or above");
  auto leading = broadcastShape(x.drop_back(2), y.drop_back(2));
  if (!leading)
    return c.fail("the shapes do not broadcast");
  SmallVector<int64_t> shape(*leading), left(x), right(y);
  shape.append({x[x.size() - 2], y[y.size() - 2], x.back()});
  left.insert(left.end() - 1, 1);
  right.insert(right.end() - 2, 1);
  if (!countElements(shape))
    return c.fail("the result is too large");
  Build &b = c.b;
  auto spread = [&](StringRef name, ArrayRef<int64_t> from) {
    return b.broadcastTo(b.reshape(b.convert(c.value(name), computedIn(element)), from), shape);
  };
  return c.set(b.convert(pairDistance(b, spread("x1", left), spread("x2", right), p, 0), element));
}

/// Distances of the vectors of each pair of rows, the first one's before the second one's.
LogicalResult opPdist(Call &c) {
  const double p = c.numberOr("p", 2);
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element) || c.rank("self") != 2 || c.shape("self")[1] == 0 || !(p >= 0))
    return c.fail("expected rows that are not empty, and p of 0 or above");
  const int64_t rows = c.shape("self")[0];
  if (rows < 2 || rows * (rows - 1) / 2 > frontend::kMaxConstantElements)
    return c.fail("there are too few rows, or too many");
  SmallVector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i + 1; j < rows; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  Build &b = c.b;
  Value x = b.convert(c.value("self"), computedIn(element));
  Value result = pairDistance(b, frontend::takeAlong(b, x, 0, first), frontend::takeAlong(b, x, 0, second), p, 0);
  return c.set(b.convert(result, element));
}

const OpRow kDistanceOps[] = {
    {"aten._cdist_forward.default", opCdist, "x1,x2"},
    {"aten._pdist_forward.default", opPdist},
    {"aten.binary_cross_entropy.default", opBinary, "self,target"},
    {"aten.binary_cross_entropy_with_logits.default", opBinaryOfLogits, "self,target"},
    {"aten.cdist.default", opCdist, "x1,x2"},
    {"aten.cosine_embedding_loss.default", opCosineEmbedding, "input1,input2,target"},
    {"aten.cosine_similarity.default", opCosineSimilarity, "x1,x2"},
    {"aten.hinge_embedding_loss.default", opHingeEmbedding, "self,target"},
    {"aten.huber_loss.default", opHuber, "self,target"},
    {"aten.kl_div.default", opKlDiv, "self,target"},
    {"aten.l1_loss.default", opL1, "self,target"},
    {"aten.margin_ranking_loss.default", opMarginRanking, "input1,input2,target"},
    {"aten.mse_loss.default", opMse, "self,target"},
    {"aten.pairwise_distance.default", opPairwiseDistance, "x1,x2"},
    {"aten.pdist.default", opPdist},
    {"aten.poisson_nll_loss.default", opPoisson, "input,target"},
    {"aten.smooth_l1_loss.default", opSmoothL1, "self,target"},
    {"aten.soft_margin_loss.default", opSoftMargin, "self,target"},
    {"aten.triplet_margin_loss.default", opTripletMargin, "anchor,positive,negative"},
};
} // namespace

llvm::ArrayRef<OpRow> distanceOps() { return kDistanceOps; }

} // namespace tessera::pt2
