//===- PartitionLoss.cpp - softmax and cross-entropy over split classes ---===//
//
// The statistics of a row are a maximum and sums: each rank takes them of its classes, and the group reduces them.
// Ranks add up in another order than one rank does, so that results agree to rounding, not to the bit.
//
//===----------------------------------------------------------------------===//

#include "compiler/interfaces/Partition.h"
#include "passes/shard/rules/Rules.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
using tessera::dist::ReductionKind;
using tessera::dist::ReshardStep;
using tessera::dist::Split;

namespace tessera::shard {
namespace {

template <typename Model, typename Op> using PartitionModel = PartitionOpInterface::ExternalModel<Model, Op>;

/// `count` all-reduces of one statistic for each row.
SmallVector<PartitionCollective> reduceRows(unsigned count, Value rows, const Layout &layout, int64_t dim,
                                            MeshAttr mesh) {
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t bytes = accumulationType(type.getElementType()).getIntOrFloatBitWidth() / 8;
  for (auto [index, split] : llvm::enumerate(layout.dims))
    if (static_cast<int64_t>(index) != dim)
      bytes *= type.getDimSize(index) / dist::groupSize(mesh, split);
  return SmallVector<PartitionCollective>(count, {ReshardStep::Kind::AllReduce, layout.dims[dim].axes(), bytes});
}

struct SoftmaxPartition : PartitionModel<SoftmaxPartition, SoftmaxOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const {
    return {{"normalised over ranks", pointwise(op).take(), static_cast<int64_t>(cast<SoftmaxOp>(op).getDim())}};
  }

  SmallVector<PartitionCollective> getPartitionCollectives(Operation *op, unsigned, ArrayRef<Layout> operands,
                                                           ArrayRef<Layout>, MeshAttr mesh) const {
    return reduceRows(2, op->getOperand(0), operands[0], cast<SoftmaxOp>(op).getDim(), mesh);
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *op, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    const int64_t dim = cast<SoftmaxOp>(op).getDim();
    const dist::Axes axes = context.operands[0].dims[dim].axes();
    Type element = tensorType(operands[0]).getElementType();
    Build build(builder, op->getLoc());
    Value x = build.convert(operands[0], accumulationType(element));
    auto perRow = [&](Value row) { return build.broadcastReduced(row, shapeOf(x), {dim}); };
    Value top = context.collectives.allReduce(build.reduce(ReduceKind::Max, x, {dim}), axes, ReductionKind::Max);
    Value power = build.exp(build.sub(x, perRow(top)));
    Value total = context.collectives.allReduce(build.sum(power, {dim}), axes);
    return SmallVector<Value>{build.convert(build.div(power, perRow(total)), element)};
  }
};

/// The logit of a row's target lies on one rank: it is a sum to which the others add nothing.
struct CrossEntropyPartition : PartitionModel<CrossEntropyPartition, CrossEntropyOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
    const int64_t rows = builder.factor(shape[0]), classes = builder.factor(shape[1], FactorKind::Internal);
    builder.operand(0, 0, rows);
    builder.operand(0, 1, classes);
    builder.operand(1, 0, rows);
    builder.result(0, 0, rows);
    builder.result(1, 0, rows);
    builder.ordered(classes);
    return {{"classes stay split", builder.take(), classes}};
  }

  SmallVector<PartitionCollective> getPartitionCollectives(Operation *op, unsigned, ArrayRef<Layout> operands,
                                                           ArrayRef<Layout>, MeshAttr mesh) const {
    return reduceRows(isSmoothed(op) ? 4 : 3, op->getOperand(0), operands[0], 1, mesh);
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *op, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    auto loss = cast<CrossEntropyOp>(op);
    const Split &split = context.operands[0].dims[1];
    const dist::Axes classes = split.axes();
    const int64_t numClasses = loss.getLogits().getType().getDimSize(1);
    dist::CollectiveBuilder &collectives = context.collectives;
    Build build(builder, op->getLoc());
    Value x = build.convert(operands[0], accumulationType(loss.getLogits().getType().getElementType()));
    auto perRow = [&](Value row) { return build.broadcastReduced(row, shapeOf(x), {1}); };

    // log sum exp; a row without a class above -inf has -inf.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Value top = collectives.allReduce(build.reduce(ReduceKind::Max, x, {1}), classes, ReductionKind::Max);
    Value isEmpty = build.compare(CompareDirection::Eq, top, build.splatLike(top, -infinity));
    Value shift = build.select(isEmpty, build.splatLike(top, 0.0), top);
    Value total = collectives.allReduce(build.sum(build.exp(build.sub(x, perRow(shift))), {1}), classes);
    Value lse = build.add(shift, build.unary<LogOp>(total));

    // Narrow targets may not hold every class, but what they hold are numbers of classes.
    Type index = tensorType(operands[1]).getElementType();
    if (index.getIntOrFloatBitWidth() < 32)
      index = builder.getI32Type();
    Value target = build.convert(operands[1], index);
    Value first = build.convert(collectives.firstElement(split, numClasses), index);
    Value own = build.sub(target, build.broadcastTo(first, shapeOf(target)));
    Value isTarget = build.compare(CompareDirection::Eq, build.iota(tensorType(x).clone(index), 1), perRow(own));
    Value picked = collectives.allReduce(build.sum(build.select(isTarget, x, build.splatLike(x, 0.0)), {1}), classes);

    const double smoothing = loss.getLabelSmoothing().convertToDouble();
    Value result = build.sub(lse, smoothing == 0.0 ? picked : build.scale(picked, 1.0 - smoothing));
    if (isSmoothed(op)) {
      Value sum = collectives.allReduce(build.sum(x, {1}), classes);
      result = build.sub(result, build.scale(sum, smoothing / static_cast<double>(numClasses)));
    }
    if (std::optional<uint64_t> ignored = loss.getIgnoreIndex()) {
      Value isIgnored =
          build.compare(CompareDirection::Eq, operands[1],
                        build.splatLike(operands[1], static_cast<double>(static_cast<int64_t>(*ignored))));
      result = build.select(isIgnored, build.splatLike(result, 0.0), result);
    }
    return SmallVector<Value>{build.convert(result, cast<RankedTensorType>(types[0]).getElementType()),
                              build.convert(lse, cast<RankedTensorType>(types[1]).getElementType())};
  }

private:
  static bool isSmoothed(Operation *op) { return !cast<CrossEntropyOp>(op).getLabelSmoothing().isZero(); }
};

} // namespace

void registerLossPartitions(MLIRContext *context) {
  SoftmaxOp::attachInterface<SoftmaxPartition>(*context);
  CrossEntropyOp::attachInterface<CrossEntropyPartition>(*context);
}

} // namespace tessera::shard
