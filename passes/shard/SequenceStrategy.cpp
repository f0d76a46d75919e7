#include "passes/shard/SequenceStrategy.h"

#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Train.h"

#include <numeric>

using namespace mlir;
using namespace tessera::dist;

namespace tessera::shard {

// clang-format off
static constexpr SequenceStrategyInfo kSequenceStrategies[] = {
    //                                                                             heads  keys move  axes
    {"allgather",    "keys and values of all ranks are gathered on each rank",     false, false, 1},
    {"ring",         "keys and values go from rank to rank",                       false, true,  1},
    {"ulysses",      "each rank has some of the heads for all positions",          true,  false, 1},
    {"ring+ulysses", "heads over the last sequence axis, a ring over the others",  true,  true,  2},
};
// clang-format on

ArrayRef<SequenceStrategyInfo> sequenceStrategies() { return kSequenceStrategies; }

static const SequenceStrategyInfo *findSequenceStrategy(StringRef name) {
  const auto *found =
      llvm::find_if(kSequenceStrategies, [&](const SequenceStrategyInfo &info) { return info.name == name; });
  return found == std::end(kSequenceStrategies) ? nullptr : found;
}

AttentionChoice parseAttention(StringRef text) {
  constexpr StringLiteral kChunk = "chunk=";
  const auto [name, rest] = text.split(':');
  AttentionChoice choice{findSequenceStrategy(name), 0, ""};
  if (!choice.strategy && text != "auto") {
    choice.error = "unknown value '" + text.str() + "', expected ";
    for (const SequenceStrategyInfo &info : kSequenceStrategies)
      choice.error += info.name.str() + (&info == std::end(kSequenceStrategies) - 1 ? " or auto" : ", ");
  } else if (text.contains(':') && !choice.strategy->movesHeads) {
    choice.error = "'" + name.str() + "' exchanges no heads that ':" + rest.str() + "' could take some of at a time";
  } else if (text.contains(':') &&
             (!rest.starts_with(kChunk) || rest.drop_front(kChunk.size()).getAsInteger(10, choice.headsAtATime) ||
              choice.headsAtATime <= 0)) {
    choice.error = "expected '" + name.str() + ":chunk=<query heads>', got '" + text.str() + "'";
  }
  return choice;
}

OrderChoice parseOrder(StringRef text) {
  constexpr StringLiteral kBlocks = "dealt:blocks=";
  constexpr int64_t kMostBlocks = 1024; // each is a range of keys in each block of a ring
  OrderChoice choice;
  if (text == "contiguous") {
    choice.kind = OrderChoice::Contiguous;
  } else if (text == "zigzag") {
    choice.kind = OrderChoice::Zigzag;
  } else if (text == "dealt" || text.starts_with(kBlocks)) {
    choice.kind = OrderChoice::Dealt;
    if (text != "dealt" && (text.drop_front(kBlocks.size()).getAsInteger(10, choice.blocksPerRank) ||
                            choice.blocksPerRank < 2 || choice.blocksPerRank > kMostBlocks))
      choice.error = "expected 'dealt:blocks=<2 to " + std::to_string(kMostBlocks) + ">', got '" + text.str() + "'";
  } else if (text != "auto") {
    choice.error = "unknown value '" + text.str() + "', expected contiguous, zigzag, dealt or auto";
  }
  return choice;
}

int64_t SequencePlan::ranges(MeshAttr mesh) const {
  return dealt != 0 ? dealt : groupSize(mesh, positionAxes(mesh)) * (isZigzag ? 2 : 1);
}

/// What all numbers of positions of the step's inputs are multiples of; 0 if none counts positions.
static int64_t commonLength(func::FuncOp func) {
  int64_t length = 0;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (train::isBatchArgument(func, index))
      if (const int64_t dim = train::getDims(func, index).getPositionDim(); dim >= 0)
        length = std::gcd(length, cast<RankedTensorType>(func.getArgument(index).getType()).getDimSize(dim));
  return length;
}

/// Blocks of a rank where nothing else is asked for: many, so that the work of each is a small part, but of at least as
/// many positions as a kernel takes at a time. 0 if the length has no such parts.
static int64_t blocksOfRank(int64_t length, int64_t ranks) {
  constexpr int64_t kMost = 16, kLeastPositions = 128;
  for (int64_t blocks = kMost; blocks > 1; --blocks)
    if (length % (blocks * ranks) == 0 && (length / (blocks * ranks) >= kLeastPositions || blocks <= 4))
      return blocks;
  return 0;
}

/// Whether `value` is known from the batch alone.
static bool followsFromBatch(Value value, func::FuncOp func, llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  auto follows = [&](Value operand) { return followsFromBatch(operand, func, seen); };
  if (Operation *op = value.getDefiningOp())
    return op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), follows);
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner() == &func.getBody().front())
    return train::isBatchArgument(func, argument.getArgNumber());
  Operation *loop = argument.getOwner()->getParentOp();
  return isa<train::AccumulateOp>(loop) &&
         (argument.getArgNumber() == 0 || follows(loop->getOperand(argument.getArgNumber() - 1)));
}

