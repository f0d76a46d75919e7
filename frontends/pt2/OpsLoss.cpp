//===- OpsLoss.cpp - losses of classes that are part of a program -----------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/common/Loss.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/LossCall.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
// --- Classes by number ---

/// Scores [N, C, d…] (or [C]) and integer targets, as rows.
struct Classes {
  Value scores, targets, weights; ///< [R, C], [R], and [C] or null
  IntegerAttr ignored;
};

LogicalResult readClasses(Call &c, Classes &made) {
  const int64_t rank = c.rank("self");
  Build &b = c.b;
  SmallVector<int64_t> shape(c.shape("self"));
  if (rank < 1 || !c.isFloat("self") || c.isFloat("target") || c.element("target").isInteger(1))
    return c.fail("expected class scores and integer targets");
  if (rank == 1)
    shape.insert(shape.begin(), 1);
  SmallVector<int64_t> expected(shape);
  expected.erase(expected.begin() + 1);
  if (rank == 1)
    expected.clear();
  if (c.shape("target") != ArrayRef<int64_t>(expected) || c.type("self").getNumElements() == 0)
    return c.fail("targets of shape " + shapeText(c.shape("target")) + " do not fit scores of " +
                  shapeText(c.shape("self")));
  if (c.isTensor("weight") &&
      (c.shape("weight") != ArrayRef<int64_t>{shape[1]} || c.element("weight") != c.element("self")))
    return c.fail("the weights of classes do not fit");
  made.scores = frontend::classRows(b, b.reshape(c.value("self"), shape));
  made.targets = b.reshape(c.value("target"), {shapeOf(made.scores)[0]});
  if (c.isTensor("weight"))
    made.weights = b.convert(c.value("weight"), computedIn(c.element("self")));
  made.ignored = b.builder.getI64IntegerAttr(c.integerOr("ignore_index", -100));
  return success();
}

/// Weights losses of rows, and reduces them.
LogicalResult finishClasses(Call &c, const Classes &classes, Value rows, Value weights) {
  auto reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  Build &b = c.b;
  Value result = *reduction == Reduction::None
                     ? b.reshape(rows, c.shape("target"))
                     : frontend::reduceRows(b, rows, weights, classes.targets, classes.ignored, *reduction);
  return c.set(b.convert(result, c.element("self")));
}

LogicalResult opNll(Call &c) {
  Classes classes;
  if (c.wants(1))
    return c.fail("the total weight is not supported as a result");
  if (failed(readClasses(c, classes)))
    return failure();
  Build &b = c.b;
  Value scores = b.convert(classes.scores, computedIn(c.element("self"))), weights;
  Value rows = frontend::pickedLoss(b, scores, classes.targets, classes.ignored);
  if (classes.weights) {
    weights = frontend::targetWeights(b, classes.weights, classes.targets, classes.ignored);
    rows = b.mul(rows, weights);
  }
  return finishClasses(c, classes, rows, weights);
}

/// (1 - s) w[t] (-log p[t]) + s / C sum over classes of w (-log p), where the target counts.
Value smoothed(Build &b, const Classes &classes, Value weights, double smoothing) {
  Value logits = b.convert(classes.scores, tensorType(weights).getElementType());
  Value logarithms = frontend::logSoftmax(b, logits, 1);
  Value picked = frontend::pickedLoss(b, logarithms, classes.targets, classes.ignored);
  Value all = b.neg(b.sum(b.mul(logarithms, b.broadcast(classes.weights, shapeOf(logarithms), {1})), {1}));
  Value counts = b.compare(CompareDirection::Ne, classes.targets,
                           b.splatLike(classes.targets, static_cast<double>(classes.ignored.getInt())));
  all = b.select(counts, all, b.splatLike(all, 0));
  const auto count = static_cast<double>(shapeOf(logits)[1]);
  return b.add(b.scale(b.mul(picked, weights), 1 - smoothing), b.scale(all, smoothing / count));
}

