#include "passes/shard/rules/Rules.h"
#include "passes/shard/Passes.h"

using namespace mlir;

namespace tessera {
namespace shard {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

RuleBuilder::RuleBuilder(Operation *op) {
  for (Value operand : op->getOperands())
    rule.operands.emplace_back().resize(shapeOf(operand).size());
  for (Value result : op->getResults())
    rule.results.emplace_back().resize(shapeOf(result).size());
  rule.reductions.resize(rule.results.size());
}

int64_t RuleBuilder::reduced(int64_t size, dist::ReductionKind kind) {
  const int64_t number = factor(size);
  for (unsigned result = 0; result < rule.results.size(); ++result)
    reduce(result, number, kind);
  return number;
}

RuleBuilder &RuleBuilder::passesMaxima(ArrayRef<bool> operands) {
  rule.maxima.assign(operands.begin(), operands.end());
  return *this;
}

RuleBuilder &RuleBuilder::passesMinima(ArrayRef<bool> operands) {
  rule.minima.assign(operands.begin(), operands.end());
  return *this;
}

RuleBuilder &RuleBuilder::monotone(ArrayRef<bool> operands) { return passesMaxima(operands).passesMinima(operands); }

RuleBuilder &RuleBuilder::linear(ArrayRef<bool> operands) {
  rule.linear.assign(operands.begin(), operands.end());
  return *this;
}

RuleBuilder &RuleBuilder::jointlyLinear(ArrayRef<bool> operands) {
  rule.jointlyLinear = true;
  return linear(operands);
}

RuleBuilder pointwise(Operation *op) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t factor = builder.factor(size);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (shapeOf(op->getOperand(i)).size() == shape.size())
        builder.operand(i, dim, factor);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      builder.result(i, dim, factor);
  }
  return builder;
}

} // namespace shard

void registerShardingRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *) {
    shard::registerElementwiseRules(context);
    shard::registerShapeRules(context);
    shard::registerReduceRules(context);
    shard::registerContractRules(context);
    shard::registerNeuralRules(context);
    shard::registerStateRules(context);
    shard::registerLossPartitions(context);
    shard::registerAttentionPartitions(context);
    shard::registerRowPartitions(context);
  });
}

} // namespace tessera
