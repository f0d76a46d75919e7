//===- TilePlan.cpp - elementwise kernels that transpose ------------------===//
//
// See TilePlan.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/TilePlan.h"

#include "compiler/dialect/train/Builders.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

static bool movesInnermost(train::TransposeOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()), order = op.getPermutation();
  auto isWide = [&](int64_t dim) { return shape[dim] != 1; };
  auto innermost = llvm::find_if(llvm::reverse(order), isWide);
  return innermost != order.rend() && llvm::any_of(llvm::seq<int64_t>(*innermost + 1, shape.size()), isWide);
}

train::TransposeOp transposeOf(Value value, const DenseSet<Operation *> &members) {
  const int64_t elements = elementsOf(shapeOf(value));
  SmallVector<Value> open = {value};
  DenseSet<Operation *> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !members.contains(op) || elementsOf(shapeOf(next)) != elements || !seen.insert(op).second)
      continue;
    if (auto transpose = dyn_cast<train::TransposeOp>(op); transpose && movesInnermost(transpose))
      return transpose;
    if (isElementwise(op) || isa<train::ReshapeOp>(op))
      llvm::append_range(open, llvm::reverse(op->getOperands()));
  }
  return {};
}

SmallVector<train::TransposeOp> findTransposes(const KernelBody &body) {
  const DenseSet<Operation *> members(body.ops.begin(), body.ops.end());
  SmallVector<train::TransposeOp> transposes;
  for (Value output : body.outputs)
    transposes.push_back(transposeOf(output, members));
  if (llvm::all_of(transposes, [](train::TransposeOp transpose) { return static_cast<bool>(transpose); }))
    transposes.assign(body.outputs.size(), {});
  return transposes;
}

std::optional<Index> transposedIndex(const Space &space, train::TransposeOp transpose, const Index &index,
                                     std::optional<Cut> &cut) {
  ArrayRef<int64_t> shape = shapeOf(transpose.getOperand());
  SmallVector<Index> from(shape.size()), to;
  Index rest = index;
  for (size_t dim = shape.size(); dim-- > 0;) {
    std::optional<std::pair<Index, Index>> parts = space.divide(rest, shape[dim], cut);
    if (!parts)
      return std::nullopt;
    std::tie(rest, from[dim]) = std::move(*parts);
  }
  for (int64_t dim : transpose.getPermutation())
    to.push_back(from[dim]);
  return linearize(to, shapeOf(transpose.getResult()));
}

/// Sides of a matrix below which a tile would be mostly empty.
static constexpr int64_t kMinSide = 32;
/// 8 lanes read every eighth line of a column, 4 neighbours each: 4 words apart in the banks of 4 bytes.
int64_t tilePitch(Type element) { return kTile + (bytesOf(element) == 1 ? 2 : 1); }

/// The digit along which `index` is dense, if that is not the innermost one.
static std::optional<unsigned> rowOf(const KernelPlan &plan, const Index &index) {
  const unsigned column = plan.digits.size() - 1;
  std::optional<unsigned> row;
  int64_t columnStride = 0;
  for (const Index::Term &term : index.terms) {
    if (term.digit > column)
      return std::nullopt; // known at run time only
    if (term.digit == column)
      columnStride = term.coefficient;
    else if (term.coefficient == 1)
      row = term.digit;
  }
  if (columnStride < kMinSide || !row || plan.digits[*row].size < kMinSide)
    return std::nullopt;
  return row;
}

std::optional<Tiles> planTiles(const KernelBody &body, const KernelPlan &plan) {
  if (plan.kind != KernelKind::Elementwise || !plan.reductions.empty() || plan.passes > 1 || plan.digits.size() < 2 ||
      plan.digits.back().size < kMinSide || llvm::any_of(plan.digits, [](const Digit &digit) { return digit.unroll; }))
    return std::nullopt;
  SmallVector<TileRead> reads;
  Space space;
  space.digits = plan.digits;
  Evaluator evaluator(body, space, UnknownLoc::get(body.outputs.front().getContext()));
  evaluator.seen.onRead = [&](Value input, const Index &index) {
    const bool isKnown =
        llvm::any_of(reads, [&](const TileRead &other) { return other.input == input && other.index == index; });
    if (!isKnown)
      reads.push_back({input, index});
  };
  for (const Output &output : plan.outputs)
    evaluator.evaluate(output.value, output.position);

  std::optional<Tiles> tiles;
  int64_t bytes = 0;
  auto takes = [&](Value value, const Index &index) {
    const std::optional<unsigned> row = rowOf(plan, index);
    const Type element = tensorType(value).getElementType();
    const int64_t own = kTile * tilePitch(element) * bytesOf(element);
    if (!row || bytes + own > kSharedBytes || (tiles && tiles->row != *row))
      return false;
    if (!tiles)
      tiles = Tiles{*row, {}, {}};
    bytes += own;
    return true;
  };
  for (const TileRead &read : reads)
    if (takes(read.input, read.index))
      tiles->reads.push_back(read);
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    if (takes(output.value, output.position))
      tiles->results.push_back(number);
  return tiles;
}

} // namespace tessera::codegen