/// Targets that are probabilities, [N, C, d…] as the scores: -sum of w t log p, the mean over rows.
LogicalResult byProbabilities(Call &c, double smoothing) {
  if (c.shape("target") != c.shape("self") || c.element("target") != c.element("self") || !c.isFloat("self") ||
      c.rank("self") < 1 || c.type("self").getNumElements() == 0)
    return c.fail("expected class scores, and targets that are as many probabilities");
  auto reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  Build &b = c.b;
  Type element = c.element("self"), wide = computedIn(element);
  const int64_t dim = c.rank("self") == 1 ? 0 : 1, classes = c.shape("self")[dim];
  if (c.isTensor("weight") && (c.shape("weight") != ArrayRef<int64_t>{classes} || c.element("weight") != element))
    return c.fail("the weights of classes do not fit");
  Value target = b.convert(c.value("target"), wide);
  if (smoothing > 0)
    target = frontend::plus(b, b.scale(target, 1 - smoothing), smoothing / static_cast<double>(classes));
  Value each = b.mul(frontend::logSoftmax(b, b.convert(c.value("self"), wide), dim), target);
  if (c.isTensor("weight"))
    each = b.mul(each, b.broadcast(b.convert(c.value("weight"), wide), shapeOf(each), {dim}));
  Value rows = b.neg(b.sum(each, {dim}));
  return c.set(b.convert(frontend::reduceLoss(b, rows, *reduction), element));
}

LogicalResult opCrossEntropy(Call &c) {
  const double smoothing = c.numberOr("label_smoothing", 0);
  if (!(smoothing >= 0 && smoothing <= 1))
    return c.fail("label_smoothing is outside of 0 to 1");
  if (c.isFloat("target"))
    return byProbabilities(c, smoothing);
  Classes classes;
  if (failed(readClasses(c, classes)))
    return failure();
  Build &b = c.b;
  Value weights;
  if (classes.weights)
    weights = frontend::targetWeights(b, classes.weights, classes.targets, classes.ignored);
  if (weights && smoothing > 0)
    return finishClasses(c, classes, smoothed(b, classes, weights, smoothing), weights);
  auto perRow = RankedTensorType::get(shapeOf(classes.targets), accumulationType(c.element("self")));
  auto loss = CrossEntropyOp::create(b.builder, b.loc, perRow, perRow, classes.scores, classes.targets, classes.ignored,
                                     llvm::APFloat(smoothing));
  Value rows = loss.getLoss();
  return finishClasses(c, classes, weights ? b.mul(rows, weights) : rows, weights);
}

// --- Margins between classes ---

/// What is above 0; its slope is 0 at 0.
Value above(Build &b, Value x) { return frontend::atLeast(b, x, 0); }

/// The mean over classes of max(0, margin - x[t] + x[j])^p w[t], without the target's own.
LogicalResult opMultiMargin(Call &c) {
  const double p = c.numberOr("p", 1), margin = c.numberOr("margin", 1);
  Classes classes;
  if (p != 1 && p != 2)
    return c.fail("p is neither 1 nor 2");
  if (c.rank("self") > 2)
    return c.fail("expected scores of one sample or of several");
  if (failed(readClasses(c, classes)))
    return failure();
  auto reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  Build &b = c.b;
  Value x = b.convert(classes.scores, computedIn(c.element("self")));
  Value own = b.neg(frontend::pickedLoss(b, x, classes.targets, IntegerAttr()));
  Value wide = b.broadcast(b.convert(classes.targets, b.builder.getI64Type()), shapeOf(x), {0});
  Value isOther = b.compare(CompareDirection::Ne, wide, b.iota(tensorType(wide), 1));
  Value excess = above(b, frontend::plus(b, b.sub(x, b.broadcast(own, shapeOf(x), {0})), margin));
  Value each = b.select(isOther, p == 1 ? excess : b.mul(excess, excess), b.splatLike(excess, 0));
  Value rows = b.scale(b.sum(each, {1}), 1.0 / static_cast<double>(shapeOf(x)[1]));
  if (classes.weights)
    rows = b.mul(rows, frontend::targetWeights(b, classes.weights, classes.targets, IntegerAttr()));
  if (*reduction == Reduction::None)
    rows = b.reshape(rows, c.shape("target"));
  return c.set(b.convert(frontend::reduceLoss(b, rows, *reduction), c.element("self")));
}

