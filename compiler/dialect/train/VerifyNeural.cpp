//===- VerifyNeural.cpp - verifiers of neural and quantisation ops --------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Float8.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

/// The type of what is read, or the one in which it is added up.
static LogicalResult verifySumType(Operation *op, StringRef name, RankedTensorType type, RankedTensorType own) {
  const Type element = own.getElementType();
  if (type.getShape() == own.getShape() &&
      (type.getElementType() == element || type.getElementType() == accumulationType(element)))
    return success();
  return op->emitOpError() << name << " has type " << type << ", expected " << own << " or "
                           << own.clone(accumulationType(element));
}

LogicalResult SoftmaxOp::verify() {
  // train.softmax_c1
  return verifyDim(*this, "dim", getDim(), getType().getRank());
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.layer_norm_c1
  if (operand.getRank() == 0)
    return emitOpError("operand has rank 0, expected at least 1");
  ArrayRef<int64_t> vector = operand.getShape().take_back();
  // train.layer_norm_c2
  if (getScale() && failed(verifyShape(*this, "scale", getScale().getType(), vector)))
    return failure();
  // train.layer_norm_c3
  if (getBias() && failed(verifyShape(*this, "bias", getBias().getType(), vector)))
    return failure();
  // train.layer_norm_c4
  if (getBias() && getMode() == NormMode::Rms)
    return emitOpError("has a bias, which mode rms does not take");
  // train.layer_norm_c5
  ArrayRef<int64_t> rows = operand.getShape().drop_back();
  if (failed(verifyShape(*this, "mean", getMean().getType(), rows)) ||
      failed(verifyShape(*this, "rstd", getRstd().getType(), rows)))
    return failure();
  // train.layer_norm_c6
  if (getEpsilon().isNegative() || !getEpsilon().isFinite())
    return emitOpError("epsilon is negative or not finite");
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  RankedTensorType logits = getLogits().getType();
  // train.cross_entropy_c1
  if (logits.getRank() != 2)
    return emitOpError() << "logits have rank " << logits.getRank() << ", expected 2";
  ArrayRef<int64_t> rows = logits.getShape().take_front();
  // train.cross_entropy_c2
  if (failed(verifyShape(*this, "targets", getTargets().getType(), rows)))
    return failure();
  // train.cross_entropy_c3
  if (failed(verifyShape(*this, "loss", getLoss().getType(), rows)) ||
      failed(verifyShape(*this, "lse", getLse().getType(), rows)))
    return failure();
  // train.cross_entropy_c4
  double smoothing = getLabelSmoothing().convertToDouble();
  if (!(smoothing >= 0.0 && smoothing <= 1.0))
    return emitOpError() << "label_smoothing is " << smoothing << ", expected at least 0 and at most 1";
  return success();
}

/// What the loss of a linear layer and its gradient share.
template <typename Op> static LogicalResult verifyLinearLoss(Op op) {
  RankedTensorType hidden = op.getHidden().getType(), weight = op.getWeight().getType();
  // train.linear_cross_entropy_c1
  if (hidden.getRank() != 2 || weight.getRank() != 2)
    return op.emitOpError() << "hidden has rank " << hidden.getRank() << " and weight " << weight.getRank()
                            << ", expected 2";
  // train.linear_cross_entropy_c2
  if (failed(verifyDim(op, "weight_dim", op.getWeightDim(), 2)))
    return failure();
  // train.linear_cross_entropy_c3
  if (weight.getDimSize(op.getWeightDim()) != hidden.getDimSize(1))
    return op.emitOpError() << "contracts " << hidden.getDimSize(1) << " with " << weight.getDimSize(op.getWeightDim())
                            << " elements";
  ArrayRef<int64_t> rows = hidden.getShape().take_front();
  // train.linear_cross_entropy_c4
  if (failed(verifyShape(op, "targets", op.getTargets().getType(), rows)) ||
      failed(verifyShape(op, "loss", op.getLoss().getType(), rows)) ||
      failed(verifyShape(op, "lse", op.getLse().getType(), rows)))
    return failure();
  const double smoothing = op.getLabelSmoothing().convertToDouble();
  // train.linear_cross_entropy_c5
  if (!(smoothing >= 0.0 && smoothing <= 1.0))
    return op.emitOpError() << "label_smoothing is " << smoothing << ", expected at least 0 and at most 1";
  return success();
}

LogicalResult LinearCrossEntropyOp::verify() { return verifyLinearLoss(*this); }

