//===- EvalNeural.cpp - softmax, norms, losses, attention, quantisation ---===//
//
// Each composite op is computed in doubles throughout and rounded once.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Eval.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// log sum exp of scores; -inf if all are -inf.
static double logSumExp(ArrayRef<double> scores) {
  double top = -infinity;
  for (double score : scores)
    top = std::max(top, score);
  if (top == -infinity)
    return -infinity;
  double sum = 0.0;
  for (double score : scores)
    sum += std::exp(score - top);
  return top + std::log(sum);
}

/// exp(scores - logSumExp(scores)), also where they are so large that their maximum plus the logarithm is the maximum;
/// all 0 where no score is above -inf.
static std::vector<double> probabilitiesOf(ArrayRef<double> scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  std::vector<double> result(scores.size(), 0.0);
  if (top == -infinity)
    return result;
  double total = 0.0;
  for (auto [score, probability] : llvm::zip_equal(scores, result))
    total += probability = std::exp(score - top);
  for (double &probability : result)
    probability /= total;
  return result;
}

static FailureOr<Results> softmax(SoftmaxOp op, EvalContext context, Operands in) {
  const Tensor &operand = *in[0];
  Tensor result(context.resultType());
  int64_t dim = op.getDim(), count = operand.getShape()[dim];
  int64_t stride = stridesOf(operand.getShape())[dim];
  SmallVector<int64_t> rows(operand.getShape());
  rows[dim] = 1;
  std::vector<double> row(count);
  forEachIndex(rows, [&](ArrayRef<int64_t> index, int64_t) {
    int64_t start = linearIndex(index, stridesOf(operand.getShape()));
    double top = -infinity, sum = 0.0;
    for (int64_t i = 0; i < count; ++i)
      top = std::max(top, operand.at(start + i * stride));
    for (int64_t i = 0; i < count; ++i)
      sum += row[i] = std::exp(operand.at(start + i * stride) - top);
    for (int64_t i = 0; i < count; ++i)
      result.set(start + i * stride, row[i] / sum);
  });
  return one(std::move(result));
}

static FailureOr<Results> layerNorm(LayerNormOp op, EvalContext context, Operands in) {
  const Tensor &operand = *in[0];
  const Tensor *scale = op.getScale() ? in[1] : nullptr;
  const Tensor *bias = op.getBias() ? in.back() : nullptr;
  Tensor result(context.resultType(0)), means(context.resultType(1)), rstds(context.resultType(2));
  int64_t width = operand.getShape().back();
  for (int64_t row = 0, end = means.size(); row < end; ++row) {
    double mean = 0.0, square = 0.0;
    if (op.getMode() == NormMode::Layer) {
      for (int64_t i = 0; i < width; ++i)
        mean += operand.at(row * width + i);
      mean /= static_cast<double>(width);
    }
    for (int64_t i = 0; i < width; ++i) {
      double centred = operand.at(row * width + i) - mean;
      square += centred * centred;
    }
    double rstd = 1.0 / std::sqrt(square / static_cast<double>(width) + op.getEpsilon().convertToDouble());
    means.set(row, mean);
    rstds.set(row, rstd);
    for (int64_t i = 0; i < width; ++i)
      result.set(row * width + i, (operand.at(row * width + i) - mean) * rstd * (scale ? scale->at(i) : 1.0) +
                                      (bias ? bias->at(i) : 0.0));
  }
  Results results = one(std::move(result));
  results.push_back(std::move(means));
  results.push_back(std::move(rstds));
  return results;
}

