//===- RulesReduce.cpp - reductions and row indexing ----------------------===//

#include "passes/shard/rules/Rules.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

struct ReduceRule : RuleModel<ReduceRule, ReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reduce = cast<ReduceOp>(op);
    const std::optional<dist::ReductionKind> kind = kindOf(reduce.getKind());
    RuleBuilder builder(op);
    int64_t kept = 0;
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
      bool reduced = llvm::is_contained(reduce.getDimensions(), static_cast<int64_t>(dim));
      int64_t factor = !reduced ? builder.factor(size)
                       : kind   ? builder.reduced(size, *kind)
                                : builder.factor(size, FactorKind::NeedReplication);
      builder.operand(0, dim, factor);
      if (!reduced)
        builder.result(0, kept++, factor);
    }
    if (kind == dist::ReductionKind::Sum)
      builder.linear({true});
    else if (kind == dist::ReductionKind::Max)
      builder.passesMaxima({true});
    else if (kind == dist::ReductionKind::Min)
      builder.passesMinima({true});
    return builder.take();
  }

private:
  /// Ranks make no products of what they hold.
  static std::optional<dist::ReductionKind> kindOf(ReduceKind kind) {
    switch (kind) {
    case ReduceKind::Sum:
      return dist::ReductionKind::Sum;
    case ReduceKind::Max:
      return dist::ReductionKind::Max;
    case ReduceKind::Min:
      return dist::ReductionKind::Min;
    case ReduceKind::Mul:
      return std::nullopt;
    }
    llvm_unreachable("unknown reduction");
  }
};

struct ArgmaxRule : RuleModel<ArgmaxRule, ArgmaxOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t kept = 0;
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
      if (dim == cast<ArgmaxOp>(op).getDim())
        continue;
      int64_t factor = builder.factor(size);
      builder.operand(0, dim, factor);
      builder.result(0, kept++, factor);
    }
    return builder.take();
  }
};

/// The sorted dimension is whole on every rank, the others pass.
struct SortIndicesRule : RuleModel<SortIndicesRule, SortIndicesOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
      if (dim == cast<SortIndicesOp>(op).getDim())
        continue;
      int64_t factor = builder.factor(size);
      builder.operand(0, dim, factor);
      builder.result(0, dim, factor);
    }
    return builder.take();
  }
};

/// At least 1, hence not linear. annotate-sharding writes it out as a sum and a maximum, which can be sharded.
struct CountValidRule : RuleModel<CountValidRule, CountValidOp> {
  ShardingRule getShardingRule(Operation *op) const { return RuleBuilder(op).take(); }
};

/// The table's rows are whole on every rank; the index dimensions and the trailing dimensions pass.
struct GatherRowsRule : RuleModel<GatherRowsRule, GatherRowsOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t indexRank = shapeOf(op->getOperand(1)).size();
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
      int64_t factor = builder.factor(size);
      builder.result(0, dim, factor);
      if (static_cast<int64_t>(dim) < indexRank)
        builder.operand(1, dim, factor);
      else
        builder.operand(0, dim - indexRank + 1, factor);
    }
    return builder.linear({true, false}).take();
  }
};

/// Each rank adds its own rows: the result is a partial sum over the axes that split the rows.
struct ScatterAddRowsRule : RuleModel<ScatterAddRowsRule, ScatterAddRowsOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t indexRank = shapeOf(op->getOperand(1)).size();
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(2)))) {
      bool row = static_cast<int64_t>(dim) < indexRank;
      int64_t factor = row ? builder.reduced(size) : builder.factor(size);
      builder.operand(2, dim, factor);
      if (row) {
        builder.operand(1, dim, factor);
      } else {
        builder.operand(0, dim - indexRank + 1, factor);
        builder.result(0, dim - indexRank + 1, factor);
      }
    }
    return builder.jointlyLinear({true, false, true}).take();
  }
};

} // namespace

void registerReduceRules(MLIRContext *context) {
  ReduceOp::attachInterface<ReduceRule>(*context);
  ArgmaxOp::attachInterface<ArgmaxRule>(*context);
  SortIndicesOp::attachInterface<SortIndicesRule>(*context);
  CountValidOp::attachInterface<CountValidRule>(*context);
  GatherRowsOp::attachInterface<GatherRowsRule>(*context);
  ScatterAddRowsOp::attachInterface<ScatterAddRowsRule>(*context);
}

} // namespace tessera::shard
