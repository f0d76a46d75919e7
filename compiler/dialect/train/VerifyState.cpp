//===- VerifyState.cpp - verifiers of region and optimizer ops ------------===//

#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

/// The types that a region yields are those of the op's results.
static LogicalResult verifyYield(Operation *op, Operation *yield) {
  if (llvm::equal(yield->getOperandTypes(), op->getResultTypes()))
    return success();
  if (failed(verifyCount(op, "yield", yield->getNumOperands(), op->getNumResults())))
    return failure();
  for (auto [index, yielded, result] : llvm::enumerate(yield->getOperandTypes(), op->getResultTypes()))
    if (yielded != result)
      return op->emitOpError() << "yields value " << index << " of type " << yielded << ", expected " << result;
  return success();
}

LogicalResult AccumulateOp::verify() {
  // train.accumulate_c1
  if (static_cast<int64_t>(getCount()) < 1)
    return emitOpError() << "count is " << static_cast<int64_t>(getCount()) << ", expected at least 1";
  Block &body = getBody().front();
  // train.accumulate_c2
  if (failed(verifyCount(*this, "region argument list", body.getNumArguments(), getOperands().size() + 1)))
    return failure();
  // train.accumulate_c3
  auto counter = RankedTensorType::get({}, IntegerType::get(getContext(), 64));
  if (failed(verifyType(*this, "region argument 0", body.getArgument(0).getType(), counter)))
    return failure();
  for (auto [index, operand, argument] : llvm::enumerate(getOperands(), body.getArguments().drop_front())) {
    auto type = cast<RankedTensorType>(operand.getType());
    // train.accumulate_c4
    if (type.getRank() == 0 || type.getShape()[0] != static_cast<int64_t>(getCount()))
      return emitOpError() << "operand " << index << " has type " << type << ", expected a leading dimension of size "
                           << getCount();
    // train.accumulate_c5
    Type micro = type.clone(type.getShape().drop_front());
    if (argument.getType() != micro)
      return emitOpError() << "region argument " << index + 1 << " has type " << argument.getType() << ", expected "
                           << micro;
  }
  // train.accumulate_c6
  return verifyYield(*this, body.getTerminator());
}

// --- Optimizer -----------------------------------------------------------------

static LogicalResult verifyFraction(Operation *op, StringRef name, const APFloat &value) {
  double number = value.convertToDouble();
  if (!(number >= 0.0 && number < 1.0))
    return op->emitOpError() << name << " is " << number << ", expected at least 0 and less than 1";
  return success();
}

template <typename Op> static LogicalResult verifyDecay(Op op) {
  if (static_cast<int64_t>(op.getDecayElements()) < 0)
    return op.emitOpError() << "decay_elements is " << static_cast<int64_t>(op.getDecayElements())
                            << ", expected at least 0";
  return success();
}

LogicalResult AdamwUpdateOp::verify() {
  ArrayRef<int64_t> shape = getParam().getType().getShape();
  // train.adamw_update_c1
  if (failed(verifyShape(*this, "m", getM().getType(), shape)) ||
      failed(verifyShape(*this, "v", getV().getType(), shape)))
    return failure();
  // train.adamw_update_c2
  if (failed(verifyShape(*this, "grad", getGrad().getType(), shape)))
    return failure();
  // train.adamw_update_c3
  if (failed(verifyFraction(*this, "beta1", getBeta1())) || failed(verifyFraction(*this, "beta2", getBeta2())))
    return failure();
  // train.adamw_update_c4
  return verifyDecay(*this);
}

LogicalResult SgdUpdateOp::verify() {
  ArrayRef<int64_t> shape = getParam().getType().getShape();
  // train.sgd_update_c1
  if (failed(verifyShape(*this, "grad", getGrad().getType(), shape)))
    return failure();
  // train.sgd_update_c2
  if ((getBuffer() != nullptr) != (getNewBuffer() != nullptr))
    return emitOpError("needs both a buffer and its next value, or neither");
  // train.sgd_update_c3
  if (getBuffer() && failed(verifyType(*this, "new_buffer", getNewBuffer().getType(), getBuffer().getType())))
    return failure();
  if (getBuffer() && failed(verifyShape(*this, "buffer", getBuffer().getType(), shape)))
    return failure();
  // train.sgd_update_c4
  if (getMomentum().isZero() == (getBuffer() != nullptr))
    return emitOpError(getBuffer() ? "has a buffer but no momentum" : "has momentum but no buffer");
  // train.sgd_update_c5
  if (getNesterov() && !getBuffer())
    return emitOpError("is nesterov but has no momentum");
  // train.sgd_update_c6
  return verifyDecay(*this);
}
