#include "passes/shard/partition/GatheredKeys.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/shard/partition/AttentionKeys.h"
#include "passes/shard/rules/AttentionFactors.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;
using tessera::dist::KeyGather;
using tessera::dist::Layout;
using tessera::dist::ReshardStep;

namespace tessera::shard {
namespace {

/// Dimensions of queries, keys, values, results and masks.
constexpr int64_t kHeads = 1, kPositions = 2;

/// Calls `function` with `op` as what it is.
template <typename Function> auto onAttention(Operation *op, Function function) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return function(attention);
  return function(cast<AttentionGradOp>(op));
}

int64_t bytesOf(ArrayRef<int64_t> shape, Type element) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  for (int64_t size : shape)
    bytes *= size;
  return bytes;
}

Layout withoutPositions(Layout layout) {
  layout.dims[kPositions].clear();
  return layout;
}

/// One rank's attention, or gradient, block of heads by block of heads.
template <typename Op> class HeadBlocks {
public:
  HeadBlocks(Op op, Build &build, PartitionContext &context, ValueRange operands, TypeRange types)
      : op(op), build(build), context(context), operands(operands), types(types), gather(KeyGather::of(op)),
        key(op.getKeyMutable().getOperandNumber()), value(op.getValueMutable().getOperandNumber()),
        keyHeads(shapeOf(operands[key])[kHeads]), perKey(shapeOf(operands[0])[kHeads] / keyHeads),
        positions(shapeOf(op.getKey())[kPositions]) {
    const dist::Split &split = context.operands[0].dims[kPositions];
    typename Op::Adaptor local(operands, op);
    const AttentionMasks masks(op);
    Value indices = masks.causal ? context.collectives.indices(split, masks.queries) : Value();
    seen = seenKeys(build, masks, indices, {local.getBegin(), local.getEnd()});
    isBalanced = !split.isRange();
    chooseBlocks();
  }

  SmallVector<Value> run() {
    SmallVector<SmallVector<Value>> parts(op->getNumResults());
    Gathered keys = gatherBlock(0);
    for (int64_t first = 0; first < keyHeads; first += heads) {
      const int64_t next = first + heads;
      Gathered ahead = next < keyHeads ? gatherBlock(next) : Gathered();
      Op part = compute(first, keys);
      for (OpResult result : part->getResults())
        parts[result.getResultNumber()].push_back(isOfKeys(result.getResultNumber()) ? scatter(result) : result);
      keys = std::move(ahead);
    }
    SmallVector<Value> results;
    for (ArrayRef<Value> each : parts)
      results.push_back(each.size() == 1 ? each.front() : build.concat(each, kHeads));
    return results;
  }

private:
  static constexpr bool isGradient = std::is_same_v<Op, AttentionGradOp>;
  /// Whether a result is a gradient of keys or values.
  static bool isOfKeys(unsigned result) { return isGradient && result > 0; }

  /// What keys and values cross ranks in, and the sum of their gradients.
  Type sentType(Value local) const { return gather.type ? gather.type : tensorType(local).getElementType(); }

  /// As many key heads as may be gathered at a time, at least one; of equal blocks, or of a smaller last one.
  void chooseBlocks() {
    heads = keyHeads;
    if (gather.bytes == 0)
      return;
    int64_t bytes = 0; // of one key head
    for (unsigned number : {key, value}) {
      SmallVector<int64_t> shape(shapeOf(operands[number]));
      shape[kHeads] = 1;
      shape[kPositions] = positions;
      bytes += bytesOf(shape, sentType(operands[number])) * (isGradient ? 2 : 1);
    }
    const int64_t fitting = std::clamp<int64_t>(gather.bytes / bytes, 1, keyHeads);
    heads = llvm::divideCeil(keyHeads, llvm::divideCeil(keyHeads, fitting));
    if (bytes > gather.bytes)
      op->emitRemark() << "keys and values of one head at a time" << (isGradient ? ", with their gradients," : "")
                       << " take " << bytes << " bytes, " << bytes - gather.bytes << " more than the " << gather.bytes
                       << " that they may";
  }

  /// `count` heads of `local` from `first` on.
  Value headsOf(Value local, int64_t first, int64_t count) {
    const ArrayRef<int64_t> shape = shapeOf(local);
    if (shape[kHeads] == count)
      return local;
    SmallVector<int64_t> starts(shape.size(), 0), limits = llvm::to_vector(shape);
    starts[kHeads] = first;
    limits[kHeads] = first + count;
    return build.slice(local, starts, limits);
  }

  int64_t countAt(int64_t first) const { return std::min(heads, keyHeads - first); }

  /// Keys and values of a block, of all ranks.
  struct Gathered {
    Value key, value;
    SmallVector<Operation *> arrival; ///< what puts in order what has arrived; it waits for that
  };

  /// Of the block that begins with key head `first`.
  Gathered gatherBlock(int64_t first) {
    Gathered block;
    Block &ops = *build.builder.getInsertionBlock();
    auto gathered = [&](unsigned number) {
      Value own = headsOf(operands[number], first, countAt(first));
      const Layout &layout = context.operands[number];
      Value sent = build.convert(own, sentType(own));
      Operation *last = ops.empty() ? nullptr : &ops.back();
      Value whole = build.convert(context.collectives.reshard(sent, layout, withoutPositions(layout)),
                                  tensorType(own).getElementType());
      auto behind = [&] { return llvm::make_range(last ? std::next(last->getIterator()) : ops.begin(), ops.end()); };
      for (Operation &each : behind())
        if (isa<dist::AllGatherOp>(each))
          last = &each;
      for (Operation &each : behind())
        block.arrival.push_back(&each);
      return whole;
    };
    block.key = gathered(key);
    block.value = gathered(value);
    return block;
  }

  Op compute(int64_t first, const Gathered &keys) {
    for (Operation *each : keys.arrival)
      each->moveBefore(build.builder.getInsertionBlock(), build.builder.getInsertionPoint());
    const int64_t count = countAt(first), queries = perKey * keyHeads;
    SmallVector<Value> locals;
    for (auto [number, local] : llvm::enumerate(operands)) {
      const ArrayRef<int64_t> shape = shapeOf(local);
      if (number == key)
        locals.push_back(keys.key);
      else if (number == value)
        locals.push_back(keys.value);
      else if (shape.size() > kPositions &&
               shape[kHeads] == queries) // ranges of keys have no heads, a mask may have one
        locals.push_back(headsOf(local, first * perKey, count * perKey));
      else
        locals.push_back(local);
    }
    auto part = cast<Op>(build.builder.clone(*op));
    part->setOperands(locals);
    for (OpResult result : part->getResults()) {
      SmallVector<int64_t> shape(cast<RankedTensorType>(types[result.getResultNumber()]).getShape());
      shape[kHeads] = isOfKeys(result.getResultNumber()) ? count : count * perKey;
      Type element = tensorType(result).getElementType();
      if (isOfKeys(result.getResultNumber())) {
        shape[kPositions] = positions;
        element = gather.type ? gather.type : element;
      }
      result.setType(RankedTensorType::get(shape, element));
    }
    for (StringRef name : {dist::kGatherBytes, dist::kGatherType})
      part->removeAttr(name);
    part.removeSplitAttr();
    OpBuilder::InsertionGuard guard(build.builder);
    build.builder.setInsertionPoint(part);
    saySeenKeys(part, op, seen, isBalanced);
    return part;
  }

  /// The sum over ranks of a gradient of all keys, of which each rank keeps that of its own.
  Value scatter(OpResult result) {
    const Layout &to = context.results[result.getResultNumber()];
    Layout from = withoutPositions(to);
    for (unsigned axis : context.operands[0].dims[kPositions].axes())
      from.unreduced.push_back(axis);
    llvm::sort(from.unreduced);
    return build.convert(context.collectives.reshard(result, from, to),
                         cast<RankedTensorType>(types[result.getResultNumber()]).getElementType());
  }

  Op op;
  Build &build;
  PartitionContext &context;
  ValueRange operands;
  TypeRange types;
  KeyGather gather;
  unsigned key, value;
  int64_t keyHeads, perKey; ///< of this rank, and query heads of each
  int64_t positions;        ///< of all keys
  int64_t heads = 0;        ///< key heads of a block
  SeenKeys seen;
  bool isBalanced = false;
};

} // namespace