LogicalResult LinearCrossEntropyGradOp::verify() {
  if (failed(verifyLinearLoss(*this)))
    return failure();
  // train.linear_cross_entropy_grad_c1
  if (failed(verifyShape(*this, "loss_grad", getLossGrad().getType(), getLse().getType().getShape())))
    return failure();
  // train.linear_cross_entropy_grad_c2
  return failure(failed(verifySumType(*this, "hidden_grad", getHiddenGrad().getType(), getHidden().getType())) ||
                 failed(verifySumType(*this, "weight_grad", getWeightGrad().getType(), getWeight().getType())));
}

// --- Attention ---------------------------------------------------------------------

/// What attention and its gradient share.
template <typename Op> static LogicalResult verifyAttention(Op op, RankedTensorType output, RankedTensorType lse) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType(), value = op.getValue().getType();
  // train.attention_c1
  for (auto [name, type] : {std::pair("query", query), std::pair("key", key), std::pair("value", value)})
    if (type.getRank() != 4)
      return op.emitOpError() << name << " has rank " << type.getRank() << ", expected 4";
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  // train.attention_c2
  if (k[1] == 0 || q[1] % k[1] != 0)
    return op.emitOpError() << "query has " << q[1] << " heads, expected a multiple of the key's " << k[1];
  // train.attention_c3
  if (failed(verifyShape(op, "key", key, {q[0], k[1], k[2], q[3]})))
    return failure();
  // train.attention_c4
  if (failed(verifyShape(op, "value", value, {q[0], k[1], k[2], v[3]})))
    return failure();
  // train.attention_c5
  if (failed(verifyShape(op, "output", output, {q[0], q[1], q[2], v[3]})))
    return failure();
  // train.attention_c6
  if (failed(verifyShape(op, "lse", lse, {q[0], q[1], q[2]})))
    return failure();
  // train.attention_c9
  if (!op.getBegin() != !op.getEnd())
    return op.emitOpError("has one end of the keys that are seen, expected both or none");
  if (op.getBegin())
    for (RankedTensorType type : {op.getBegin().getType(), op.getEnd().getType()})
      // train.attention_c10
      if (!type.getElementType().isInteger(64) || type.getRank() != 2 ||
          (type.getDimSize(0) != 1 && type.getDimSize(0) != q[0]) || type.getDimSize(1) != q[2])
        return op.emitOpError() << "keys that are seen have type " << type << ", expected tensor<" << q[0] << "x"
                                << q[2] << "xi64>, or size 1 in the first dimension";
  // train.attention_c11
  if (op.getWindow() && (!op.getCausal() || *op.getWindow() < 1))
    return op.emitOpError() << "has a window of " << *op.getWindow() << " keys, expected at least 1, and causal";
  if (!op.getMask())
    return success();
  RankedTensorType mask = op.getMask().getType();
  // train.attention_c7
  if (!isa<FloatType>(mask.getElementType()) && !mask.getElementType().isInteger(1))
    return op.emitOpError() << "mask has element type " << mask.getElementType() << ", expected i1 or floating point";
  // train.attention_c8
  SmallVector<int64_t> full = {q[0], q[1], q[2], k[2]};
  bool broadcasts = mask.getRank() == 4 && mask.getShape()[3] == full[3];
  for (int dim = 0; broadcasts && dim < 3; ++dim)
    broadcasts = mask.getShape()[dim] == 1 || mask.getShape()[dim] == full[dim];
  if (!broadcasts)
    return op.emitOpError() << "mask has type " << mask << ", expected " << mask.clone(full)
                            << " or size 1 in the first three dimensions";
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this, getResult().getType(), getLse().getType())))
    return failure();
  // train.attention_c12
  return verifySumType(*this, "result", getResult().getType(),
                       getResult().getType().clone(getQuery().getType().getElementType()));
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this, getOutput().getType(), getLse().getType())))
    return failure();
  // train.attention_grad_c1
  if (failed(verifyShape(*this, "output_grad", getOutputGrad().getType(), getOutput().getType().getShape())))
    return failure();
  // train.attention_grad_c2
  if (failed(verifySumType(*this, "query_grad", getQueryGrad().getType(), getQuery().getType())) ||
      failed(verifySumType(*this, "key_grad", getKeyGrad().getType(), getKey().getType())) ||
      failed(verifySumType(*this, "value_grad", getValueGrad().getType(), getValue().getType())))
    return failure();
  return success();
}

