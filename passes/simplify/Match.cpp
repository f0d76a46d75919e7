//===- Match.cpp - small matchers on train IR -----------------------------===//

#include "passes/simplify/Match.h"

#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Running.h"
#include "passes/simplify/Pieces.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

/// A number as an element of another type; nothing if a type of integers does not hold it.
static std::optional<double> convertedTo(double number, Type type) {
  if (isa<FloatType>(type))
    return roundedTo(number, type);
  if (type.isInteger(1))
    return number == 0 || number == 1 ? std::optional(number) : std::nullopt;
  const double whole = std::trunc(number);
  return isWhole(whole) && holdsWhole(type, std::abs(whole)) ? std::optional(whole) : std::nullopt;
}

std::optional<double> uniformConstant(Value value) {
  SmallVector<Type, 2> types; // that the constant is converted to, the last one first
  while (isa_and_nonnull<BroadcastOp, ReshapeOp, ConvertOp, TransposeOp>(value.getDefiningOp())) {
    if (value.getDefiningOp<ConvertOp>())
      types.push_back(tensorType(value).getElementType());
    value = value.getDefiningOp()->getOperand(0);
  }
  std::optional<double> number = splatOf(value);
  for (Type type : llvm::reverse(types))
    number = number ? convertedTo(*number, type) : std::nullopt;
  return number;
}

std::optional<std::pair<Value, double>> scaledBy(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (auto factor = uniformConstant(mul.getRhs()))
      return std::pair(mul.getLhs(), *factor);
    if (auto factor = uniformConstant(mul.getLhs()))
      return std::pair(mul.getRhs(), *factor);
  }
  if (auto div = value.getDefiningOp<DivOp>())
    if (auto divisor = uniformConstant(div.getRhs()); divisor && *divisor != 0)
      return std::pair(div.getLhs(), 1.0 / *divisor);
  return std::nullopt;
}

Value squareOf(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>(); mul && mul.getLhs() == mul.getRhs())
    return mul.getLhs();
  if (auto pow = value.getDefiningOp<PowOp>(); pow && uniformConstant(pow.getRhs()) == 2.0)
    return pow.getLhs();
  return {};
}

Value unrepeated(Value value, int64_t dim, ArrayRef<int64_t> fullShape) {
  SmallVector<int64_t> kept(fullShape), removed(fullShape);
  kept[dim] = 1;
  removed.erase(removed.begin() + dim);
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp>(op))
      break;
    Value source = op->getOperand(0);
    ArrayRef<int64_t> shape = shapeOf(source);
    if (shape != ArrayRef<int64_t>(kept) && shape != ArrayRef<int64_t>(removed))
      break;
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      // Rows must stay where they are.
      SmallVector<int64_t> dims;
      for (int64_t d = 0, rank = static_cast<int64_t>(fullShape.size()); d < rank; ++d)
        if (d != dim || shape.size() == fullShape.size())
          dims.push_back(d);
      if (broadcast.getBroadcastDimensions() != ArrayRef<int64_t>(dims))
        break;
    }
    value = source;
  }
  return value;
}

Value repeatedVector(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape.size() == 1)
    return value;
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || shape.empty())
    return {};
  Value source = broadcast.getOperand();
  // Unit dimensions before the vector (from Unsqueeze) are dropped by looking through a reshape.
  if (auto reshape = source.getDefiningOp<ReshapeOp>();
      reshape && shapeOf(reshape.getOperand()).size() == 1 &&
      shapeOf(source).back() == shapeOf(reshape.getOperand())[0] &&
      broadcast.getBroadcastDimensions().back() + 1 == static_cast<int64_t>(shape.size()))
    source = reshape.getOperand();
  else if (broadcast.getBroadcastDimensions() != ArrayRef<int64_t>{static_cast<int64_t>(shape.size()) - 1})
    return {};
  if (shapeOf(source).size() != 1 || shapeOf(source)[0] != shape.back())
    return {};
  return source;
}

} // namespace tessera::simplify