/// Ranges of keys that follow from the batch make the work of blocks differ; those that follow from anything else are
/// not known in front of the step.
enum class KeyRanges { Known, OfBatch, OfOthers };
static KeyRanges keyRangesOf(func::FuncOp func) {
  KeyRanges found = KeyRanges::Known;
  func.walk([&](train::AttentionOp op) {
    for (Value bound : {op.getBegin(), op.getEnd()}) {
      llvm::DenseSet<Value> seen;
      if (bound && !followsFromBatch(bound, func, seen))
        found = KeyRanges::OfOthers;
      else if (bound && !bound.getDefiningOp<train::ConstantOp>() && found == KeyRanges::Known)
        found = KeyRanges::OfBatch;
    }
  });
  return found;
}

/// Inputs are gathered to be dealt: whether each has one number for each position at most.
static bool hasNarrowInputs(func::FuncOp func) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (train::isBatchArgument(func, index))
      if (const train::DimsAttr dims = train::getDims(func, index); dims.getPositionDim() >= 0)
        for (auto [role, size] :
             llvm::zip_equal(dims.getRoles(), cast<RankedTensorType>(func.getArgument(index).getType()).getShape()))
          if (role == train::DimRole::None && size != 1)
            return false;
  return true;
}

bool isDealtBy(RankedTensorType queries, int64_t blocks, int64_t ranks) {
  return queries.getDimSize(2) % blocks == 0 && queries.getDimSize(0) % ranks == 0;
}

template <typename Op> static std::string refusalOf(Op op) {
  const int64_t queries = op.getQuery().getType().getDimSize(2), keys = op.getKey().getType().getDimSize(2);
  if (queries != keys)
    return "it has " + std::to_string(queries) + " queries and " + std::to_string(keys) + " keys";
  // A large number that hides all keys of a query leaves nothing of the sum of exponentials in its log-sum-exp, by
  // which blocks of keys are weighted.
  if (op.getMask() && isa<FloatType>(op.getMask().getType().getElementType()))
    return "its mask is added to the scores";
  return "";
}

std::string ringRefusal(Operation *op) {
  if (auto attention = dyn_cast<train::AttentionOp>(op))
    return refusalOf(attention);
  return refusalOf(cast<train::AttentionGradOp>(op));
}