// --- Quantisation ------------------------------------------------------------------

/// A scale is a scalar, or has the rank of the tensor and sizes that divide its sizes.
static LogicalResult verifyScale(Operation *op, StringRef name, RankedTensorType tensor, RankedTensorType scale) {
  if (!scale.getElementType().isF32())
    return op->emitOpError() << name << " has element type " << scale.getElementType() << ", expected f32";
  bool fits = scale.getRank() == 0 || scale.getRank() == tensor.getRank();
  if (fits && scale.getRank() != 0)
    for (auto [size, own] : llvm::zip_equal(tensor.getShape(), scale.getShape()))
      fits &= own > 0 && size % own == 0;
  if (!fits)
    return op->emitOpError() << name << " has type " << scale << ", expected a scalar or the rank of " << tensor
                             << " with divisors of its sizes";
  return success();
}

static LogicalResult verifyFloat8(Operation *op, StringRef name, Type element) {
  if (!isFloat8(element))
    return op->emitOpError() << name << " has element type " << element << ", expected f8E4M3FN or f8E5M2";
  return success();
}

/// What is rounded to 8 bits, and what is made of them: f32 holds it all.
static LogicalResult verifyWide(Operation *op, StringRef name, Type element) {
  if (!isa<Float32Type, BFloat16Type, Float16Type>(element))
    return op->emitOpError() << name << " has element type " << element << ", expected f32, bf16 or f16";
  return success();
}

LogicalResult QuantizeScaleOp::verify() {
  // train.quantize_scale_c1
  if (failed(verifyFloat8(*this, "format", getFormat())))
    return failure();
  // train.quantize_scale_c2
  if (!getType().getElementType().isF32())
    return emitOpError() << "result has element type " << getType().getElementType() << ", expected f32";
  return success();
}

LogicalResult QuantizeOp::verify() {
  // train.quantize_c1
  if (failed(verifyFloat8(*this, "result", getType().getElementType())))
    return failure();
  // train.quantize_c2
  if (failed(verifyShape(*this, "result", getType(), getOperand().getType().getShape())))
    return failure();
  // train.quantize_c4
  if (failed(verifyWide(*this, "operand", getOperand().getType().getElementType())))
    return failure();
  // train.quantize_c3
  return verifyScale(*this, "scale", getOperand().getType(), getScale().getType());
}

LogicalResult DequantizeOp::verify() {
  // train.dequantize_c1
  if (failed(verifyFloat8(*this, "operand", getOperand().getType().getElementType())))
    return failure();
  // train.dequantize_c2
  if (failed(verifyShape(*this, "result", getType(), getOperand().getType().getShape())))
    return failure();
  // train.dequantize_c4
  if (failed(verifyWide(*this, "result", getType().getElementType())))
    return failure();
  // train.dequantize_c3
  return verifyScale(*this, "inverse_scale", getOperand().getType(), getInverseScale().getType());
}

LogicalResult ScaledDotOp::verify() {
  const RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  const RankedTensorType lhsScale = getLhsInverseScale().getType(), rhsScale = getRhsInverseScale().getType();
  // train.scaled_dot_c1
  if (failed(verifyFloat8(*this, "lhs", lhs.getElementType())) ||
      failed(verifyFloat8(*this, "rhs", rhs.getElementType())))
    return failure();
  // train.scaled_dot_c2
  if (failed(verifyContraction(*this, lhs, rhs, getType(), {{}, {}, getLhsContract(), getRhsContract()})))
    return failure();
  // train.scaled_dot_c3
  if (failed(verifyScale(*this, "lhs_inverse_scale", lhs, lhsScale)) ||
      failed(verifyScale(*this, "rhs_inverse_scale", rhs, rhsScale)))
    return failure();
  // train.scaled_dot_c5
  if (failed(verifyWide(*this, "result", getType().getElementType())))
    return failure();
  // train.scaled_dot_c4
  auto count = [](RankedTensorType scale, int64_t dim) { return scale.getRank() == 0 ? 1 : scale.getDimSize(dim); };
  for (auto [l, r] : llvm::zip_equal(getLhsContract(), getRhsContract()))
    if (const int64_t left = count(lhsScale, l), right = count(rhsScale, r); left != right && left != 1 && right != 1)
      return emitOpError() << "has " << left << " scales along dimension " << l << " of lhs, and " << right
                           << " along dimension " << r << " of rhs, which is contracted with it";
  return success();
}
