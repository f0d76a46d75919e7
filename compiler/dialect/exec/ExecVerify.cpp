//===- ExecVerify.cpp - verifiers of the exec dialect ---------------------===//

#include "compiler/dialect/exec/ScaleLayout.h"
#include "compiler/dialect/train/Verify.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::exec;

/// The body's terminator must yield one value per result, of its type.
static LogicalResult verifyYield(Operation *op, Block &body) {
  auto yielded = body.getTerminator()->getOperandTypes();
  if (yielded.size() != op->getNumResults())
    return op->emitOpError("body yields ") << yielded.size() << " values, expected " << op->getNumResults();
  for (auto [i, got, expected] : llvm::enumerate(yielded, op->getResultTypes()))
    if (got != expected)
      return op->emitOpError("body yields ") << got << " as value " << i << ", expected " << expected;
  return success();
}

/// `body` must have arguments of exactly the types `expected`.
static LogicalResult verifyArguments(Operation *op, Block &body, TypeRange expected) {
  if (body.getNumArguments() != expected.size())
    return op->emitOpError("body has ") << body.getNumArguments() << " arguments, expected " << expected.size();
  for (auto [i, got, want] : llvm::enumerate(body.getArgumentTypes(), expected))
    if (got != want)
      return op->emitOpError("body argument ") << i << " is " << got << ", expected " << want;
  return success();
}

LogicalResult ArgumentOp::verify() {
  return tessera::train::verifyArgumentAttrs(*this, cast<ShapedType>(getBuffer().getType()));
}

LogicalResult ResultOp::verify() { return tessera::train::verifyResultAttrs(*this); }

LogicalResult FusionOp::verify() {
  Block &body = getBody().front();
  if (failed(verifyArguments(*this, body, getOperandTypes())) || failed(verifyYield(*this, body)))
    return failure();
  if (auto inplace = getInplace()) {
    if (inplace->size() != getNumResults())
      return emitOpError("'inplace' has ")
             << inplace->size() << " entries, expected one per result, " << getNumResults();
    for (auto [i, operand] : llvm::enumerate(*inplace)) {
      if (operand < -1 || operand >= static_cast<int64_t>(getNumOperands()))
        return emitOpError("'inplace' entry ")
               << i << " is " << operand << ", expected -1 or an operand number below " << getNumOperands();
      if (operand >= 0 && getOperand(operand).getType() != getResult(i).getType())
        return emitOpError("result ") << i << " cannot share the buffer of operand " << operand << ": "
                                      << getResult(i).getType() << " against " << getOperand(operand).getType();
    }
  }
  return success();
}

LogicalResult RepeatOp::verify() {
  if (static_cast<int64_t>(getCount()) < 1)
    return emitOpError("count is ") << static_cast<int64_t>(getCount()) << ", expected at least 1";
  SmallVector<Type> arguments = {RankedTensorType::get({}, IntegerType::get(getContext(), 64))};
  for (Type type : getBatch().getTypes()) {
    auto batch = cast<RankedTensorType>(type);
    if (batch.getRank() == 0 || batch.getDimSize(0) != static_cast<int64_t>(getCount()))
      return emitOpError("batch operand is ") << type << ", expected a leading dimension of " << getCount();
    arguments.push_back(batch.clone(batch.getShape().drop_front()));
  }
  llvm::append_range(arguments, getInit().getTypes());
  if (getInit().getTypes() != getResultTypes())
    return emitOpError("types of results and initial values differ");
  if (failed(verifyArguments(*this, getBody().front(), arguments)))
    return failure();
  return verifyYield(*this, getBody().front());
}

LogicalResult AddProductOp::verify() {
  return train::verifyContraction(*this, getLhs().getType(), getRhs().getType(), getType(),
                                  {getLhsBatch(), getRhsBatch(), getLhsContract(), getRhsContract()});
}

LogicalResult ScaledProductOp::verify() {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  const RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs()), result = typeOf(getResult());
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || lhs.getDimSize(1) != rhs.getDimSize(1) ||
      result.getShape() != ArrayRef<int64_t>{lhs.getDimSize(0), rhs.getDimSize(0)})
    return emitOpError() << "multiplies [m, k] and [n, k] to [m, n], got " << lhs << ", " << rhs << " and " << result;
  if (getAccumulator() && getAccumulator().getType() != result)
    return emitOpError() << "adds to a sum of type " << result << ", got " << getAccumulator().getType();
  return verifyScaledOperands(*this, {lhs, getLhsMode(), typeOf(getLhsScales())},
                              {rhs, getRhsMode(), typeOf(getRhsScales())}, result);
}

LogicalResult EpilogueProductOp::verify() {
  RankedTensorType result = cast<RankedTensorType>(getResult().getType());
  if (failed(train::verifyContraction(*this, cast<RankedTensorType>(getLhs().getType()),
                                      cast<RankedTensorType>(getRhs().getType()), result,
                                      {{}, {}, getLhsContract(), getRhsContract()})))
    return failure();
  Epilogue epilogue = getEpilogue();
  if (epilogue == Epilogue::None)
    return emitOpError("needs an epilogue; without one it is a dot_general or an add_product");
  bool takes = takesBias(epilogue) || takesPreActivation(epilogue),
       gives = givesPreActivation(epilogue) || givesBiasGrad(epilogue);
  if (takes != bool(getInput()) || gives != bool(getOutput()))
    return emitOpError() << stringifyEpilogue(epilogue) << " needs " << (takes ? "an" : "no") << " input and "
                         << (gives ? "an" : "no") << " output";
  if (getAccumulator() && (!sumsOperand(epilogue) || getAccumulator().getType() != result))
    return emitOpError() << "can add to a sum of type " << result << " as bias_grad_a or bias_grad_b only";
  size_t rows = cast<RankedTensorType>(getLhs().getType()).getRank() - getLhsContract().size();
  auto check = [&](Value value, bool isMatrix, StringRef what) -> LogicalResult {
    ArrayRef<int64_t> shape = result.getShape();
    if (!isMatrix)
      shape = epilogue == Epilogue::BiasGradA ? shape.take_front(rows) : shape.drop_front(rows);
    if (Type expected = result.clone(shape); value.getType() != expected)
      return emitOpError() << what << " is " << value.getType() << ", expected " << expected;
    return success();
  };
  if (takes && failed(check(getInput(), takesPreActivation(epilogue), "input")))
    return failure();
  return success(!gives || succeeded(check(getOutput(), givesPreActivation(epilogue), "output")));
}
