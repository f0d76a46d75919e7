//===- PartitionAttention.cpp - attention by blocks of keys that travel ---===//
//
// Ring attention (Liu, Zaharia, Abbeel, 2023): each rank keeps its queries, keys and values go from rank to rank, and
// what a block of keys gives is merged into what the blocks before gave by its log-sum-exp, in f32 (Dao et al.,
// FlashAttention-2, 2023). Keys of one rank are in ascending order, so that which of them a query sees is a range, in a
// zigzag as in plain order. In the backward pass the gradients of keys and values travel with them.
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Flops.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/interfaces/Interfaces.h"
#include "compiler/interfaces/Partition.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/partition/AttentionKeys.h"
#include "passes/shard/partition/GatheredKeys.h"
#include "passes/shard/rules/AttentionFactors.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
using tessera::dist::ReshardStep;

namespace tessera::shard {
namespace {

/// Queries and keys are the same positions: what splits one splits the other.
template <typename Op> std::vector<PartitionChoice> choicesOf(Op op) {
  if (dist::KeyGather::of(op))
    return gatherChoices(op);
  if (op.getSplit() != AttentionSplit::Ring || !ringRefusal(op).empty())
    return {};
  RuleBuilder builder(op);
  AttentionFactors factors(builder, op, AttentionFactors::Keys::WithQueries);
  const int64_t factor = factors.positions();
  builder.run(factor);
  return {{"keys travel", builder.take(), factor, /*isAsked=*/true}};
}

int64_t bytesOf(Value value, const Layout &layout, Type element, MeshAttr mesh) {
  int64_t bytes = tensorType(value).getNumElements() * element.getIntOrFloatBitWidth() / 8;
  for (const dist::Split &split : layout.dims)
    bytes /= dist::groupSize(mesh, split);
  return bytes;
}

/// One rank's part of the ring.
class Ring {
public:
  template <typename Op>
  Ring(Op op, Build &build, PartitionContext &context, ValueRange operands)
      : build(build), collectives(context.collectives), split(context.operands[0].dims[2]), axes(split.axes()),
        mesh(context.mesh), masks(op), ranks(dist::groupSize(mesh, split)) {
    typename Op::Adaptor local(operands, op);
    mask = local.getMask();
    own = collectives.position(axes);
    Value indices = collectives.indices(split, masks.queries);
    seen = seenKeys(build, masks, indices, {local.getBegin(), local.getEnd()});
    // Among its own keys, which are in the order of its queries, a rank sees what the whole sees.
    const bool isPlain = !local.getBegin() && (!masks.window || split.isRange());
    ownCausal = masks.causal && isPlain;
  }

  /// What is seen of the block that is here in a step, from the member `step` further back.
  struct Block {
    Value mask;
    SeenKeys seen;
    UnitAttr causal;
    IntegerAttr window;
    FloatAttr density;
  };
  Block blockAt(int64_t step) {
    Block block;
    Value position = positionAt(step);
    if (mask) {
      Value rows = build.moveDim(mask, 3, 0);
      block.mask = build.moveDim(build.gatherRows(rows, collectives.indices(split, masks.keys, position)), 0, 3);
    }
    if (step == 0 && ownCausal) {
      block.causal = build.builder.getUnitAttr();
      if (masks.window)
        block.window = build.builder.getI64IntegerAttr(*masks.window);
    } else {
      block.seen = seenKeysOf(collectives, build, seen, split, masks.keys, mesh, position);
      block.density = densityOf(block.seen);
    }
    return block;
  }
  Value pass(Value value) { return collectives.permute(value, axes, /*shift=*/1); }
  int64_t size() const { return ranks; }

private:
  /// Of what ranges leave, each rank has its share in a zigzag or as it is dealt; else some rank may see all of the
  /// block.
  FloatAttr densityOf(const SeenKeys &keys) const {
    if (!keys.begin || !masks.causal || split.isRange())
      return {};
    const double part = seenPart(true, masks.window, std::nullopt, static_cast<double>(masks.keys));
    return build.builder.getF64FloatAttr(part);
  }
  Value positionAt(int64_t step) {
    if (step == 0)
      return own;
    auto type = tensorType(own);
    auto number = [&](int64_t value) { return build.constant(DenseElementsAttr::get(type, value)); };
    Value back = build.sub(own, number(step));
    Value isBelow = build.compare(CompareDirection::Lt, back, number(0));
    return build.select(isBelow, build.add(back, number(ranks)), back);
  }

