//===- BlockPlan.cpp - reductions of small blocks of a matrix -------------===//
//
// See BlockPlan.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/BlockPlan.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/TilePlan.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Narrower blocks would leave a row to less than one vector.
static constexpr int64_t kLeastBlockColumns = 8;

std::optional<BlockGrid> findBlocks(const KernelBody &body, const Pattern &first, const Pattern &second) {
  const bool isFirst = second.empty() || second.back().reduced;
  const Pattern &columns = isFirst ? first : second;
  const Pattern rows = second.empty() ? Pattern() : isFirst ? second : first;
  // [blocks down,] [rows of a block, reduced], [columns]; [all blocks' rows], [columns of a block, reduced]
  if (columns.size() < 2 || columns.size() > 3 || columns.back().reduced || !columns[columns.size() - 2].reduced)
    return std::nullopt;
  if (!rows.empty() && (rows.size() != 2 || !rows.back().reduced))
    return std::nullopt;
  const int64_t all = columns.back().size;
  BlockGrid grid;
  grid.down = columns.size() == 3 ? columns.front().size : 1;
  grid.height = columns[columns.size() - 2].size;
  grid.width = rows.empty() ? kBlockColumns : rows.back().size;
  grid.across = all / grid.width;
  if (all % kBlockColumns != 0 || kBlockColumns % grid.width != 0 || grid.width < kLeastBlockColumns)
    return std::nullopt;
  if (grid.height % kBlockRows != 0 || grid.height > kMostBlockRows)
    return std::nullopt;
  if (!rows.empty())
    return grid.across != 1 && rows.front().size * grid.width == grid.elements() ? std::optional(grid) : std::nullopt;
  const DenseSet<Operation *> members(body.ops.begin(), body.ops.end());
  const bool isTransposed = llvm::any_of(body.outputs, [&](Value output) {
    return elementsOf(shapeOf(output)) == grid.elements() && transposeOf(output, members);
  });
  return isTransposed ? std::optional(grid) : std::nullopt;
}

/// What a reduction of magnitudes is of: the maxima that values are quantised by are those of another shape and type.
static Value sourceOf(Value value, const DenseSet<Operation *> &members) {
  for (Operation *op = value.getDefiningOp(); op && members.contains(op); op = value.getDefiningOp()) {
    if (!isa<train::ReshapeOp, train::ConvertOp, train::AbsOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::string placeBlockResults(const KernelBody &body, KernelPlan &plan,
                              MutableArrayRef<train::TransposeOp> transposes) {
  const DenseSet<Operation *> members(body.ops.begin(), body.ops.end());
  int64_t height = 1, bytes = 0;
  for (const Digit &digit : plan.digits)
    height *= digit.walked ? digit.size : 1;
  DenseSet<Value> held;
  for (const Reduction &reduction : plan.reductions) {
    Value value = reduction.op->getOperand(0);
    held.insert(sourceOf(value, members));
    // A line for each warp, at least one row each, in which columns meet.
    if (reduction.ofColumns)
      bytes +=
          kBlockThreads / 32 * kBlockColumns * bytesOf(train::accumulationType(tensorType(value).getElementType()));
  }
  if (held.size() != 1)
    return "blocks of several values do not fit the registers";
  for (auto [output, transpose] : llvm::zip_equal(plan.outputs, transposes)) {
    if (output.extent != OutputExtent::Full)
      continue;
    transpose = transposeOf(output.value, members);
    output.isAcross = static_cast<bool>(transpose);
    if (!transpose)
      continue;
    bytes += height * kBlockPitch * bytesOf(tensorType(output.value).getElementType());
    output.pass = 1;
    plan.passes = 2;
  }
  if (bytes > kSharedBytes)
    return llvm::formatv("blocks need {0} bytes of shared memory, of {1}", bytes, kSharedBytes);
  return "";
}

std::string checkBlockAccess(const KernelPlan &plan) {
  if (plan.readsAcross)
    return "an input lies across the blocks";
  if (llvm::any_of(plan.digits, [](const Digit &digit) { return digit.unroll; }))
    return "a block would be of parts";
  for (const Output &output : plan.outputs) {
    int64_t dense = 1;
    for (unsigned digit = plan.digits.size(); output.isAcross && digit-- > 0;) {
      if (!plan.digits[digit].walked)
        continue;
      if (output.position.coefficient(digit) != dense)
        return "a result lies neither along the blocks nor across them";
      dense *= plan.digits[digit].size;
    }
  }
  return "";
}

} // namespace tessera::codegen
