//===- Finite.cpp - values that stay finite when they are rounded ---------===//
//
// See Finite.h.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Finite.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"
#include "passes/precision/Kept.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

/// The smallest number that bf16 rounds to infinity: half a unit beyond its largest, 2^128 (1 - 2^-8).
static constexpr double kRoundsToInfinity = 0x1p128 * (1 - 0x1p-9);
static constexpr double kLargest = 0x1p128 * (1 - 0x1p-8);

static bool isLarge(double number) { return std::isfinite(number) && std::abs(number) >= kRoundsToInfinity; }

static bool isLarge(ElementsAttr elements) {
  auto dense = dyn_cast<DenseFPElementsAttr>(elements);
  if (!dense)
    return false;
  auto isOne = [](APFloat value) {
    bool losesInfo = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return isLarge(value.convertToDouble());
  };
  return dense.isSplat() ? isOne(dense.getSplatValue<APFloat>()) : llvm::any_of(dense.getValues<APFloat>(), isOne);
}

LargeValues::LargeValues(func::FuncOp func) {
  for (BlockArgument arg : func.getArguments()) {
    const std::optional<ArgRole> role = getArgRole(func, arg.getArgNumber());
    const bool isGiven = role == ArgRole::Input || role == ArgRole::Frozen || role == ArgRole::Buffer;
    if (isGiven && isa<FloatType>(tensorType(arg).getElementType())) // no integer is that large
      known[arg] = Size::Given;
  }
  visit(func.getBody().front());
}

void LargeValues::visit(Block &block) {
  for (Operation &op : block) {
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      Block &body = accumulate.getBody().front();
      for (auto [operand, argument] : llvm::zip_equal(op.getOperands(), body.getArguments().drop_front()))
        known[argument] = known.lookup(operand);
      visit(body);
      for (auto [result, yielded] : llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
        known[result] = known.lookup(yielded);
      continue;
    }
    const Size size = op.getNumResults() == 1 ? sizeOf(&op) : Size::Ordinary;
    if (size != Size::Ordinary)
      known[op.getResult(0)] = size;
  }
}

LargeValues::Size LargeValues::sizeOf(Operation *op) const {
  if (!isa<FloatType>(tensorType(op->getResult(0)).getElementType()))
    return Size::Ordinary;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isLarge(constant.getValue()) ? Size::Large : Size::Ordinary;
  const bool isCombined = isa<NegOp, AbsOp, AddOp, SubOp, MulOp, DivOp, MaxOp, SelectOp>(op);
  auto reduce = dyn_cast<ReduceOp>(op);
  const bool isMoved =
      isa<IndexMappingOpInterface, ConvertOp, ConcatOp, PadOp, DynamicUpdateSliceOp, GatherRowsOp>(op) ||
      (reduce && reduce.getKind() != ReduceKind::Sum);
  if (!isCombined && !isMoved)
    return Size::Ordinary;
  Size size = Size::Ordinary;
  for (Value operand : op->getOperands())
    size = std::max(size, known.lookup(operand));
  if (auto pad = dyn_cast<PadOp>(op); pad && isLarge(pad.getValue().convertToDouble()))
    return Size::Large;
  return size == Size::Given && isCombined ? Size::Large : size;
}

Value roundLarge(OpBuilder &builder, Location loc, Value value) {
  Build b(builder, loc);
  // From half a unit beyond the largest on, and up to the largest of f32, this much less rounds to the largest.
  Value isBeyond = b.compare(CompareDirection::Ge, b.unary<AbsOp>(value), b.splatLike(value, kRoundsToInfinity));
  Value held = b.select(isBeyond, b.scale(value, 1 - 0x1p-8), value);
  return b.convert(held, builder.getBF16Type());
}

double heldByBf16(double number) { return isLarge(number) ? std::copysign(kLargest, number) : number; }

} // namespace tessera::precision
