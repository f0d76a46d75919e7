//===- RulesNeural.cpp - normalisation, losses, attention, quantisation ---===//

#include "compiler/dialect/train/Builders.h"
#include "passes/shard/partition/AttentionKeys.h"
#include "passes/shard/rules/AttentionFactors.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

/// One pass-through factor per dimension of operand 0 but `whole`, shared by every tensor that has the dimension.
/// Tensors of lower rank lack the dimension `whole` (the reduced results of a row-wise op).
RuleBuilder rowWise(Operation *op, int64_t whole, ArrayRef<bool> shares) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  int64_t rank = shape.size();
  auto position = [&](ArrayRef<int64_t> tensor, int64_t dim) {
    return static_cast<int64_t>(tensor.size()) < rank && dim > whole ? dim - 1 : dim;
  };
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == whole)
      continue;
    int64_t factor = builder.factor(shape[dim]);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (shares[i])
        builder.operand(i, position(shapeOf(op->getOperand(i)), dim), factor);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      builder.result(i, position(shapeOf(op->getResult(i)), dim), factor);
  }
  return builder;
}

struct SoftmaxRule : RuleModel<SoftmaxRule, SoftmaxOp> {
  ShardingRule getShardingRule(Operation *op) const { return rowWise(op, cast<SoftmaxOp>(op).getDim(), {true}).take(); }
};

struct LayerNormRule : RuleModel<LayerNormRule, LayerNormOp> {
  ShardingRule getShardingRule(Operation *op) const {
    SmallVector<bool> shares(op->getNumOperands(), false);
    shares.front() = true;
    return rowWise(op, static_cast<int64_t>(shapeOf(op->getOperand(0)).size()) - 1, shares).take();
  }
};

struct CrossEntropyRule : RuleModel<CrossEntropyRule, CrossEntropyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return rowWise(op, static_cast<int64_t>(shapeOf(op->getOperand(0)).size()) - 1, {true, true}).take();
  }
};

/// Rows pass; the weight is whole, and its gradient a sum over rows.
template <typename Op> struct LinearCrossEntropyRule : RuleModel<LinearCrossEntropyRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    const int64_t rows = builder.factor(shapeOf(op->getOperand(0))[0]);
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (operand != 1)
        builder.operand(operand, 0, rows);
    for (unsigned result = 0; result < op->getNumResults(); ++result)
      if (result != 3)
        builder.result(result, 0, rows);
      else
        builder.reduce(result, rows);
    return builder.take();
  }
};

/// Keys and values are whole: a rank has all of them for its queries. What is seen by position becomes ranges of keys.
template <typename Op> struct AttentionRule : RuleModel<AttentionRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    AttentionFactors factors(builder, cast<Op>(op), AttentionFactors::Keys::Whole);
    return builder.take();
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &context) const {
    auto attention = cast<Op>(op);
    FailureOr<SmallVector<Value>> results = cloneWithLocalTypes(op, builder, operands, resultTypes);
    auto local = succeeded(results) ? results->front().getDefiningOp<Op>() : Op();
    if (!local)
      return failure();
    local.removeSplitAttr();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    Value indices = attention.getCausal() ? context.globalIndices(builder, 0, 2) : Value();
    if (!indices)
      return results;
    Build build(builder, op->getLoc());
    const SeenKeys seen = seenKeys(build, AttentionMasks(attention), indices, {local.getBegin(), local.getEnd()});
    saySeenKeys(local, attention, seen, context.isBalanced(0, 2));
    return results;
  }
};

/// How many scales a dimension has; a scalar is shared by all.
int64_t countScales(ArrayRef<int64_t> scale, int64_t dim) { return scale.empty() ? 1 : scale[dim]; }

/// Along each dimension blocks of elements share a scale: a factor of the blocks, and one of the elements of a block.
template <typename Op> struct QuantRule : RuleModel<QuantRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> scale = shapeOf(op->getOperand(1));
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
      const int64_t count = countScales(scale, static_cast<int64_t>(dim));
      auto add = [&](int64_t part, bool isScaled) {
        const int64_t factor = builder.factor(part);
        builder.operand(0, dim, factor);
        builder.result(0, dim, factor);
        if (isScaled)
          builder.operand(1, dim, factor);
      };
      if (count > 1)
        add(count, true);
      if (size != count || count == 1)
        add(size / count, false);
    }
    return builder.take();
  }
};

/// As dot_general; where a scale changes along a dimension, a factor of the blocks and one of the elements of a block.
struct ScaledDotRule : RuleModel<ScaledDotRule, ScaledDotOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto dot = cast<ScaledDotOp>(op);
    RuleBuilder builder(op);
    const ArrayRef<int64_t> shapes[] = {shapeOf(dot.getLhs()), shapeOf(dot.getRhs())};
    const ArrayRef<int64_t> scales[] = {shapeOf(dot.getLhsInverseScale()), shapeOf(dot.getRhsInverseScale())};
    const ArrayRef<int64_t> contract[] = {dot.getLhsContract(), dot.getRhsContract()};
    // Factors of `size`: `count` blocks, and the elements of each.
    auto parts = [&](int64_t size, int64_t count, bool isReduced) {
      auto factor = [&](int64_t part) { return isReduced ? builder.reduced(part) : builder.factor(part); };
      SmallVector<int64_t> factors;
      if (count > 1)
        factors.push_back(factor(count));
      if (size != count || count == 1)
        factors.push_back(factor(size / count));
      return factors;
    };
    auto add = [&](unsigned side, int64_t dim, ArrayRef<int64_t> factors) {
      for (int64_t factor : factors)
        builder.operand(side, dim, factor);
      if (countScales(scales[side], dim) > 1)
        builder.operand(2 + side, dim, factors.front());
    };
    for (auto [left, right] : llvm::zip_equal(contract[0], contract[1])) {
      const int64_t count = std::max(countScales(scales[0], left), countScales(scales[1], right));
      const SmallVector<int64_t> factors = parts(shapes[0][left], count, true);
      add(0, left, factors);
      add(1, right, factors);
    }
    int64_t out = 0;
    for (unsigned side : {0, 1})
      for (int64_t dim = 0, rank = shapes[side].size(); dim < rank; ++dim) {
        if (llvm::is_contained(contract[side], dim))
          continue;
        const SmallVector<int64_t> factors = parts(shapes[side][dim], countScales(scales[side], dim), false);
        add(side, dim, factors);
        for (int64_t factor : factors)
          builder.result(0, out, factor);
        ++out;
      }
    return builder.take();
  }
};

} // namespace

void registerNeuralRules(MLIRContext *context) {
  SoftmaxOp::attachInterface<SoftmaxRule>(*context);
  LayerNormOp::attachInterface<LayerNormRule>(*context);
  CrossEntropyOp::attachInterface<CrossEntropyRule>(*context);
  LinearCrossEntropyOp::attachInterface<LinearCrossEntropyRule<LinearCrossEntropyOp>>(*context);
  LinearCrossEntropyGradOp::attachInterface<LinearCrossEntropyRule<LinearCrossEntropyGradOp>>(*context);
  AttentionOp::attachInterface<AttentionRule<AttentionOp>>(*context);
  AttentionGradOp::attachInterface<AttentionRule<AttentionGradOp>>(*context);
  QuantizeOp::attachInterface<QuantRule<QuantizeOp>>(*context);
  DequantizeOp::attachInterface<QuantRule<DequantizeOp>>(*context);
  ScaledDotOp::attachInterface<ScaledDotRule>(*context);
}

} // namespace tessera::shard