FailureOr<SequencePlan> planSequence(func::FuncOp func, MeshAttr mesh, StringRef attention, StringRef order) {
  const AttentionChoice choice = parseAttention(attention);
  const SequenceStrategyInfo *asked = choice.strategy;
  if (!choice.error.empty())
    return func.emitError() << "attention: " << choice.error;
  const OrderChoice orderChoice = parseOrder(order);
  if (!orderChoice.error.empty())
    return func.emitError() << "sequence-order: " << orderChoice.error;
  const Axes axes = positionAxes(mesh);
  SequencePlan plan;
  if (axes.empty())
    return plan;

  // The first attention whose heads do not divide evenly among the ranks of these axes, and others that may have some
  // of them already.
  auto findUndivided = [&](ArrayRef<unsigned> exchanged, int64_t others) {
    const int64_t ranks = groupSize(mesh, exchanged) * others;
    train::AttentionOp found;
    func.walk([&](train::AttentionOp op) {
      for (RankedTensorType type : {op.getQuery().getType(), op.getKey().getType()})
        if (type.getDimSize(1) % ranks != 0 && !found)
          found = op;
    });
    return found;
  };
  if (asked && axes.size() < asked->leastAxes)
    return func.emitError() << "attention " << asked->name << " needs " << asked->leastAxes
                            << " axes of role sequence larger than 1, the major one for the ring, got " << mesh;
  if (asked) {
    const ArrayRef<unsigned> exchanged = asked->exchangedAxes(axes);
    if (train::AttentionOp op = findUndivided(exchanged, 1))
      return op.emitError() << "attention has " << op.getQuery().getType().getDimSize(1) << " query heads and "
                            << op.getKey().getType().getDimSize(1) << " key heads, which do not divide evenly among "
                            << groupSize(mesh, exchanged) << " ranks; use "
                            << (choice.headsAtATime ? "more heads at a time, or all; " : "")
                            << "ring or allgather, or ring+ulysses with a smaller last sequence axis";
    plan.strategy = asked;
  } else {
    const SequenceStrategyInfo &exchange = *findSequenceStrategy(axes.size() > 1 ? "ring+ulysses" : "ulysses");
    const bool divides = !findUndivided(exchange.exchangedAxes(axes), groupSize(mesh, parameterAxes(mesh)));
    plan.strategy = divides ? &exchange : findSequenceStrategy("ring");
    plan.reason =
        divides ? "the heads divide evenly among the ranks" : "the heads do not divide evenly among the ranks";
  }
  bool isCausal = false, isAttending = false;
  func.walk([&](train::AttentionOp op) {
    isCausal |= op.getCausal();
    isAttending = true;
  });
  auto dealsWork = [&](int64_t blocks) {
    bool found = false;
    func.walk([&](train::AttentionOp op) {
      found |= isDealtBy(op.getQuery().getType(), blocks, groupSize(mesh, sampleAxes(mesh)));
    });
    return found;
  };
  // Where each rank has all positions of its heads, the work is the same for all anyway.
  const bool keepsPositions = plan.strategy->exchangedAxes(axes).size() < axes.size();
  const int64_t ranks = groupSize(mesh, axes), length = commonLength(func);
  const bool balances = isCausal && keepsPositions && length % (2 * ranks) == 0;
  dist::DealOp deal;
  func.walk([&](dist::DealOp op) { deal = op; });
  if (deal) {
    plan.dealt = deal.getOrder().getType().getDimSize(1);
  } else if (orderChoice.kind == OrderChoice::Dealt) {
    if (!keepsPositions || !isAttending)
      return func.emitError() << "sequence-order dealt: "
                              << (isAttending ? "each rank has all positions of its heads, and so the same work"
                                              : "there is no attention whose work could be dealt");
    plan.dealt = ranks * (orderChoice.blocksPerRank ? orderChoice.blocksPerRank : blocksOfRank(length, ranks));
    if (plan.dealt == 0 || length % plan.dealt != 0 || !dealsWork(plan.dealt))
      return func.emitError() << "sequence-order dealt: positions do not divide by "
                              << (plan.dealt ? plan.dealt : 2 * ranks) << ", " << (plan.dealt ? plan.dealt / ranks : 2)
                              << " blocks for each of " << ranks << " ranks";
    if (keyRangesOf(func) == KeyRanges::OfOthers)
      return func.emitError() << "sequence-order dealt: what keys a query sees follows from what is no input";
  } else if (orderChoice.kind == OrderChoice::Auto && keepsPositions && keyRangesOf(func) == KeyRanges::OfBatch) {
    const int64_t blocks = ranks * blocksOfRank(length, ranks);
    if (!hasNarrowInputs(func))
      plan.notDealt = "an input has more than a number for each position, and would be gathered";
    else if (blocks == 0 || !dealsWork(blocks))
      plan.notDealt = "positions do not divide by two blocks for each rank";
    else
      plan.dealt = blocks;
  }
  if (orderChoice.kind == OrderChoice::Auto)
    plan.orderReason = plan.dealt != 0          ? OrderReason::Documents
                       : !plan.notDealt.empty() ? OrderReason::NotDealt
                       : balances               ? OrderReason::Balances
                       : !isCausal              ? OrderReason::NotCausal
                       : !keepsPositions        ? OrderReason::HeadsSplit
                                                : OrderReason::NotDivided;
  plan.isZigzag =
      orderChoice.kind == OrderChoice::Zigzag || (orderChoice.kind == OrderChoice::Auto && plan.dealt == 0 && balances);
  return plan;
}

} // namespace tessera::shard
