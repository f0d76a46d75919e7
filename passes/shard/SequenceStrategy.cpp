#include "passes/shard/SequenceStrategy.h"

#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Train.h"

using namespace mlir;
using namespace tessera::dist;

namespace tessera::shard {

// clang-format off
static constexpr SequenceStrategyInfo kTable[] = {
    //                                                                             heads  keys move  axes
    {"allgather",    "keys and values of all ranks are gathered on each rank",     false, false, 1},
    {"ring",         "keys and values go from rank to rank",                       false, true,  1},
    {"ulysses",      "each rank has some of the heads for all positions",          true,  false, 1},
    {"ring+ulysses", "heads over the last sequence axis, a ring over the others",  true,  true,  2},
};
// clang-format on

ArrayRef<SequenceStrategyInfo> sequenceStrategies() { return kTable; }

static const SequenceStrategyInfo *findStrategy(StringRef name) {
  const auto *found = llvm::find_if(kTable, [&](const SequenceStrategyInfo &info) { return info.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

AttentionChoice parseAttention(StringRef text) {
  constexpr StringLiteral kChunk = "chunk=";
  const auto [name, rest] = text.split(':');
  AttentionChoice choice{findStrategy(name), 0, ""};
  if (!choice.strategy && text != "auto") {
    choice.error = "unknown value '" + text.str() + "', expected ";
    for (const SequenceStrategyInfo &info : kTable)
      choice.error += info.name.str() + (&info == std::end(kTable) - 1 ? " or auto" : ", ");
  } else if (text.contains(':') && !choice.strategy->movesHeads) {
    choice.error = "'" + name.str() + "' exchanges no heads that ':" + rest.str() + "' could take some of at a time";
  } else if (text.contains(':') &&
             (!rest.starts_with(kChunk) || rest.drop_front(kChunk.size()).getAsInteger(10, choice.headsAtATime) ||
              choice.headsAtATime <= 0)) {
    choice.error = "expected '" + name.str() + ":chunk=<query heads>', got '" + text.str() + "'";
  }
  return choice;
}

/// Whether all numbers of positions of the step's inputs are multiples of `ranges`.
static bool dividesPositions(func::FuncOp func, int64_t ranges) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (train::isBatchArgument(func, index))
      if (const int64_t dim = train::getDims(func, index).getPositionDim(); dim >= 0)
        if (cast<RankedTensorType>(func.getArgument(index).getType()).getDimSize(dim) % ranges != 0)
          return false;
  return true;
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
  if (order != "auto" && order != "contiguous" && order != "zigzag")
    return func.emitError() << "unknown sequence-order '" << order << "', expected contiguous, zigzag or auto";
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
    const SequenceStrategyInfo &exchange = *findStrategy(axes.size() > 1 ? "ring+ulysses" : "ulysses");
    const bool divides = !findUndivided(exchange.exchangedAxes(axes), groupSize(mesh, parameterAxes(mesh)));
    plan.strategy = divides ? &exchange : findStrategy("ring");
    plan.reason =
        divides ? "the heads divide evenly among the ranks" : "the heads do not divide evenly among the ranks";
  }
  bool isCausal = false;
  func.walk([&](train::AttentionOp op) { isCausal |= op.getCausal(); });
  // Where each rank has all positions of its heads, the work is the same for all anyway.
  const bool keepsPositions = plan.strategy->exchangedAxes(axes).size() < axes.size();
  const bool divides = dividesPositions(func, 2 * groupSize(mesh, axes));
  plan.isZigzag = order == "zigzag" || (order == "auto" && isCausal && keepsPositions && divides);
  return plan;
}

} // namespace tessera::shard
