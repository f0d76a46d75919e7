//===- AttentionMask.cpp - masks of recognised attention ------------------===//

#include "passes/simplify/AttentionMask.h"

#include "passes/simplify/Match.h"

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

/// The elements of a constant mask, seen through broadcasts and reshapes that leave the last two dimensions alone.
DenseElementsAttr elementsOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op))
      return dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!isa<BroadcastOp, ReshapeOp, ConvertOp>(op))
      return {};
    Value source = op->getOperand(0);
    // The last two dimensions must be the same before and after.
    ArrayRef<int64_t> from = shapeOf(source), to = shapeOf(value);
    if (from.size() < 2 || to.size() < 2 || from.take_back(2) != to.take_back(2))
      return {};
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
      if (dims.back() + 1 != static_cast<int64_t>(to.size()) ||
          dims[dims.size() - 2] + 2 != static_cast<int64_t>(to.size()))
        return {};
    }
    value = source;
  }
  return {};
}

bool compareHolds(CompareDirection direction, double a, double b) {
  switch (direction) {
  case CompareDirection::Eq:
    return a == b;
  case CompareDirection::Ne:
    return a != b;
  case CompareDirection::Lt:
    return a < b;
  case CompareDirection::Le:
    return a <= b;
  case CompareDirection::Gt:
    return a > b;
  case CompareDirection::Ge:
    return a >= b;
  }
  return false;
}
} // namespace

MaskKind classifyMask(const Mask &mask) {
  Value value = mask.value;
  auto compare = value.getDefiningOp<CompareOp>();
  double constant = 0;
  if (compare) {
    auto uniform = uniformConstant(compare.getRhs());
    if (!uniform)
      return MaskKind::Other;
    constant = *uniform;
    value = compare.getLhs();
  }
  DenseElementsAttr elements = elementsOf(value);
  if (!elements || elements.getType().getRank() < 2 || elements.getNumElements() == 0)
    return MaskKind::Other;
  ArrayRef<int64_t> shape = elements.getType().getShape();
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  bool open = true, causal = true;
  auto visit = [&](int64_t flat, double raw) {
    const double value = compare ? compareHolds(compare.getDirection(), raw, constant) : raw;
    const Cell cell = cellOf(value, mask);
    const int64_t i = flat / columns % rows, j = flat % columns;
    open &= cell == Cell::Open;
    causal &= cell == (j <= i + columns - rows ? Cell::Open : Cell::Hidden);
    return open || causal;
  };
  int64_t flat = 0;
  if (isa<FloatType>(elements.getElementType())) {
    for (const APFloat &element : elements.getValues<APFloat>())
      if (!visit(flat++, element.convertToDouble()))
        return MaskKind::Other;
  } else {
    for (const APInt &element : elements.getValues<APInt>())
      if (!visit(flat++,
                 static_cast<double>(element.getBitWidth() == 1 ? element.getZExtValue() : element.getSExtValue())))
        return MaskKind::Other;
  }
  return open ? MaskKind::Nothing : MaskKind::Causal;
}

Value maskOperand(Build &b, const Mask &mask, ArrayRef<int64_t> shape, Type scoreType) {
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
  Value attend = mask.attendIsTrue ? value : b.compare(CompareDirection::Eq, value, b.splatLike(value, 0));
  if (std::isinf(mask.hidden))
    return attend;
  // A finite score keeps rows that see nothing apart from zero: add it, as the model does in effect.
  auto type = RankedTensorType::get(shapeOf(attend), scoreType);
  return b.select(attend, b.zeros(type), b.splat(type, mask.hidden));
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
