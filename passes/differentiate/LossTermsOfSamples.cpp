//===- LossTermsOfSamples.cpp - where an op leaves the samples -------------===//
//
// The part of LossTerms that follows samples through an op: by the factors that
// sharding knows it by, and through what arranges elements, by where these lie.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/LossTerms.h"
#include "passes/differentiate/RepeatedElements.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera {

using Kind = Dependence::Kind;

static constexpr llvm::StringLiteral kNoDimension = "leaves no dimension that counts samples";
static constexpr llvm::StringLiteral kPlaces = "combines the samples of a batch with what depends on their place in it";

/// Whether `value`, of which nothing is a sample, is the same for all of them along a dimension of `blocks` parts.
bool LossTerms::isSameForSamples(Value value, int64_t dim, int64_t blocks) {
  const std::tuple<Value, int64_t, int64_t> key{value, dim, blocks};
  if (auto known = same.find(key); known != same.end())
    return known->second;
  const bool result = findSameForSamples(value, dim, blocks);
  same[key] = result;
  return result;
}

bool LossTerms::findSameForSamples(Value value, int64_t dim, int64_t blocks) {
  if (Operation *made = value.getDefiningOp(); made && made->hasAttr(train::kByPlace))
    return false;
  if ((batchSize == 1 && !knowsSizes) || train::splatOf(value))
    return true;
  auto result = dyn_cast<OpResult>(value);
  if (!result || of(value).kind == Kind::Samples || train::shapeOf(value)[dim] % (blocks * batchSize) != 0)
    return false;
  Operation *op = result.getOwner();
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return isConstantAlong(constant, dim, blocks, batchSize);
  if (isa<train::RngUniformOp>(op))
    return true; // each has numbers of its own
  if (auto iota = dyn_cast<train::IotaOp>(op))
    return static_cast<int64_t>(iota.getDim()) != dim;
  if (isa<train::BarrierOp>(op))
    return isSameForSamples(op->getOperand(result.getResultNumber()), dim, blocks);
  if (isa<train::ReshapeOp>(op)) {
    const auto [from, parts] = findParts(train::shapeOf(value), train::shapeOf(op->getOperand(0)), dim, blocks);
    return parts > 0 && isSameForSamples(op->getOperand(0), from, parts);
  }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule || op->getNumOperands() == 0)
    return false;
  const ShardingRule factors = rule.getShardingRule();
  ArrayRef<int64_t> found = factors.results[result.getResultNumber()][dim];
  if (found.size() != 1 || factors.factors[found.front()].kind != FactorKind::PassThrough ||
      factors.factors[found.front()].isOrdered)
    return false;
  return isSameAlong(*op, factors, found.front(), blocks);
}

/// Whether the operands that have a factor are the same along it.
bool LossTerms::isSameAlong(Operation &op, const ShardingRule &factors, int64_t factor, int64_t blocks) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    for (auto [dim, found] : llvm::enumerate(factors.operands[index]))
      if (llvm::is_contained(found, factor) &&
          (found.size() != 1 || !isSameForSamples(operand, static_cast<int64_t>(dim), blocks)))
        return false;
  return true;
}

/// Reshapes keep the order of elements: as many parts lie outside of the samples as before, dimensions and blocks
/// together. Returns the dimension of `to` that has the samples of dimension `dim` of `from`, and how many blocks of it
/// have all of them each; 0 if there is none. `grows`: the dimension of `to` that grows with the batch, if it is known.
std::pair<int64_t, int64_t> LossTerms::findParts(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim,
                                                 int64_t blocks, std::optional<int64_t> grows) const {
  const int64_t before = llvm::product_of(from.take_front(dim)) * blocks;
  auto blocksAt = [&](size_t at) -> int64_t {
    const int64_t outside = llvm::product_of(to.take_front(at));
    const int64_t parts = outside > 0 && before % outside == 0 ? before / outside : 0;
    return parts > 0 && to[at] % (parts * batchSize) == 0 ? parts : 0;
  };
  if (grows)
    return {*grows, blocksAt(static_cast<size_t>(*grows))};
  auto same = static_cast<size_t>(dim);
  if (same < to.size() && blocksAt(same) == blocks && from.take_front(same + 1) == to.take_front(same + 1))
    return {dim, blocks};
  std::pair<int64_t, int64_t> found{0, 0};
  for (size_t at = 0; at < to.size(); ++at)
    if (const int64_t parts = blocksAt(at); parts > 0 && (found.second == 0 || parts < found.second))
      found = {static_cast<int64_t>(at), parts};
  return found;
}

/// The dimension of an op's result that is known to grow as the batch does.
static std::optional<int64_t> growsAt(Operation &op) {
  auto dim = op.getAttrOfType<IntegerAttr>(train::kGrows);
  return dim ? std::optional(dim.getInt()) : std::nullopt;
}

/// Of samples: whole blocks, or a stride within each sample.
Dependence LossTerms::ofSlice(train::SliceOp op, const Dependence &samples) const {
  const int64_t dim = samples.dim, size = train::shapeOf(op.getOperand())[dim], block = size / samples.blocks;
  const int64_t start = op.getStarts()[dim], limit = op.getLimits()[dim], stride = op.getStrides()[dim];
  if (growsAt(*op) != dim)
    return Dependence::other(*op, kMixesSamples);
  Dependence part = samples;
  if (stride != 1)
    return start < stride && block % (batchSize * stride) == 0 && train::shapeOf(op.getResult())[dim] == size / stride
               ? part
               : Dependence::other(*op, kMixesSamples);
  if (start % block != 0 || limit % block != 0)
    return Dependence::other(*op, kMixesSamples);
  part.blocks = (limit - start) / block;
  return part;
}

