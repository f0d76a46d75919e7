//===- RulesContract.cpp - matrix products and convolution ----------------===//

#include "passes/shard/rules/Rules.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

struct DotGeneralRule : RuleModel<DotGeneralRule, DotGeneralOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto dot = cast<DotGeneralOp>(op);
    RuleBuilder builder(op);
    ArrayRef<int64_t> lhs = shapeOf(dot.getLhs()), rhs = shapeOf(dot.getRhs());
    int64_t out = 0;
    for (auto [left, right] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch())) {
      int64_t factor = builder.factor(lhs[left]);
      builder.operand(0, left, factor);
      builder.operand(1, right, factor);
      builder.result(0, out++, factor);
    }
    for (auto [left, right] : llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract())) {
      int64_t factor = builder.reduced(lhs[left]);
      builder.operand(0, left, factor);
      builder.operand(1, right, factor);
    }
    auto addFree = [&](unsigned side, ArrayRef<int64_t> shape, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
        if (llvm::is_contained(batch, dim) || llvm::is_contained(contract, dim))
          continue;
        int64_t factor = builder.factor(shape[dim]);
        builder.operand(side, dim, factor);
        builder.result(0, out++, factor);
      }
    };
    addFree(0, lhs, dot.getLhsBatch(), dot.getLhsContract());
    addFree(1, rhs, dot.getRhsBatch(), dot.getRhsContract());
    return builder.linear({true, true}).take();
  }
};

/// Images N, output channels O and input channels I. With groups the channels stay whole; space always does.
struct ConvFactors {
  ConvFactors(RuleBuilder &builder, int64_t images, int64_t out, int64_t in, int64_t groups)
      : builder(builder), images(images), out(out), in(in), channels(groups == 1) {}
  void operand(unsigned index, int64_t first, bool firstShards, int64_t second) {
    if (channels || firstShards)
      builder.operand(index, 0, first);
    if (channels)
      builder.operand(index, 1, second);
  }
  void result(int64_t first, bool firstShards, int64_t second) {
    if (channels || firstShards)
      builder.result(0, 0, first);
    if (channels)
      builder.result(0, 1, second);
  }
  RuleBuilder &builder;
  int64_t images, out, in;
  bool channels;
};

struct Conv2dRule : RuleModel<Conv2dRule, Conv2dOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto conv = cast<Conv2dOp>(op);
    RuleBuilder builder(op);
    ConvFactors f(builder, builder.factor(shapeOf(conv.getInput())[0]), builder.factor(shapeOf(conv.getFilter())[0]),
                  builder.reduced(shapeOf(conv.getInput())[1]), conv.getGroups());
    f.operand(0, f.images, true, f.in);
    f.operand(1, f.out, false, f.in);
    f.result(f.images, true, f.out);
    return builder.linear({true, true}).take();
  }
};

struct Conv2dInputGradRule : RuleModel<Conv2dInputGradRule, Conv2dInputGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto conv = cast<Conv2dInputGradOp>(op);
    RuleBuilder builder(op);
    ConvFactors f(builder, builder.factor(shapeOf(conv.getOutputGrad())[0]),
                  builder.reduced(shapeOf(conv.getFilter())[0]), builder.factor(shapeOf(conv.getResult())[1]),
                  conv.getGroups());
    f.operand(0, f.images, true, f.out);
    f.operand(1, f.out, false, f.in);
    f.result(f.images, true, f.in);
    return builder.linear({true, true}).take();
  }
};

struct Conv2dFilterGradRule : RuleModel<Conv2dFilterGradRule, Conv2dFilterGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto conv = cast<Conv2dFilterGradOp>(op);
    RuleBuilder builder(op);
    ConvFactors f(builder, builder.reduced(shapeOf(conv.getInput())[0]), builder.factor(shapeOf(conv.getResult())[0]),
                  builder.factor(shapeOf(conv.getInput())[1]), conv.getGroups());
    f.operand(0, f.images, true, f.in);
    f.operand(1, f.images, true, f.out);
    f.result(f.out, false, f.in);
    return builder.linear({true, true}).take();
  }
};

} // namespace

void registerContractRules(MLIRContext *context) {
  DotGeneralOp::attachInterface<DotGeneralRule>(*context);
  Conv2dOp::attachInterface<Conv2dRule>(*context);
  Conv2dInputGradOp::attachInterface<Conv2dInputGradRule>(*context);
  Conv2dFilterGradOp::attachInterface<Conv2dFilterGradRule>(*context);
}

} // namespace tessera::shard