  Build &build;
  dist::CollectiveBuilder &collectives;
  const dist::Split &split;
  const dist::Axes axes;
  MeshAttr mesh;
  AttentionMasks masks;
  int64_t ranks;
  Value mask, own;
  SeenKeys seen;
  bool ownCausal;
};

/// What blocks so far add up to. Behind a barrier, so that it is computed then: one kernel for all blocks would keep
/// what each of them gives until the last one.
Value soFar(Build &build, Value sum) {
  return BarrierOp::create(build.builder, build.loc, sum.getType(), sum, StringAttr());
}

/// The result and the log-sum-exp of a row's keys so far.
struct Partial {
  Value result, lse;
};

/// Both are weighted by exp(lse), relative to the larger one. Where neither has seen a key, the weights are 0.
Partial merge(Build &build, const Partial &a, const Partial &b) {
  Value none = build.splatLike(a.lse, -std::numeric_limits<double>::infinity());
  Value top = build.max(a.lse, b.lse);
  top = build.select(build.compare(CompareDirection::Eq, top, none), build.splatLike(top, 0.0), top);
  Value weightA = build.exp(build.sub(a.lse, top)), weightB = build.exp(build.sub(b.lse, top));
  Value total = build.add(weightA, weightB); // 0, or at least 1
  Value scale = build.div(build.splatLike(total, 1.0), build.max(total, build.splatLike(total, 1.0)));
  auto weighted = [&](Value result, Value weight) {
    return build.mul(result, build.broadcastReduced(build.mul(weight, scale), shapeOf(result), {3}));
  };
  return {build.add(weighted(a.result, weightA), weighted(b.result, weightB)),
          build.add(top, build.unary<LogOp>(total))};
}

struct AttentionRing : PartitionOpInterface::ExternalModel<AttentionRing, AttentionOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const { return choicesOf(cast<AttentionOp>(op)); }

  SmallVector<PartitionCollective> getPartitionCollectives(Operation *op, unsigned, ArrayRef<Layout> operands,
                                                           ArrayRef<Layout>, MeshAttr mesh) const {
    if (dist::KeyGather::of(op))
      return gatherCollectives(op, operands, mesh);
    SmallVector<PartitionCollective> sent;
    const dist::Axes axes = operands[0].dims[2].axes();
    for (unsigned number : {1, 2}) {
      Value operand = op->getOperand(number);
      sent.push_back({std::nullopt, axes,
                      bytesOf(operand, operands[number], tensorType(operand).getElementType(), mesh),
                      dist::groupSize(mesh, axes) - 1});
    }
    return sent;
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *operation, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    if (dist::KeyGather::of(operation))
      return buildGathered(operation, builder, operands, types, context);
    auto op = cast<AttentionOp>(operation);
    Build build(builder, op.getLoc());
    AttentionOp::Adaptor local(operands, op);
    Ring ring(op, build, context, operands);
    auto resultType = cast<RankedTensorType>(types[0]);
    const Type sumType = accumulationType(resultType.getElementType());
    Value key = local.getKey(), value = local.getValue();
    Partial all;
    for (int64_t step = 0; step < ring.size(); ++step) {
      const bool isLast = step + 1 == ring.size();
      Value nextKey = isLast ? Value() : ring.pass(key), nextValue = isLast ? Value() : ring.pass(value);
      const Ring::Block block = ring.blockAt(step);
      auto part = AttentionOp::create(builder, op.getLoc(), resultType.clone(sumType), types[1], local.getQuery(), key,
                                      value, block.mask, block.seen.begin, block.seen.end, op.getScaleAttr(),
                                      block.causal, block.window, block.density, AttentionSplitAttr());
      const Partial next{part.getResult(), part.getLse()};
      all = step == 0 ? next : merge(build, all, next);
      if (step != 0 && !isLast)
        all = {soFar(build, all.result), soFar(build, all.lse)};
      key = nextKey;
      value = nextValue;
    }
    return SmallVector<Value>{build.convert(all.result, resultType.getElementType()), all.lse};
  }
};

struct AttentionGradRing : PartitionOpInterface::ExternalModel<AttentionGradRing, AttentionGradOp> {
  std::vector<PartitionChoice> getPartitionChoices(Operation *op) const { return choicesOf(cast<AttentionGradOp>(op)); }