static FailureOr<Results> crossEntropy(CrossEntropyOp op, EvalContext context, Operands in) {
  const Tensor &logits = *in[0], &targets = *in[1];
  Tensor loss(context.resultType(0)), lse(context.resultType(1));
  int64_t classes = logits.getShape().back();
  double smoothing = op.getLabelSmoothing().convertToDouble();
  for (int64_t row = 0, end = targets.size(); row < end; ++row) {
    std::vector<double> scores(classes);
    double sum = 0.0;
    for (int64_t i = 0; i < classes; ++i)
      sum += scores[i] = logits.at(row * classes + i);
    double rowLse = logSumExp(scores);
    lse.set(row, rowLse);
    int64_t target = targets.intAt(row);
    if (op.getIgnoreIndex() && target == static_cast<int64_t>(*op.getIgnoreIndex()))
      continue;
    if (target < 0 || target >= classes)
      return context.error() << "target at " << printIndex(delinearize(row, targets.getShape())) << " is " << target
                             << ", expected at least 0 and less than " << classes;
    // Without smoothing the sum does not matter, be it infinite.
    double smoothed = smoothing == 0.0 ? 0.0 : smoothing / static_cast<double>(classes) * sum;
    loss.set(row, rowLse - (1.0 - smoothing) * scores[target] - smoothed);
  }
  Results results = one(std::move(loss));
  results.push_back(std::move(lse));
  return results;
}

/// Scores of each row, and what a cross-entropy makes of them.
template <typename Op> class LinearLoss {
public:
  LinearLoss(Op op, Operands in)
      : weightDim(op.getWeightDim()), hidden(*in[0]), weight(*in[1]), targets(*in[2]), depth(hidden.getShape()[1]),
        classes(weight.getShape()[1 - op.getWeightDim()]), smoothing(op.getLabelSmoothing().convertToDouble()) {
    if (op.getIgnoreIndex())
      ignored = static_cast<int64_t>(*op.getIgnoreIndex());
  }

  int64_t rows() const { return hidden.getShape()[0]; }
  int64_t weightAt(int64_t k, int64_t v) const { return weightDim == 1 ? v * depth + k : k * classes + v; }
  bool isIgnored(int64_t row) const { return ignored && targets.intAt(row) == *ignored; }
  std::vector<double> scores(int64_t row) const {
    std::vector<double> found(classes, 0.0);
    for (int64_t v = 0; v < classes; ++v)
      for (int64_t k = 0; k < depth; ++k)
        found[v] += hidden.at(row * depth + k) * weight.at(weightAt(k, v));
    return found;
  }
  /// Loss and log-sum-exp of all rows; an error where a target is no class.
  FailureOr<Results> losses(EvalContext context) const {
    Tensor loss(context.resultType(0)), lse(context.resultType(1));
    for (int64_t row = 0; row < rows(); ++row) {
      const std::vector<double> found = scores(row);
      const double rowLse = logSumExp(found);
      lse.set(row, rowLse);
      if (isIgnored(row))
        continue;
      const int64_t target = targets.intAt(row);
      if (target < 0 || target >= classes)
        return context.error() << "target at [" << row << "] is " << target << ", expected at least 0 and less than "
                               << classes;
      double sum = 0.0;
      for (double score : found)
        sum += score;
      const double smoothed = smoothing == 0.0 ? 0.0 : smoothing / static_cast<double>(classes) * sum;
      loss.set(row, rowLse - (1.0 - smoothing) * found[target] - smoothed);
    }
    Results results = one(std::move(loss));
    results.push_back(std::move(lse));
    return results;
  }

  uint64_t weightDim;
  std::optional<int64_t> ignored;
  const Tensor &hidden, &weight, &targets;
  int64_t depth, classes;
  double smoothing;
};

static FailureOr<Results> linearCrossEntropy(LinearCrossEntropyOp op, EvalContext context, Operands in) {
  return LinearLoss<LinearCrossEntropyOp>(op, in).losses(context);
}