/// Targets are classes up to the first one below 0. The mean over classes of the sum, over targets t and classes j that
/// are none, of max(0, 1 - x[t] + x[j]).
LogicalResult opMultiLabelMargin(Call &c) {
  const int64_t rank = c.rank("self");
  auto reduction = reductionOf(c);
  if (failed(reduction))
    return failure();
  if (c.wants(1))
    return c.fail("the targets as marks are not supported as a result");
  if (rank < 1 || rank > 2 || c.shape("target") != c.shape("self") || !c.isFloat("self") || c.isFloat("target") ||
      c.element("target").isInteger(1) || c.type("self").getNumElements() == 0)
    return c.fail("expected class scores and as many integer targets");
  Build &b = c.b;
  const int64_t classes = c.shape("self").back(), rows = rank == 1 ? 1 : c.shape("self")[0];
  const SmallVector<int64_t> cube = {rows, classes, classes}; // targets, then classes
  if (!countElements(cube))
    return c.fail("there are too many classes");
  Value x = b.convert(b.reshape(c.value("self"), {rows, classes}), computedIn(c.element("self")));
  Value targets = b.convert(b.reshape(c.value("target"), {rows, classes}), b.builder.getI64Type());
  // How many targets up to each one are below 0.
  Value ends = b.compare(CompareDirection::Lt, targets, b.splatLike(targets, 0));
  auto square = RankedTensorType::get({classes, classes}, b.builder.getI64Type());
  Value isUpTo = b.compare(CompareDirection::Le, b.iota(square, 0), b.iota(square, 1));
  Type wide = tensorType(x).getElementType();
  Value ended = b.dot(b.convert(ends, wide), b.convert(isUpTo, wide), {}, {}, {1}, {0});
  Value counts = b.broadcast(b.compare(CompareDirection::Eq, ended, b.splatLike(ended, 0)), cube, {0, 1});
  Value spread = b.broadcast(targets, cube, {0, 1});
  Value hit = b.mul(counts, b.compare(CompareDirection::Eq, spread, b.iota(tensorType(spread), 2)));
  Value scores = b.broadcast(x, cube, {0, 2}), zero = b.splatLike(scores, 0);
  Value own = b.sum(b.select(hit, scores, zero), {2});
  Value isTarget = b.reduce(ReduceKind::Max, b.convert(hit, wide), {1});
  Value isNone = b.compare(CompareDirection::Eq, isTarget, b.splatLike(isTarget, 0));
  Value excess = above(b, frontend::plus(b, b.sub(scores, b.broadcast(own, cube, {0, 1})), 1));
  Value each = b.select(b.mul(counts, b.broadcast(isNone, cube, {0, 2})), excess, zero);
  Value losses = b.scale(b.sum(each, {1, 2}), 1.0 / static_cast<double>(classes));
  if (rank == 1)
    losses = b.reshape(losses, {});
  return c.set(b.convert(frontend::reduceLoss(b, losses, *reduction), c.element("self")));
}

const OpRow kLossOps[] = {
    {"aten.cross_entropy_loss.default", opCrossEntropy, "self,target"},
    {"aten.multi_margin_loss.default", opMultiMargin, "self,target"},
    {"aten.multilabel_margin_loss.default", opMultiLabelMargin, "self,target"},
    {"aten.multilabel_margin_loss_forward.default", opMultiLabelMargin, "self,target"},
    {"aten.nll_loss.default", opNll, "self,target"},
    {"aten.nll_loss2d.default", opNll, "self,target"},
    {"aten.nll_loss2d_forward.default", opNll, "self,target"},
    {"aten.nll_loss_forward.default", opNll, "self,target"},
    {"aten.nll_loss_nd.default", opNll, "self,target"},
};
} // namespace

llvm::ArrayRef<OpRow> lossOps() { return kLossOps; }

} // namespace tessera::pt2
