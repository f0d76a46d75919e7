//===- PartitionRows.cpp - tables whose rows are split --------------------===//
//
// Each rank looks up the rows that it has, and keeps the gradients of these. Indices are in range:
// annotate-index-bounds has seen to it.
//
//===----------------------------------------------------------------------===//

#include "compiler/interfaces/Partition.h"
#include "passes/shard/rules/Rules.h"

using namespace mlir;
using namespace tessera::train;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;

namespace tessera::shard {
namespace {

template <typename Model, typename Op> struct RowPartition : PartitionOpInterface::ExternalModel<Model, Op> {
  SmallVector<PartitionCollective> getPartitionCollectives(Operation *, unsigned, ArrayRef<Layout>, ArrayRef<Layout>,
                                                           MeshAttr) const {
    return {};
  }
};

/// Indices into a rank's rows.
struct OwnIndices {
  Value isOwn; ///< the rank has the row
  Value rows;  ///< where it has not, its row 0
};

/// `indices` into a table of `numRows` rows, of which a rank has those that `split` gives it.
OwnIndices findOwn(Build &build, dist::CollectiveBuilder &collectives, Value indices, const dist::Split &split,
                   int64_t numRows, int64_t ownRows) {
  // Narrow indices may not hold every row, but what they hold are numbers of rows.
  Type type = tensorType(indices).getElementType();
  if (type.getIntOrFloatBitWidth() < 32)
    type = build.builder.getI32Type();
  indices = build.convert(indices, type);
  Value first = build.convert(collectives.firstElement(split, numRows), type);
  Value rows = build.sub(indices, build.broadcastTo(first, shapeOf(indices)));
  Value zero = build.splatLike(rows, 0.0), end = build.splatLike(rows, static_cast<double>(ownRows));
  Value isOwn =
      build.mul(build.compare(CompareDirection::Ge, rows, zero), build.compare(CompareDirection::Lt, rows, end));
  return {isOwn, build.select(isOwn, rows, zero)};
}

/// A value per index for all elements of its row.
Value perElement(Build &build, Value perIndex, ArrayRef<int64_t> shape) {
  return build.broadcast(perIndex, shape, llvm::to_vector(llvm::seq<int64_t>(0, tensorType(perIndex).getRank())));
}

/// A row that a rank does not have is 0 there: what is looked up is a partial sum.
struct GatherRowsPartition : RowPartition<GatherRowsPartition, GatherRowsOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    const int64_t rows = rule.addFactor(shapeOf(op->getOperand(0))[0]);
    rule.factors[rows].isOrdered = true;
    rule.operands[0][0].push_back(rows);
    rule.reductions[0].push_back({rows, dist::ReductionKind::Sum});
    return {{"rows stay split", std::move(rule), rows}};
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *op, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    Value table = operands[0];
    Build build(builder, op->getLoc());
    OwnIndices own = findOwn(build, context.collectives, operands[1], context.operands[0].dims[0],
                             shapeOf(op->getOperand(0))[0], shapeOf(table)[0]);
    Value rows = build.gatherRows(table, own.rows);
    return SmallVector<Value>{
        build.select(perElement(build, own.isOwn, shapeOf(rows)), rows, build.splatLike(rows, 0.0))};
  }
};

/// Each rank adds what belongs to its rows; all see all updates.
struct ScatterAddRowsPartition : RowPartition<ScatterAddRowsPartition, ScatterAddRowsOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    const int64_t rows = rule.addFactor(shapeOf(op->getOperand(0))[0]);
    rule.factors[rows].isOrdered = true;
    rule.operands[0][0].push_back(rows);
    rule.results[0][0].push_back(rows);
    return {{"rows stay split", std::move(rule), rows}};
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *op, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    Value init = operands[0], updates = operands[2];
    Build build(builder, op->getLoc());
    OwnIndices own = findOwn(build, context.collectives, operands[1], context.results[0].dims[0],
                             shapeOf(op->getOperand(0))[0], shapeOf(init)[0]);
    updates = build.select(perElement(build, own.isOwn, shapeOf(updates)), updates, build.splatLike(updates, 0.0));
    return SmallVector<Value>{ScatterAddRowsOp::create(builder, op->getLoc(), types[0], init, own.rows, updates)};
  }
};

} // namespace

void registerRowPartitions(MLIRContext *context) {
  GatherRowsOp::attachInterface<GatherRowsPartition>(*context);
  ScatterAddRowsOp::attachInterface<ScatterAddRowsPartition>(*context);
}

} // namespace tessera::shard