static FailureOr<Results> linearCrossEntropyGrad(LinearCrossEntropyGradOp op, EvalContext context, Operands in) {
  const LinearLoss<LinearCrossEntropyGradOp> of(op, in);
  FailureOr<Results> results = of.losses(context);
  if (failed(results))
    return failure();
  const Tensor &lossGrad = *in[3];
  std::vector<double> hiddenGrad(of.hidden.size(), 0.0), weightGrad(of.weight.size(), 0.0);
  Tensor rounded(RankedTensorType::get({}, of.hidden.getElementType()));
  for (int64_t row = 0; row < of.rows(); ++row) {
    if (of.isIgnored(row))
      continue;
    const std::vector<double> probabilities = probabilitiesOf(of.scores(row));
    for (int64_t v = 0; v < of.classes; ++v) {
      const double wanted =
          (v == of.targets.intAt(row) ? 1.0 - of.smoothing : 0.0) + of.smoothing / static_cast<double>(of.classes);
      rounded.set(0, (probabilities[v] - wanted) * lossGrad.at(row));
      const double score = rounded.at(0);
      for (int64_t k = 0; k < of.depth; ++k) {
        hiddenGrad[row * of.depth + k] += score * of.weight.at(of.weightAt(k, v));
        weightGrad[of.weightAt(k, v)] += score * of.hidden.at(row * of.depth + k);
      }
    }
  }
  for (const std::vector<double> *sums : {&hiddenGrad, &weightGrad}) {
    results->emplace_back(context.resultType(static_cast<unsigned>(results->size())));
    for (auto [position, sum] : llvm::enumerate(*sums))
      results->back().set(static_cast<int64_t>(position), sum);
  }
  return results;
}

static FailureOr<Results> countValid(CountValidOp op, EvalContext context, Operands in) {
  int64_t count = 0;
  for (int64_t i = 0, end = in[0]->size(); i < end; ++i)
    count += !op.getIgnoreIndex() || in[0]->intAt(i) != static_cast<int64_t>(*op.getIgnoreIndex());
  return one(Tensor::scalar(context.resultType(), static_cast<double>(std::max<int64_t>(count, 1))));
}

// --- Attention -----------------------------------------------------------------

namespace {
/// The scores of one attention: shapes, masks and scale.
struct Scores {
  template <typename Op>
  Scores(Op op, Operands in)
      : query(*in[0]), key(*in[1]), scale(op.getScale().convertToDouble()), causal(op.getCausal()) {
    const Tensor *const *next = in.begin() + 3;
    if (op.getMask())
      mask = *next++;
    if (op.getBegin()) {
      begin = *next++;
      end = *next;
    }
    if (op.getWindow())
      window = *op.getWindow();
  }

  const Tensor &query, &key;
  const Tensor *mask = nullptr, *begin = nullptr, *end = nullptr;
  double scale;
  bool causal;
  int64_t window = std::numeric_limits<int64_t>::max();

  int64_t batch() const { return query.getShape()[0]; }
  int64_t heads() const { return query.getShape()[1]; }
  int64_t groups() const { return key.getShape()[1]; }
  int64_t queries() const { return query.getShape()[2]; }
  int64_t keys() const { return key.getShape()[2]; }
  int64_t depth() const { return query.getShape()[3]; }

  int64_t groupOf(int64_t head) const { return head / (heads() / groups()); }
  int64_t queryRow(int64_t b, int64_t h, int64_t i) const { return (b * heads() + h) * queries() + i; }
  int64_t keyRow(int64_t b, int64_t h, int64_t j) const { return (b * groups() + groupOf(h)) * keys() + j; }

  bool sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t last = i + keys() - queries();
    if (causal && (j > last || last - j >= window))
      return false;
    if (!begin)
      return true;
    auto at = [&](const Tensor &bound) { return bound.intAt((bound.getShape()[0] == 1 ? 0 : b) * queries() + i); };
    return at(*begin) <= j && j < at(*end);
  }

  /// scale·q·k + mask; -inf where query i may not attend to key j.
  double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!sees(b, i, j))
      return -infinity;
    double added = 0.0;
    if (mask) {
      ArrayRef<int64_t> shape = mask->getShape();
      int64_t position =
          linearIndex({shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, j}, stridesOf(shape));
      if (!mask->isFloat() && !mask->intAt(position))
        return -infinity;
      added = mask->isFloat() ? mask->at(position) : 0.0;
    }
    double sum = 0.0;
    for (int64_t d = 0; d < depth(); ++d)
      sum += query.at(queryRow(b, h, i) * depth() + d) * key.at(keyRow(b, h, j) * depth() + d);
    // Where a large number is added, the sum is rounded as in the kernels.
    const double score = scale * sum + added;
    return added == 0.0 || query.getElementType().isF64() ? score : static_cast<double>(static_cast<float>(score));
  }

  std::vector<double> row(int64_t b, int64_t h, int64_t i) const {
    std::vector<double> scores(keys());
    for (int64_t j = 0; j < keys(); ++j)
      scores[j] = at(b, h, i, j);
    return scores;
  }

  void forEachRow(llvm::function_ref<void(int64_t b, int64_t h, int64_t i)> fn) const {
    for (int64_t b = 0; b < batch(); ++b)
      for (int64_t h = 0; h < heads(); ++h)
        for (int64_t i = 0; i < queries(); ++i)
          fn(b, h, i);
  }
};
} // namespace