  SmallVector<PartitionCollective> getPartitionCollectives(Operation *op, unsigned, ArrayRef<Layout> operands,
                                                           ArrayRef<Layout>, MeshAttr mesh) const {
    if (dist::KeyGather::of(op))
      return gatherCollectives(op, operands, mesh);
    SmallVector<PartitionCollective> sent;
    const dist::Axes axes = operands[0].dims[2].axes();
    const int64_t ranks = dist::groupSize(mesh, axes);
    for (unsigned number : {1, 2}) {
      Value operand = op->getOperand(number);
      Type element = tensorType(operand).getElementType();
      sent.push_back({std::nullopt, axes, bytesOf(operand, operands[number], element, mesh), ranks - 1});
      sent.push_back({std::nullopt, axes, bytesOf(operand, operands[number], accumulationType(element), mesh), ranks});
    }
    return sent;
  }

  FailureOr<SmallVector<Value>> buildPartition(Operation *operation, unsigned, OpBuilder &builder, ValueRange operands,
                                               TypeRange types, PartitionContext &context) const {
    if (dist::KeyGather::of(operation))
      return buildGathered(operation, builder, operands, types, context);
    auto op = cast<AttentionGradOp>(operation);
    Build build(builder, op.getLoc());
    AttentionGradOp::Adaptor local(operands, op);
    Ring ring(op, build, context, operands);
    SmallVector<Type> sumTypes;
    for (Type type : types) {
      auto own = cast<RankedTensorType>(type);
      sumTypes.push_back(own.clone(accumulationType(own.getElementType())));
    }
    Value key = local.getKey(), value = local.getValue();
    Value queryGrad, keyGrad, valueGrad;
    for (int64_t step = 0; step < ring.size(); ++step) {
      const bool isLast = step + 1 == ring.size();
      // What other ranks made of this block's gradients comes behind it, and is waited for before the next block is.
      Value passedKey = step == 0 ? Value() : ring.pass(keyGrad),
            passedValue = step == 0 ? Value() : ring.pass(valueGrad);
      Value nextKey = isLast ? Value() : ring.pass(key), nextValue = isLast ? Value() : ring.pass(value);
      const Ring::Block block = ring.blockAt(step);
      auto part = AttentionGradOp::create(builder, op.getLoc(), sumTypes[0], sumTypes[1], sumTypes[2], local.getQuery(),
                                          key, value, block.mask, block.seen.begin, block.seen.end, local.getOutput(),
                                          local.getLse(), local.getOutputGrad(), op.getScaleAttr(), block.causal,
                                          block.window, block.density, AttentionSplitAttr(), builder.getUnitAttr());
      auto add = [&](Value sum, Value next) { return sum ? build.add(sum, next) : next; };
      queryGrad = add(queryGrad, part.getQueryGrad());
      if (step != 0 && !isLast)
        queryGrad = soFar(build, queryGrad);
      keyGrad = add(passedKey, part.getKeyGrad());
      valueGrad = add(passedValue, part.getValueGrad());
      key = nextKey;
      value = nextValue;
    }
    // The last rank that a block was on is the one before its own.
    SmallVector<Value> sums{queryGrad, ring.pass(keyGrad), ring.pass(valueGrad)};
    for (auto [sum, type] : llvm::zip_equal(sums, types))
      sum = build.convert(sum, cast<RankedTensorType>(type).getElementType());
    return sums;
  }
};

} // namespace

void registerAttentionPartitions(MLIRContext *context) {
  AttentionOp::attachInterface<AttentionRing>(*context);
  AttentionGradOp::attachInterface<AttentionGradRing>(*context);
}

} // namespace tessera::shard
