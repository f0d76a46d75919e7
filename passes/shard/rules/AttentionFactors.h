//===- AttentionFactors.h - the factors of attention's dimensions -*- C++ -*-===//

#ifndef TESSERA_PASSES_SHARD_RULES_ATTENTIONFACTORS_H
#define TESSERA_PASSES_SHARD_RULES_ATTENTIONFACTORS_H

#include "passes/shard/rules/Rules.h"

namespace tessera::shard {

/// Batch, heads and positions of queries pass; channels stay whole. Query head h reads key head h / (H/G), so the
/// query's heads are the product of the key's heads and the group size. A rank that has some of the heads of a group,
/// or some of the queries, has a part of the sum that is the gradient of a key.
class AttentionFactors {
public:
  enum class Keys {
    Whole,       ///< along the sequence
    WithQueries, ///< split as the queries are
  };

  /// Says it of all operands and results of an `attention` or `attention_grad`.
  template <typename Op>
  AttentionFactors(RuleBuilder &builder, Op op, Keys keys)
      : builder(builder), keys(keys), query(op.getQuery().getType()), batch(builder.factor(query.getDimSize(0))),
        groups(builder.factor(op.getKey().getType().getDimSize(1))),
        headsPerGroup(builder.factor(query.getDimSize(1) / op.getKey().getType().getDimSize(1))),
        rows(builder.factor(query.getDimSize(2))) {
    queryOperand(0);
    keyOperand(1);
    keyOperand(2);
    unsigned next = 3;
    if (op.getMask())
      maskOperand(next++, op.getMask().getType());
    for (auto bound : {op.getBegin(), op.getEnd()})
      if (bound)
        boundOperand(next++, bound.getType());
    if constexpr (std::is_same_v<Op, train::AttentionGradOp>) {
      for (unsigned end = next + 3; next < end; ++next)
        queryOperand(next); // output, lse, output_grad
      queryResult(0);
      keyResult(1);
      keyResult(2);
    } else {
      queryResult(0);
      queryResult(1);
    }
  }

  /// The factor of the queries' positions.
  int64_t positions() const { return rows; }

private:
  void queryOperand(unsigned index) {
    builder.operand(index, 0, batch);
    builder.operand(index, 1, groups);
    builder.operand(index, 1, headsPerGroup);
    builder.operand(index, 2, rows);
  }
  void keyOperand(unsigned index) {
    builder.operand(index, 0, batch);
    builder.operand(index, 1, groups);
    if (keys == Keys::WithQueries)
      builder.operand(index, 2, rows);
  }
  void maskOperand(unsigned index, mlir::RankedTensorType mask) {
    if (mask.getDimSize(0) == query.getDimSize(0))
      builder.operand(index, 0, batch);
    if (mask.getDimSize(1) == query.getDimSize(1)) {
      builder.operand(index, 1, groups);
      builder.operand(index, 1, headsPerGroup);
    }
    if (mask.getDimSize(2) == query.getDimSize(2))
      builder.operand(index, 2, rows);
  }
  void boundOperand(unsigned index, mlir::RankedTensorType bound) {
    if (bound.getDimSize(0) == query.getDimSize(0))
      builder.operand(index, 0, batch);
    builder.operand(index, 1, rows);
  }
  void queryResult(unsigned index) {
    builder.result(index, 0, batch);
    builder.result(index, 1, groups);
    builder.result(index, 1, headsPerGroup);
    builder.result(index, 2, rows);
  }
  /// Gradients of keys and values: sums over the heads of a group, and over queries.
  void keyResult(unsigned index) {
    builder.result(index, 0, batch);
    builder.result(index, 1, groups);
    builder.reduce(index, headsPerGroup);
    if (keys == Keys::WithQueries)
      builder.result(index, 2, rows);
    else
      builder.reduce(index, rows);
  }

  RuleBuilder &builder;
  Keys keys;
  mlir::RankedTensorType query;
  int64_t batch, groups, headsPerGroup, rows;
};

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_RULES_ATTENTIONFACTORS_H