static FailureOr<Results> attention(AttentionOp op, EvalContext context, Operands in) {
  Scores scores(op, in);
  const Tensor &value = *in[2];
  Tensor result(context.resultType(0)), lse(context.resultType(1));
  int64_t width = value.getShape()[3];
  scores.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    const std::vector<double> row = scores.row(b, h, i);
    std::vector<double> sums(width, 0.0);
    for (auto [j, probability] : llvm::enumerate(probabilitiesOf(row)))
      for (int64_t d = 0; d < width && probability != 0.0; ++d)
        sums[d] += probability * value.at(scores.keyRow(b, h, static_cast<int64_t>(j)) * width + d);
    int64_t queryRow = scores.queryRow(b, h, i);
    lse.set(queryRow, logSumExp(row));
    for (int64_t d = 0; d < width; ++d)
      result.set(queryRow * width + d, sums[d]);
  });
  Results results = one(std::move(result));
  results.push_back(std::move(lse));
  return results;
}

/// Dao et al., FlashAttention, 2022, algorithm 4, without the blocks.
static FailureOr<Results> attentionGrad(AttentionGradOp op, EvalContext context, Operands in) {
  Scores scores(op, in);
  Operands rest = in.take_back(3);
  const Tensor &value = *in[2], &output = *rest[0], &lse = *rest[1], &outputGrad = *rest[2];
  // Of an attention to more keys only the log-sum-exp is known.
  auto probabilities = [&](int64_t b, int64_t h, int64_t i) {
    std::vector<double> row = scores.row(b, h, i);
    if (!op.getPartial())
      return probabilitiesOf(row);
    const double total = lse.at(scores.queryRow(b, h, i));
    for (double &score : row)
      score = total == -infinity ? 0.0 : std::exp(score - total);
    return row;
  };
  int64_t width = value.getShape()[3], depth = scores.depth();
  std::vector<double> sums[3];
  for (unsigned i = 0; i < 3; ++i)
    sums[i].assign(context.resultType(i).getNumElements(), 0.0);
  std::vector<double> &queryGrad = sums[0], &keyGrad = sums[1], &valueGrad = sums[2];
  scores.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    int64_t queryRow = scores.queryRow(b, h, i);
    double delta = 0.0;
    for (int64_t d = 0; d < width; ++d)
      delta += outputGrad.at(queryRow * width + d) * output.at(queryRow * width + d);
    for (auto [j, probability] : llvm::enumerate(probabilities(b, h, i))) {
      int64_t keyRow = scores.keyRow(b, h, static_cast<int64_t>(j));
      double probabilityGrad = 0.0;
      for (int64_t d = 0; d < width; ++d) {
        probabilityGrad += outputGrad.at(queryRow * width + d) * value.at(keyRow * width + d);
        valueGrad[keyRow * width + d] += probability * outputGrad.at(queryRow * width + d);
      }
      double scoreGrad = scores.scale * probability * (probabilityGrad - delta);
      for (int64_t d = 0; d < depth; ++d) {
        queryGrad[queryRow * depth + d] += scoreGrad * scores.key.at(keyRow * depth + d);
        keyGrad[keyRow * depth + d] += scoreGrad * scores.query.at(queryRow * depth + d);
      }
    }
  });
  Results results;
  for (unsigned i = 0; i < 3; ++i) {
    results.emplace_back(context.resultType(i));
    for (auto [position, sum] : llvm::enumerate(sums[i]))
      results.back().set(position, sum);
  }
  return results;
}

// --- Quantisation --------------------------------------------------------------

