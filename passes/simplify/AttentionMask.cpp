//===- AttentionMask.cpp - masks of recognised attention ------------------===//

#include "passes/simplify/AttentionMask.h"

#include "passes/simplify/Documents.h"
#include "passes/simplify/KnownRows.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
enum class Cell { Open, Hidden, Neither };

Cell cellOf(double value, const Mask &mask) {
  if (mask.isAdded)
    return value == 0 ? Cell::Open : value <= kHiddenScore ? Cell::Hidden : Cell::Neither;
  return (value != 0) == mask.attendIsTrue ? Cell::Open : Cell::Hidden;
}

/// Nothing if a row shows other keys than a range, or does anything else to scores.
std::optional<Shown> shownIn(const Row &row, const Mask &mask, bool &hidesFinitely) {
  Shown shown{0, 0};
  int64_t begin = 0;
  for (const Piece &piece : row) {
    // Numbers that ascend are not a mask.
    const Cell cell = piece.slope == 0 ? cellOf(piece.first, mask) : Cell::Neither;
    if (cell == Cell::Neither)
      return std::nullopt;
    if (cell == Cell::Hidden && piece.end > begin)
      hidesFinitely |= !std::isinf(mask.isAdded ? piece.first : mask.hidden);
    if (cell == Cell::Open && piece.end > begin) {
      if (shown.begin == shown.end)
        shown = {begin, piece.end};
      else if (shown.end == begin)
        shown.end = piece.end;
      else
        return std::nullopt;
    }
    begin = piece.end;
  }
  return shown;
}
} // namespace

MaskClass classifyRanges(ArrayRef<Shown> ranges, int64_t columns) {
  const auto rows = static_cast<int64_t>(ranges.size());
  auto causalEnd = [&](int64_t row) { return std::clamp<int64_t>(row + columns - rows + 1, 0, columns); };
  auto are = [&](auto expected) {
    return llvm::all_of(llvm::enumerate(ranges), [&](auto range) { return range.value() == expected(range.index()); });
  };
  MaskClass found;
  found.showsOwn = rows <= columns && llvm::all_of(llvm::enumerate(ranges), [&](auto range) {
                     const int64_t own = static_cast<int64_t>(range.index()) + columns - rows;
                     return range.value().begin <= own && own < range.value().end;
                   });
  if (are([&](int64_t) { return Shown{0, columns}; })) {
    found.kind = MaskKind::Nothing;
  } else if (are([&](int64_t row) { return Shown{0, causalEnd(row)}; })) {
    found.kind = MaskKind::Causal;
  } else {
    const int64_t window = ranges.back().end - ranges.back().begin;
    if (rows <= columns && window > 0 && are([&](int64_t row) {
          return Shown{std::max<int64_t>(causalEnd(row) - window, 0), causalEnd(row)};
        })) {
      found.kind = MaskKind::Window;
      found.window = window;
      return found;
    }
    found.kind = MaskKind::Ranges;
    for (const Shown &range : ranges) {
      found.begin.push_back(range.begin);
      found.end.push_back(range.end);
    }
  }
  return found;
}

std::optional<SmallVector<Shown, 0>> shownKeys(const Mask &mask, bool &hidesFinitely) {
  const ArrayRef<int64_t> shape = shapeOf(mask.value);
  if (shape.size() < 2 || tensorType(mask.value).getNumElements() == 0)
    return std::nullopt;
  const int64_t rows = shape[shape.size() - 2];
  KnownRows known;
  const llvm::BitVector varies = known.variesAlong(mask.value);
  SmallVector<Shown, 0> ranges(rows);
  SmallVector<int64_t> index(shape.size() - 1, 0);
  bool isFirst = true; // of the samples and heads that may differ
  while (true) {
    const std::optional<Row> row = known.row(mask.value, index);
    const std::optional<Shown> shown = row ? shownIn(*row, mask, hidesFinitely) : std::nullopt;
    if (!shown)
      return std::nullopt;
    const int64_t query = index.back();
    if (!isFirst && !(ranges[query] == *shown))
      return std::nullopt;
    if (isFirst && !varies[index.size() - 1])
      llvm::fill(ranges, *shown);
    ranges[query] = *shown;
    // The next row that may differ.
    size_t dim = index.size();
    while (dim-- > 0) {
      if (varies[dim] && ++index[dim] < shape[dim])
        break;
      index[dim] = 0;
      if (dim + 1 == index.size())
        isFirst = false;
      if (dim == 0)
        return ranges;
    }
  }
}

MaskClass classifyMask(const Mask &mask, bool promiseRuns) {
  bool hidesFinitely = false;
  const auto ranges = shownKeys(mask, hidesFinitely);
  if (!ranges)
    return classifyDocuments(mask, promiseRuns).value_or(MaskClass());
  MaskClass found = classifyRanges(*ranges, shapeOf(mask.value).back());
  found.hidesFinitely = hidesFinitely;
  return found;
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
