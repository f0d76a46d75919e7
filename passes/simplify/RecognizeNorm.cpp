//===- RecognizeNorm.cpp - written-out normalisations to train.layer_norm -===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_RECOGNIZENORM
#include "passes/simplify/Passes.h.inc"

namespace {
using simplify::uniformConstant;
using simplify::unrepeated;

/// Matches one normalisation over the last dimension of values of one shape.
class Matcher {
public:
  explicit Matcher(ArrayRef<int64_t> shape) : shape(shape), last(static_cast<int64_t>(shape.size()) - 1) {}

  Value rows(Value value) const { return unrepeated(value, last, shape); }

  /// If `value` is the mean over the last dimension of some value, that value.
  Value meanOf(Value value) const {
    auto scaled = simplify::scaledBy(rows(value));
    if (!scaled || std::abs(scaled->second * static_cast<double>(shape[last]) - 1.0) > 1e-6)
      return {};
    auto reduce = rows(scaled->first).getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getKind() != ReduceKind::Sum || reduce.getDimensions() != ArrayRef<int64_t>{last} ||
        shapeOf(reduce.getOperand()) != shape)
      return {};
    return reduce.getOperand();
  }

  /// If `value` is `a + constant`, `a` and the constant.
  static std::optional<std::pair<Value, double>> plusConstant(Value value) {
    auto add = value.getDefiningOp<AddOp>();
    if (!add)
      return std::nullopt;
    if (auto constant = uniformConstant(add.getRhs()))
      return std::pair(add.getLhs(), *constant);
    if (auto constant = uniformConstant(add.getLhs()))
      return std::pair(add.getRhs(), *constant);
    return std::nullopt;
  }

  /// The argument of the square root if `value` is `1/sqrt(argument)` (or `sqrt(argument)` if it divides).
  Value rootArgument(Value value, bool divides) const {
    Value root = rows(value);
    if (divides) {
      if (auto sqrt = root.getDefiningOp<SqrtOp>())
        return rows(sqrt.getOperand());
      auto pow = root.getDefiningOp<PowOp>();
      return pow && uniformConstant(pow.getRhs()) == 0.5 ? rows(pow.getLhs()) : Value();
    }
    if (auto rsqrt = root.getDefiningOp<RsqrtOp>())
      return rows(rsqrt.getOperand());
    if (auto pow = root.getDefiningOp<PowOp>(); pow && uniformConstant(pow.getRhs()) == -0.5)
      return rows(pow.getLhs());
    auto inverse = root.getDefiningOp<DivOp>();
    if (!inverse || uniformConstant(inverse.getLhs()) != 1.0)
      return {};
    return rootArgument(inverse.getRhs(), true);
  }

  ArrayRef<int64_t> shape;
  int64_t last;
};

struct Norm {
  Value operand;
  NormMode mode;
  double epsilon;
};

/// `numerator` times or divided by a root: a normalisation, nothing of the kind, or a near miss with a remark.
std::optional<Norm> match(Operation *op, Value numerator, Value root, bool divides) {
  Matcher m(shapeOf(numerator));
  if (m.last < 0)
    return std::nullopt;
  Value argument = m.rootArgument(root, divides);
  if (!argument)
    return std::nullopt;
  double epsilon = 0;
  Value mean = argument;
  if (auto sum = Matcher::plusConstant(argument)) {
    mean = sum->first;
    epsilon = sum->second;
  }
  Value squares = m.meanOf(mean);
  Value base = squares ? simplify::squareOf(squares) : Value();
  if (!base)
    return std::nullopt;
  // (x - mean) may be written twice: once for the variance, once for the result.
  auto centredOf = [&](Value value) -> Value {
    auto sub = value.getDefiningOp<SubOp>();
    return sub && m.meanOf(sub.getRhs()) == sub.getLhs() ? sub.getLhs() : Value();
  };
  Value centred = centredOf(base);
  if (centred && (base == numerator || centredOf(numerator) == centred))
    return Norm{centred, NormMode::Layer, epsilon};
  if (base == numerator)
    return Norm{base, NormMode::Rms, epsilon};
  op->emitRemark("normalisation not recognised: the value that is scaled is not the one whose mean square is taken");
  return std::nullopt;
}

/// The only user of `value` if it is an op of this type whose other operand repeats a vector; sets that vector.
template <typename Op> Op affineUser(Value value, Value &vector) {
  if (!value.hasOneUse())
    return {};
  auto user = dyn_cast<Op>(*value.getUsers().begin());
  if (!user)
    return {};
  vector = simplify::repeatedVector(user.getLhs() == value ? user.getRhs() : user.getLhs());
  return vector ? user : Op();
}

bool convert(Operation *root, Value numerator, Value divisor, bool divides) {
  std::optional<Norm> norm = match(root, numerator, divisor, divides);
  if (!norm)
    return false;
  Value scale, bias;
  Operation *end = root;
  if (auto mul = affineUser<MulOp>(end->getResult(0), scale))
    end = mul;
  if (norm->mode == NormMode::Layer && scale)
    if (auto add = affineUser<AddOp>(end->getResult(0), bias))
      end = add;
  OpBuilder builder(end);
  RankedTensorType type = tensorType(norm->operand);
  auto statistics = RankedTensorType::get(type.getShape().drop_back(), accumulationType(type.getElementType()));
  auto layerNorm = LayerNormOp::create(builder, end->getLoc(), type, statistics, statistics, norm->mode, norm->operand,
                                       scale, bias, APFloat(norm->epsilon));
  end->getResult(0).replaceAllUsesWith(layerNorm.getResult());
  return true;
}

struct RecognizeNorm : impl::RecognizeNormBase<RecognizeNorm> {
  void runOnOperation() override {
    SmallVector<Operation *> roots;
    getOperation().walk([&](Operation *op) {
      if (isa<MulOp, DivOp>(op))
        roots.push_back(op);
    });
    for (Operation *op : roots) {
      Value lhs = op->getOperand(0), rhs = op->getOperand(1);
      if (isa<DivOp>(op))
        convert(op, lhs, rhs, /*divides=*/true);
      else if (!convert(op, lhs, rhs, /*divides=*/false))
        convert(op, rhs, lhs, /*divides=*/false);
    }
  }
};
} // namespace
} // namespace tessera
