#include "passes/shard/Candidates.h"

#include "compiler/interfaces/Partition.h"

using namespace mlir;
using tessera::dist::Axes;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
using tessera::dist::ReshardStep;

namespace tessera::shard {
namespace {

constexpr llvm::StringLiteral kGathered = "gathered";

int64_t localBytes(Value value, const Layout &layout, MeshAttr mesh) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t elements = type.getNumElements();
  for (const dist::Split &split : layout.dims)
    elements /= dist::groupSize(mesh, split);
  return elements * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// What a rank sends in one step on `bytes` of its own; they become those of the result.
int64_t send(ReshardStep::Kind kind, ArrayRef<unsigned> axes, int64_t &bytes, MeshAttr mesh) {
  const int64_t ranks = dist::groupSize(mesh, axes), before = bytes, others = ranks - 1;
  switch (kind) {
  case ReshardStep::Kind::Mask:
    return 0;
  case ReshardStep::Kind::Slice:
    bytes /= ranks;
    return 0;
  case ReshardStep::Kind::ReduceScatter:
    bytes /= ranks;
    return bytes * others;
  case ReshardStep::Kind::AllReduce:
    return 2 * before * others / ranks;
  case ReshardStep::Kind::AllToAll:
    return before * others / ranks;
  case ReshardStep::Kind::AllGather:
    bytes *= ranks;
    return before * others;
  }
  llvm_unreachable("unknown step");
}

int64_t reshardBytes(Value value, const Layout &from, const Layout &to, MeshAttr mesh) {
  int64_t bytes = localBytes(value, from, mesh), sent = 0;
  for (const ReshardStep &step : dist::planReshard(from, to))
    sent += send(step.kind, step.axes, bytes, mesh);
  return sent;
}

Candidate makeCandidate(StringRef name, Solution solution, Operation *op, ArrayRef<OperandState> operands,
                        ArrayRef<PartitionCollective> collectives, MeshAttr mesh) {
  Candidate made{name, std::move(solution), 0, 0, false};
  for (auto [operand, state, need] : llvm::zip_equal(op->getOperands(), operands, made.solution.operands)) {
    if (!state.isSplat)
      made.sentBytes += reshardBytes(operand, *state.layout, need, mesh);
    made.localBytes += localBytes(operand, need, mesh);
  }
  for (PartitionCollective collective : collectives)
    made.sentBytes +=
        collective.times *
        (collective.kind ? send(*collective.kind, collective.axes, collective.bytes, mesh) : collective.bytes);
  for (auto [result, gives] : llvm::zip_equal(op->getResults(), made.solution.results)) {
    made.sentBytes += reshardBytes(result, gives, gives.reduced(), mesh);
    made.localBytes += localBytes(result, gives, mesh);
  }
  return made;
}

/// Some dimension that has the factor is split. Such a factor shares its dimension with none.
bool isSplit(const PartitionChoice &choice, const Solution &solution) {
  auto splits = [&](ArrayRef<TensorFactors> tensors, ArrayRef<Layout> layouts) {
    for (auto [tensor, layout] : llvm::zip_equal(tensors, layouts))
      for (auto [factors, split] : llvm::zip_equal(tensor, layout.dims))
        if (llvm::is_contained(factors, choice.factor))
          return !split.empty();
    return false;
  };
  return splits(choice.rule.operands, solution.operands) || splits(choice.rule.results, solution.results);
}

} // namespace

std::vector<Candidate> listCandidates(ShardingRuleOpInterface op, ArrayRef<OperandState> operands,
                                      ArrayRef<const Layout *> results, MeshAttr mesh) {
  Solution whole = solve(op.getShardingRule(), operands, results, mesh);
  auto partition = dyn_cast<PartitionOpInterface>(op.getOperation());
  if (!partition)
    return {Candidate{kGathered, std::move(whole), 0, 0, false}};
  std::vector<Candidate> candidates{makeCandidate(kGathered, std::move(whole), op, operands, {}, mesh)};
  for (auto [number, choice] : llvm::enumerate(partition.getPartitionChoices())) {
    Solution solution = solve(choice.rule, operands, results, mesh);
    if (!isSplit(choice, solution))
      continue;
    solution.choice = static_cast<unsigned>(number);
    SmallVector<PartitionCollective> collectives =
        partition.getPartitionCollectives(*solution.choice, solution.operands, solution.results, mesh);
    candidates.push_back(makeCandidate(choice.name, std::move(solution), op, operands, collectives, mesh));
    candidates.back().isAsked = choice.isAsked;
  }
  return candidates;
}

const Candidate &chooseCandidate(ArrayRef<Candidate> candidates) {
  const Candidate *best = &candidates.front();
  for (const Candidate &next : candidates.drop_front())
    if (std::tuple(!next.isAsked, next.sentBytes, next.localBytes) <=
        std::tuple(!best->isAsked, best->sentBytes, best->localBytes))
      best = &next;
  return *best;
}

} // namespace tessera::shard
