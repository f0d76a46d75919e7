//===- TrainFold.cpp - folders of the train dialect -----------------------===//
//
// Algebraic identities that need no new op. Ops on constants are folded by the
// reference interpreter (compiler/interp/ConstantFold.cpp) where these find
// nothing. `x + 0` is taken to be `x`: the sign of a zero is not kept.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Train.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

static bool isIota(ArrayRef<int64_t> values) {
  return llvm::all_of(llvm::enumerate(values), [](auto entry) { return entry.value() == int64_t(entry.index()); });
}

// --- Elementwise ---------------------------------------------------------------

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// Nothing, or to a wider type and back.
OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  auto inner = getOperand().getDefiningOp<ConvertOp>();
  if (!inner || inner.getOperand().getType() != getType())
    return {};
  auto narrow = dyn_cast<FloatType>(inner.getOperand().getType().getElementType());
  auto wide = dyn_cast<FloatType>(getOperand().getType().getElementType());
  const bool isExact = narrow && wide && wide.getFPMantissaWidth() > narrow.getFPMantissaWidth() &&
                       APFloat::semanticsMaxExponent(wide.getFloatSemantics()) >=
                           APFloat::semanticsMaxExponent(narrow.getFloatSemantics());
  return isExact ? OpFoldResult(inner.getOperand()) : OpFoldResult();
}

OpFoldResult NegOp::fold(FoldAdaptor) {
  auto inner = getOperand().getDefiningOp<NegOp>();
  return inner ? OpFoldResult(inner.getOperand()) : OpFoldResult();
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  return splatOf(adaptor.getRhs()) == 0.0 ? OpFoldResult(getLhs()) : OpFoldResult();
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return splatOf(adaptor.getRhs()) == 0.0 ? OpFoldResult(getLhs()) : OpFoldResult();
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  return splatOf(adaptor.getRhs()) == 1.0 ? OpFoldResult(getLhs()) : OpFoldResult();
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return splatOf(adaptor.getRhs()) == 1.0 ? OpFoldResult(getLhs()) : OpFoldResult();
}

OpFoldResult PowOp::fold(FoldAdaptor adaptor) {
  return splatOf(adaptor.getRhs()) == 1.0 ? OpFoldResult(getLhs()) : OpFoldResult();
}

OpFoldResult CompareOp::fold(FoldAdaptor) { return {}; }

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() || splatOf(adaptor.getPredicate()) == 1.0)
    return getOnTrue();
  if (splatOf(adaptor.getPredicate()) == 0.0)
    return getOnFalse();
  return {};
}

// --- Shape ---------------------------------------------------------------------

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (isIota(getPermutation()))
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : getPermutation())
      composed.push_back(inner.getPermutation()[dim]);
    setPermutation(composed);
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : inner.getBroadcastDimensions())
      composed.push_back(getBroadcastDimensions()[dim]);
    setBroadcastDimensions(composed);
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

/// The operand of `concat` that holds the box [start, limit) along its dimension, and where it starts; null if none
/// does.
static std::pair<Value, int64_t> findPart(ConcatOp concat, int64_t start, int64_t limit) {
  int64_t offset = 0;
  for (Value part : concat.getOperands()) {
    int64_t size = cast<RankedTensorType>(part.getType()).getShape()[concat.getDim()];
    if (start >= offset && limit <= offset + size)
      return {part, offset};
    offset += size;
  }
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<SliceOp>()) {
    SmallVector<int64_t> starts, limits, strides;
    for (auto [start, step, size, innerStart, innerStep] :
         llvm::zip_equal(getStarts(), getStrides(), getType().getShape(), inner.getStarts(), inner.getStrides())) {
      starts.push_back(innerStart + start * innerStep);
      strides.push_back(step * innerStep);
      limits.push_back(size == 0 ? starts.back() : starts.back() + (size - 1) * strides.back() + 1);
    }
    setStarts(starts);
    setLimits(limits);
    setStrides(strides);
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  if (auto concat = getOperand().getDefiningOp<ConcatOp>()) {
    int64_t dim = concat.getDim();
    auto [part, offset] = findPart(concat, getStarts()[dim], getLimits()[dim]);
    if (!part)
      return {};
    SmallVector<int64_t> starts(getStarts()), limits(getLimits());
    starts[dim] -= offset;
    limits[dim] -= offset;
    setStarts(starts);
    setLimits(limits);
    getOperandMutable().assign(part);
    return getResult();
  }
  return {};
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? OpFoldResult(getOperand()) : OpFoldResult();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getOperands().size() == 1 ? OpFoldResult(getOperands().front()) : OpFoldResult();
}

// --- Reduce --------------------------------------------------------------------

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  return getDimensions().empty() ? OpFoldResult(getOperand()) : OpFoldResult();
}