/// For each position of a tensor of `shape` the one in `scale` of the block that holds it.
static std::vector<int64_t> scalePositions(ArrayRef<int64_t> shape, const Tensor &scale) {
  std::vector<int64_t> positions;
  SmallVector<int64_t> strides = stridesOf(scale.getShape()), block(scale.getRank());
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t) {
    for (int64_t dim = 0; dim < scale.getRank(); ++dim)
      block[dim] = index[dim] / (shape[dim] / scale.getShape()[dim]);
    positions.push_back(linearIndex(block, strides));
  });
  return positions;
}

static double largestOf(Type format) {
  return APFloat::getLargest(cast<FloatType>(format).getFloatSemantics()).convertToDouble();
}

/// See train.quantize_scale.
static double quantizeScale(QuantizeScaleOp op, double amax) {
  if (!std::isfinite(amax) && op.getOneIfNotFinite())
    return 1;
  const double largest = largestOf(op.getFormat());
  if (op.getRounding() == ScaleRounding::E8M0) {
    const float quotient = static_cast<float>(amax) / static_cast<float>(largest);
    if (!std::isfinite(quotient))
      return std::nan("");
    int exponent = -127;
    if (quotient > 0 && std::frexp(quotient, &exponent) == 0.5f)
      --exponent;
    return std::ldexp(1.0, -std::max(exponent, -127));
  }
  const auto scale = static_cast<float>(largest / (std::isnan(amax) ? amax : std::max(amax, 1e-12)));
  if (op.getRounding() == ScaleRounding::None || !std::isfinite(scale) || scale == 0)
    return scale;
  int exponent = 0;
  std::frexp(scale, &exponent);
  return std::ldexp(1.0, exponent - 1);
}

/// The operand times its inverse scale, without rounding: both have few enough digits for a double.
static Tensor dequantized(const Tensor &operand, const Tensor &inverseScale) {
  Tensor result(operand.getType().clone(Float64Type::get(operand.getType().getContext())));
  for (auto [i, position] : llvm::enumerate(scalePositions(result.getShape(), inverseScale)))
    result.set(i, operand.at(i) * inverseScale.at(position));
  return result;
}

/// As dot_general of the operands times their inverse scales.
static FailureOr<Results> scaledDot(ScaledDotOp op, EvalContext context, Operands in) {
  const Tensor lhs = dequantized(*in[0], *in[2]), rhs = dequantized(*in[1], *in[3]);
  return one(evalContraction(context.resultType(), lhs, rhs, op.getLhsContract(), op.getRhsContract()));
}

void addNeural(EvalTable &table) {
  table.add<SoftmaxOp>(softmax);
  table.add<LayerNormOp>(layerNorm);
  table.add<CrossEntropyOp>(crossEntropy);
  table.add<CountValidOp>(countValid);
  table.add<LinearCrossEntropyOp>(linearCrossEntropy);
  table.add<LinearCrossEntropyGradOp>(linearCrossEntropyGrad);
  table.add<AttentionOp>(attention);
  table.add<AttentionGradOp>(attentionGrad);
  table.add<QuantizeScaleOp>([](QuantizeScaleOp op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.set(i, quantizeScale(op, in[0]->at(i)));
    return one(std::move(result));
  });
  table.add<QuantizeOp>([](QuantizeOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    const double limit = largestOf(result.getElementType());
    const bool isF64 = in[0]->getElementType().isF64();
    for (auto [i, position] : llvm::enumerate(scalePositions(result.getShape(), *in[1]))) {
      double scaled = in[0]->at(i) * in[1]->at(position);
      if (!isF64)
        scaled = static_cast<float>(scaled);
      result.set(i, std::isnan(scaled) ? scaled : std::clamp(scaled, -limit, limit));
    }
    return one(std::move(result));
  });
  table.add<DequantizeOp>([](DequantizeOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (auto [i, position] : llvm::enumerate(scalePositions(result.getShape(), *in[1])))
      result.set(i, in[0]->at(i) * in[1]->at(position));
    return one(std::move(result));
  });
  table.add<ScaledDotOp>(scaledDot);
}

} // namespace tessera::interp