std::string gatherRefusal(Operation *op) {
  return onAttention(op, [](auto attention) -> std::string {
    const int64_t queries = shapeOf(attention.getQuery())[kPositions], keys = shapeOf(attention.getKey())[kPositions];
    if (queries == keys)
      return "";
    return "it has " + std::to_string(queries) + " queries and " + std::to_string(keys) + " keys";
  });
}

std::vector<PartitionChoice> gatherChoices(Operation *op) {
  if (!gatherRefusal(op).empty())
    return {};
  return onAttention(op, [](auto attention) -> std::vector<PartitionChoice> {
    RuleBuilder builder(attention);
    AttentionFactors factors(builder, attention, AttentionFactors::Keys::WithQueries);
    const int64_t factor = factors.positions();
    builder.run(factor);
    return {{"keys gathered by heads", builder.take(), factor, /*isAsked=*/true}};
  });
}

SmallVector<PartitionCollective> gatherCollectives(Operation *op, ArrayRef<Layout> operands, dist::MeshAttr mesh) {
  const KeyGather gather = KeyGather::of(op);
  const dist::Axes axes = operands[0].dims[kPositions].axes();
  SmallVector<PartitionCollective> sent;
  for (unsigned number : {1, 2}) {
    const auto type = tensorType(op->getOperand(number));
    int64_t bytes = bytesOf(type.getShape(), gather.type ? gather.type : type.getElementType());
    for (const dist::Split &split : operands[number].dims)
      bytes /= dist::groupSize(mesh, split);
    sent.push_back({ReshardStep::Kind::AllGather, axes, bytes});
    if (isa<AttentionGradOp>(op))
      sent.push_back({ReshardStep::Kind::ReduceScatter, axes, bytes * dist::groupSize(mesh, axes)});
  }
  return sent;
}

FailureOr<SmallVector<Value>> buildGathered(Operation *op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                            PartitionContext &context) {
  Build build(builder, op->getLoc());
  return onAttention(op, [&](auto attention) -> FailureOr<SmallVector<Value>> {
    return HeadBlocks<decltype(attention)>(attention, build, context, operands, types).run();
  });
}

} // namespace tessera::shard
