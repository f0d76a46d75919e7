//===- VerifyState.cpp - verifiers of region ops and rounding ------------===//

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
  // train.accumulate_c7
  const auto carried = static_cast<int64_t>(getCarried());
  if (carried < 0 || carried > static_cast<int64_t>(std::min<size_t>(getNumOperands(), getNumResults())))
    return emitOpError() << "carries " << carried << " values, of " << getNumOperands() << " operands and "
                         << getNumResults() << " results";
  auto counter = RankedTensorType::get({}, IntegerType::get(getContext(), 64));
  if (failed(verifyType(*this, "region argument 0", body.getArgument(0).getType(), counter)))
    return failure();
  for (auto [index, operand, argument] : llvm::enumerate(getOperands(), body.getArguments().drop_front())) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (isCarried(index)) {
      // train.accumulate_c8
      const size_t result = index + getNumResults() - getNumOperands();
      if (argument.getType() != type || getResult(result).getType() != type)
        return emitOpError() << "carries operand " << index << " of type " << type << " as region argument "
                             << index + 1 << " of type " << argument.getType() << " and result " << result
                             << " of type " << getResult(result).getType();
      continue;
    }
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

// --- Rounding ------------------------------------------------------------------

LogicalResult StochasticRoundOp::verify() {
  // train.stochastic_round_c1
  if (const auto lane = static_cast<int64_t>(getLane()); lane < 0 || lane > 7)
    return emitOpError() << "lane is " << lane << ", expected 0 to 7";
  return success();
}
