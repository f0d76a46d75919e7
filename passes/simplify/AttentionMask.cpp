//===- AttentionMask.cpp - masks of recognised attention ------------------===//

#include "passes/simplify/AttentionMask.h"

#include "passes/simplify/KnownRows.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
/// Scores at or below this get no probability beside ordinary ones in f32: exp underflows.
constexpr double kHidden = -1e4;

enum class Cell { Open, Hidden, Neither };

Cell cellOf(double value, const Mask &mask) {
  if (mask.isAdded)
    return value == 0 ? Cell::Open : value <= kHidden ? Cell::Hidden : Cell::Neither;
  return (value != 0) == mask.attendIsTrue ? Cell::Open : Cell::Hidden;
}

/// Whether a row of a mask hides nothing, and whether it shows exactly its first `shown` cells.
std::pair<bool, bool> classifyRow(const Row &row, const Mask &mask, int64_t shown) {
  bool open = true, causal = true;
  int64_t begin = 0;
  for (const Piece &piece : row) {
    // Numbers that ascend are not a mask.
    const Cell cell = piece.slope == 0 ? cellOf(piece.first, mask) : Cell::Neither;
    open &= cell == Cell::Open;
    causal &= cell == Cell::Open ? piece.end <= shown : cell == Cell::Hidden && begin >= shown;
    begin = piece.end;
  }
  return {open, causal};
}
} // namespace

MaskKind classifyMask(const Mask &mask) {
  const ArrayRef<int64_t> shape = shapeOf(mask.value);
  if (shape.size() < 2 || tensorType(mask.value).getNumElements() == 0)
    return MaskKind::Other;
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  KnownRows known;
  const llvm::BitVector varies = known.variesAlong(mask.value);
  SmallVector<int64_t> index(shape.size() - 1, 0);
  bool open = true, causal = true;
  while (open || causal) {
    const std::optional<Row> row = known.row(mask.value, index);
    if (!row)
      return MaskKind::Other;
    const int64_t shown = std::clamp<int64_t>(index.back() + columns - rows + 1, 0, columns);
    const auto [isOpen, isCausal] = classifyRow(*row, mask, shown);
    open &= isOpen;
    causal &= isCausal;
    // The next row that may differ; `causal` asks something else of every query.
    size_t dim = index.size();
    while (dim-- > 0) {
      const bool counts = varies[dim] || (dim + 1 == index.size() && causal);
      if (counts && ++index[dim] < shape[dim])
        break;
      index[dim] = 0;
      if (dim == 0)
        return open ? MaskKind::Nothing : causal ? MaskKind::Causal : MaskKind::Other;
    }
  }
  return MaskKind::Other;
}

bool hasUniformRows(const Mask &mask) { return !mask.isAdded && !std::isinf(mask.hidden); }

Value withUniformRows(Build &b, Value result, Value mask, Value value) {
  ArrayRef<int64_t> shape = shapeOf(result), source = shapeOf(value);
  const int64_t keys = source[2], perGroup = shape[1] / source[1];
  Value seen = b.convert(mask, b.builder.getI32Type());
  Value sees = b.reduce(ReduceKind::Max, seen, {3});
  sees = b.compare(CompareDirection::Ne, sees, b.splatLike(sees, 0));
  SmallVector<int64_t> column(shapeOf(sees));
  column.push_back(1);
  Value mean = b.scale(b.sum(value, {2}), 1.0 / static_cast<double>(keys));
  mean = b.broadcast(mean, {source[0], source[1], perGroup, shape[2], source[3]}, {0, 1, 4});
  return b.select(b.broadcastTo(b.reshape(sees, column), shape), result, b.reshape(mean, shape));
}

Value maskOperand(Build &b, const Mask &mask, ArrayRef<int64_t> shape) {
  // Undo the broadcast to the shape of the scores, except along the keys.
  Value value = mask.value;
  if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> small(shape.size(), 1);
    for (auto [dim, target] : llvm::enumerate(broadcast.getBroadcastDimensions()))
      small[target] = shapeOf(broadcast.getOperand())[dim];
    value = b.reshape(broadcast.getOperand(), small);
    if (small.back() != shape.back()) {
      small.back() = shape.back();
      value = b.broadcastTo(value, small);
    }
  }
  if (mask.isAdded)
    return value;
  return mask.attendIsTrue ? value : b.compare(CompareDirection::Eq, value, b.splatLike(value, 0));
}

Value combineMasks(Build &b, Value x, Value y, Type scoreType) {
  SmallVector<int64_t> shape;
  for (auto [p, q] : llvm::zip_equal(shapeOf(x), shapeOf(y)))
    shape.push_back(std::max(p, q));
  auto widen = [&](Value mask, bool toAdded) {
    if (toAdded && tensorType(mask).getElementType().isInteger(1)) {
      auto type = RankedTensorType::get(shapeOf(mask), scoreType);
      mask = b.select(mask, b.zeros(type), b.splat(type, -std::numeric_limits<double>::infinity()));
    }
    return b.broadcastTo(mask, shape);
  };
  const bool boolean = tensorType(x).getElementType().isInteger(1) && tensorType(y).getElementType().isInteger(1);
  Value wideX = widen(x, !boolean), wideY = widen(y, !boolean);
  return boolean ? b.mul(wideX, wideY) : b.add(wideX, wideY);
}

} // namespace tessera::simplify
