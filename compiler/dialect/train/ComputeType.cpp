//===- ComputeType.cpp - what is computed in f32 --------------------------===//
//
// See ComputeType.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/ComputeType.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera::train {

bool isComputedInF32(func::FuncOp func, unsigned index) {
  auto type = func.getArgAttrOfType<TypeAttr>(index, kComputeType);
  return type && type.getValue().isF32();
}

bool isComputedInFloat8(func::FuncOp func, unsigned index) {
  auto type = func.getArgAttrOfType<TypeAttr>(index, kComputeType);
  return type && isa<Float8E4M3FNType>(type.getValue());
}

bool isComputedInF32(DotGeneralOp product) {
  std::optional<Type> type = product.getComputeType();
  return type && type->isF32();
}

namespace {

bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Whether the op's first result is made of its float operands by ops that round nothing unless their operands are
/// rounded.
bool keepsPrecision(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<IndexMappingOpInterface>(op) ||
         isa<ConcatOp, PadOp, ReduceOp, DotGeneralOp, SoftmaxOp, LayerNormOp, DynamicSliceOp, DynamicUpdateSliceOp,
             GatherRowsOp, ScatterAddRowsOp, BarrierOp, ConvertOp>(op);
}

/// Rows that data choose are activations, whatever they are taken from.
bool choosesByData(Operation *op) {
  auto isConstant = [](Value indices) { return indices.getDefiningOp<ConstantOp>() != nullptr; };
  if (auto rows = dyn_cast<GatherRowsOp>(op))
    return !isConstant(rows.getIndices());
  auto rows = dyn_cast<ScatterAddRowsOp>(op);
  return rows && !isConstant(rows.getIndices());
}

} // namespace

F32Values::F32Values(func::FuncOp func, Products products) : products(products) {
  for (BlockArgument arg : func.getArguments())
    if (isComputedInF32(func, arg.getArgNumber()))
      exact.insert(arg);
  func.walk([&](Operation *op) { visit(op); });
}

bool F32Values::isNeutral(Value value) const {
  return neutral.contains(value) || (!isFloat(value) && (products == Products::OfData || isa<BlockArgument>(value)));
}

void F32Values::visit(Operation *op) {
  if (op->getNumResults() == 0 || op->getNumRegions() > 0)
    return;
  if (llvm::all_of(op->getOperands(), [&](Value operand) { return isNeutral(operand); })) {
    neutral.insert(op->result_begin(), op->result_end());
    return;
  }
  Value result = op->getResult(0);
  if (exact.empty() || (isFloat(result) && !tensorType(result).getElementType().isF32()))
    return;
  const bool ofData = products == Products::OfData;
  if (ofData && isMarkedBackward(op) && !op->hasAttr(kRecompute))
    return;
  auto dot = dyn_cast<DotGeneralOp>(op);
  auto follows = [&] {
    return (!isFloat(result) || keepsPrecision(op)) && (ofData || !choosesByData(op)) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return exact.contains(operand) || isNeutral(operand); });
  };
  if (dot && ofData ? isComputedInF32(dot) : follows())
    exact.insert(result);
}

} // namespace tessera::train
