//===- RulesShape.cpp - ops that move elements ----------------------------===//

#include "passes/shard/rules/Rules.h"

#include <numeric>

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

/// Splits the dimensions of both shapes into common factors, major first: [8, 128] -> [1024] has factors 8 and 128.
/// Where the shapes share no further divisor the rest, up to the next common boundary, cannot be sharded.
struct ReshapeRule : RuleModel<ReshapeRule, ReshapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> in = shapeOf(op->getOperand(0)), out = shapeOf(op->getResult(0));
    size_t i = 0, j = 0;
    int64_t restIn = 1, restOut = 1;
    auto refill = [](ArrayRef<int64_t> shape, size_t &next, int64_t &rest) {
      while (rest == 1 && next < shape.size())
        rest = shape[next++];
      return rest != 1;
    };
    while (refill(in, i, restIn) && refill(out, j, restOut)) {
      if (int64_t common = std::gcd(restIn, restOut); common > 1) {
        int64_t factor = builder.factor(common);
        builder.operand(0, i - 1, factor);
        builder.result(0, j - 1, factor);
        restIn /= common;
        restOut /= common;
        if (restIn == 1 || restOut == 1)
          continue;
      }
      skipToBoundary(in, i, restIn, out, j, restOut, builder);
    }
    return builder.linear({true}).monotone({true}).take();
  }

private:
  static void skipToBoundary(ArrayRef<int64_t> in, size_t &i, int64_t &restIn, ArrayRef<int64_t> out, size_t &j,
                             int64_t &restOut, RuleBuilder &builder) {
    auto freeze = [&] {
      builder.operand(0, i - 1, builder.factor(restIn, FactorKind::NeedReplication));
      builder.result(0, j - 1, builder.factor(restOut, FactorKind::NeedReplication));
    };
    freeze();
    int64_t left = restIn, right = restOut;
    while (left != right) {
      if (left < right) {
        builder.operand(0, i, builder.factor(in[i], FactorKind::NeedReplication));
        left *= in[i++];
      } else {
        builder.result(0, j, builder.factor(out[j], FactorKind::NeedReplication));
        right *= out[j++];
      }
    }
    restIn = restOut = 1;
  }
};

struct TransposeRule : RuleModel<TransposeRule, TransposeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (auto [dim, source] : llvm::enumerate(cast<TransposeOp>(op).getPermutation())) {
      int64_t factor = builder.factor(shapeOf(op->getResult(0))[dim]);
      builder.operand(0, source, factor);
      builder.result(0, dim, factor);
    }
    return builder.linear({true}).monotone({true}).take();
  }
};

/// A partial sum is reduced before it is repeated, so it is not linear.
struct BroadcastRule : RuleModel<BroadcastRule, BroadcastOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> dims = cast<BroadcastOp>(op).getBroadcastDimensions();
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
      int64_t factor = builder.factor(size);
      builder.result(0, dim, factor);
      auto *source = llvm::find(dims, static_cast<int64_t>(dim));
      if (source != dims.end() && shapeOf(op->getOperand(0))[source - dims.begin()] == size)
        builder.operand(0, source - dims.begin(), factor);
    }
    return builder.take();
  }
};

/// Gives dimension `dim` of operand 0 and of the result one factor; it passes through if the op keeps it whole.
void addKeptDim(RuleBuilder &builder, Operation *op, int64_t dim, bool kept) {
  if (!kept)
    return;
  int64_t factor = builder.factor(shapeOf(op->getOperand(0))[dim]);
  builder.operand(0, dim, factor);
  builder.result(0, dim, factor);
}

struct SliceRule : RuleModel<SliceRule, SliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> in = shapeOf(op->getOperand(0)), out = shapeOf(op->getResult(0));
    for (int64_t dim = 0, rank = in.size(); dim < rank; ++dim)
      addKeptDim(builder, op, dim, in[dim] == out[dim]);
    return builder.linear({true}).monotone({true}).take();
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &) const {
    auto slice = cast<SliceOp>(op);
    SmallVector<int64_t> limits(slice.getLimits());
    auto local = cast<RankedTensorType>(resultTypes.front());
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0))))
      if (local.getDimSize(dim) != size)
        limits[dim] = local.getDimSize(dim);
    OperationState state(op->getLoc(), op->getName(), operands, resultTypes, op->getAttrs());
    Operation *created = builder.create(state);
    cast<SliceOp>(created).setLimits(limits);
    return SmallVector<Value>(created->getResults());
  }
};

struct PadRule : RuleModel<PadRule, PadOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<PadOp>(op);
    RuleBuilder builder(op);
    for (int64_t dim = 0, rank = pad.getLow().size(); dim < rank; ++dim)
      addKeptDim(builder, op, dim, !pad.getLow()[dim] && !pad.getHigh()[dim] && !pad.getInterior()[dim]);
    if (pad.getValue().isZero())
      builder.linear({true}); // zeros are their own partial sum
    return builder.take();
  }
};

struct ConcatRule : RuleModel<ConcatRule, ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
      if (static_cast<int64_t>(dim) == static_cast<int64_t>(cast<ConcatOp>(op).getDim()))
        continue;
      int64_t factor = builder.factor(size);
      builder.result(0, dim, factor);
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        builder.operand(i, dim, factor);
    }
    SmallVector<bool> all(op->getNumOperands(), true);
    return builder.jointlyLinear(all).monotone(all).take();
  }
};

struct DynamicSliceRule : RuleModel<DynamicSliceRule, DynamicSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> in = shapeOf(op->getOperand(0)), out = shapeOf(op->getResult(0));
    for (int64_t dim = 0, rank = in.size(); dim < rank; ++dim)
      addKeptDim(builder, op, dim, in[dim] == out[dim]);
    SmallVector<bool> linear(op->getNumOperands(), false);
    linear.front() = true;
    return builder.linear(linear).monotone(linear).take();
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &) const {
    OperationState state(op->getLoc(), op->getName(), operands, resultTypes, op->getAttrs());
    Operation *created = builder.create(state);
    cast<DynamicSliceOp>(created).setSizes(cast<RankedTensorType>(resultTypes.front()).getShape());
    return SmallVector<Value>(created->getResults());
  }
};

struct DynamicUpdateSliceRule : RuleModel<DynamicUpdateSliceRule, DynamicUpdateSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> whole = shapeOf(op->getOperand(0)), box = shapeOf(op->getOperand(1));
    for (int64_t dim = 0, rank = whole.size(); dim < rank; ++dim) {
      if (whole[dim] != box[dim])
        continue;
      int64_t factor = builder.factor(whole[dim]);
      builder.operand(0, dim, factor);
      builder.operand(1, dim, factor);
      builder.result(0, dim, factor);
    }
    SmallVector<bool> linear(op->getNumOperands(), false);
    linear[0] = linear[1] = true;
    return builder.jointlyLinear(linear).monotone(linear).take();
  }
};

} // namespace

void registerShapeRules(MLIRContext *context) {
  ReshapeOp::attachInterface<ReshapeRule>(*context);
  TransposeOp::attachInterface<TransposeRule>(*context);
  BroadcastOp::attachInterface<BroadcastRule>(*context);
  SliceOp::attachInterface<SliceRule>(*context);
  PadOp::attachInterface<PadRule>(*context);
  ConcatOp::attachInterface<ConcatRule>(*context);
  DynamicSliceOp::attachInterface<DynamicSliceRule>(*context);
  DynamicUpdateSliceOp::attachInterface<DynamicUpdateSliceRule>(*context);
}

} // namespace tessera::shard