/// Of samples along their dimension: the blocks of all operands.
Dependence LossTerms::ofConcat(train::ConcatOp op) const {
  const auto dim = static_cast<int64_t>(op.getDim());
  Dependence joined;
  int64_t block = 0, blocks = 0;
  for (Value operand : op.getOperands()) {
    const Dependence known = of(operand);
    if (known.kind != Kind::Samples || known.dim != dim)
      return Dependence::other(*op, kMixesSamples);
    const int64_t size = train::shapeOf(operand)[dim] / known.blocks;
    if (block != 0 && size != block)
      return Dependence::other(*op, kMixesSamples);
    block = size;
    blocks += known.blocks;
    joined = known;
  }
  joined.blocks = blocks;
  return growsAt(*op) == dim ? joined : Dependence::other(*op, kMixesSamples);
}

Dependence LossTerms::ofSamples(Operation &op, unsigned result) {
  if (isa<train::ReshapeOp>(op)) {
    const Dependence known = of(op.getOperand(0));
    const auto [dim, blocks] = findParts(train::shapeOf(op.getOperand(0)), train::shapeOf(op.getResult(0)), known.dim,
                                         known.blocks, growsAt(op));
    return blocks > 0 ? Dependence{Kind::Samples, dim, nullptr, {}, blocks} : Dependence::other(op, kNoDimension);
  }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule)
    return Dependence::other(op, kMixesSamples);
  if (auto concat = dyn_cast<train::ConcatOp>(op);
      concat && of(op.getOperand(0)).dim == static_cast<int64_t>(concat.getDim()))
    return ofConcat(concat);
  if (auto slice = dyn_cast<train::SliceOp>(op)) {
    const Dependence known = of(slice.getOperand());
    if (train::shapeOf(slice.getResult())[known.dim] != train::shapeOf(slice.getOperand())[known.dim])
      return ofSlice(slice, known);
  }
  const ShardingRule factors = rule.getShardingRule();
  int64_t samples = -1, blocks = 1;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    const Dependence known = of(operand);
    if (known.kind != Kind::Samples)
      continue;
    ArrayRef<int64_t> found = factors.operands[index][known.dim];
    if (found.empty() || (samples >= 0 && (found.front() != samples || known.blocks != blocks)))
      return Dependence::other(op, kMixesSamples);
    samples = found.front();
    blocks = known.blocks;
  }
  const std::optional<dist::ReductionKind> reduction = factors.reductionOf(result, samples);
  const bool isReduction = reduction == dist::ReductionKind::Sum;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    if (of(operand).kind == Kind::Samples)
      continue;
    for (auto [dim, found] : llvm::enumerate(factors.operands[index]))
      if (llvm::is_contained(found, samples) &&
          (found.size() != 1 || !isSameForSamples(operand, static_cast<int64_t>(dim), blocks) ||
           (isReduction && batchSize == 1 && !operand.getDefiningOp<train::BroadcastOp>())))
        return Dependence::other(op, kPlaces);
  }
  if (isReduction) {
    auto scatter = dyn_cast<train::ScatterAddRowsOp>(op);
    if (scatter && train::splatOf(scatter.getInit()) != 0.0)
      return Dependence::other(op, kNotLinear);
    const bool isMean = op.hasAttr(train::kMean);
    for (Value operand : op.getOperands())
      if (Operation *scaledBy = of(operand).scaledBy; scaledBy && scaledUndoes(*scaledBy, isMean))
        return Dependence::other(*scaledBy, kCountedSamples);
    return {isMean ? Kind::Mean : Kind::Sum, 0, &op, {}};
  }
  if (factors.factors[samples].kind == FactorKind::PassThrough)
    for (auto [dim, found] : llvm::enumerate(factors.results[result]))
      if (!found.empty() && found.front() == samples)
        return {Kind::Samples, static_cast<int64_t>(dim), nullptr, {}, blocks};
  return Dependence::other(op, kMixesSamples);
}

/// Of indices to which the number of the rows before those of their sample was added: samples, whatever the place of
/// one in the batch.
Dependence LossTerms::ofOwnIndices(Value indices) const {
  const Dependence known = of(indices);
  Operation *op = indices.getDefiningOp();
  if (known.kind != Kind::Other || !isa_and_nonnull<train::AddOp, train::MulOp>(op))
    return known;
  const Dependence one = ofOwnIndices(op->getOperand(0)), second = ofOwnIndices(op->getOperand(1));
  const bool areSame = one.kind == second.kind && one.dim == second.dim && one.blocks == second.blocks;
  return second.kind == Kind::None || areSame ? one : one.kind == Kind::None ? second : known;
}

/// Of a lookup of each sample in its own rows.
Dependence LossTerms::ofOwnRows(train::GatherRowsOp op) const {
  const Dependence table = of(op.getTable()), indices = ofOwnIndices(op.getIndices());
  auto isMajor = [](const Dependence &known) {
    return known.kind == Kind::Samples && known.dim == 0 && known.blocks == 1;
  };
  return isMajor(table) && isMajor(indices) ? indices : Dependence::other(*op, kMixesSamples);
}

} // namespace tessera
