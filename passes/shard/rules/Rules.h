//===- Rules.h - how the sharding rules of train ops are written -*- C++ -*-===//

#ifndef TESSERA_PASSES_SHARD_RULES_RULES_H
#define TESSERA_PASSES_SHARD_RULES_RULES_H

#include "compiler/dialect/train/Train.h"
#include "compiler/interfaces/Interfaces.h"

namespace tessera::shard {

/// A rule under construction. At first no dimension of any tensor can be sharded.
class RuleBuilder {
public:
  explicit RuleBuilder(mlir::Operation *op);

  int64_t factor(int64_t size, FactorKind kind = FactorKind::PassThrough) { return rule.addFactor(size, kind); }
  /// A factor that every result reduces.
  int64_t reduced(int64_t size, dist::ReductionKind kind = dist::ReductionKind::Sum);
  /// Result `index` reduces the factor, which it does not have.
  void reduce(unsigned index, int64_t factor, dist::ReductionKind kind = dist::ReductionKind::Sum) {
    rule.reductions[index].push_back({factor, kind});
  }
  /// The op knows the place of an element along the factor.
  void ordered(int64_t factor) { rule.factors[factor].isOrdered = true; }
  /// The op knows which elements a part has, if it is one range or one of each half.
  void run(int64_t factor) { rule.factors[factor].isRun = true; }
  /// The next minor factor of a dimension.
  void operand(unsigned index, int64_t dim, int64_t factor) { rule.operands[index][dim].push_back(factor); }
  void result(unsigned index, int64_t dim, int64_t factor) { rule.results[index][dim].push_back(factor); }
  /// Partial sums pass through these operands, each while the others are fixed.
  RuleBuilder &linear(llvm::ArrayRef<bool> operands);
  /// Partial sums pass through these operands if all of them are partial sums.
  RuleBuilder &jointlyLinear(llvm::ArrayRef<bool> operands);
  /// Partial maxima and minima pass through these operands.
  RuleBuilder &monotone(llvm::ArrayRef<bool> operands);
  RuleBuilder &passesMaxima(llvm::ArrayRef<bool> operands);
  RuleBuilder &passesMinima(llvm::ArrayRef<bool> operands);
  ShardingRule take() {
    assert(rule.isComplete() && "a result would differ between ranks");
    return std::move(rule);
  }

private:
  ShardingRule rule;
};

/// One factor per dimension, shared by all results and all operands of the first result's rank.
RuleBuilder pointwise(mlir::Operation *op);
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);

template <typename Model, typename Op> using RuleModel = ShardingRuleOpInterface::ExternalModel<Model, Op>;

void registerElementwiseRules(mlir::MLIRContext *context);
void registerShapeRules(mlir::MLIRContext *context);
void registerReduceRules(mlir::MLIRContext *context);
void registerContractRules(mlir::MLIRContext *context);
void registerNeuralRules(mlir::MLIRContext *context);
void registerStateRules(mlir::MLIRContext *context);
void registerLossPartitions(mlir::MLIRContext *context);
void registerAttentionPartitions(mlir::MLIRContext *context);
void registerRowPartitions(mlir::MLIRContext *context);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_RULES_RULES_H
