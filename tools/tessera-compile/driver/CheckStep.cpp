//===- CheckStep.cpp - attributes that a step must not bring along --------===//

#include "tools/tessera-compile/driver/CheckStep.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Signature.h"

using namespace mlir;

namespace tessera {

/// What is local to a rank is made by the shard phase, for the mesh of this compilation.
static LogicalResult checkNotLocal(func::FuncOp func, const char *what, unsigned index, DictionaryAttr attrs) {
  if (attrs && attrs.contains(dist::kGlobal))
    return func.emitError() << what << " " << index << ": " << dist::kGlobal
                            << " cannot be given: the shard phase makes it";
  return success();
}

LogicalResult checkStep(func::FuncOp func) {
  if (func.isExternal())
    return func.emitError("step function has no body");
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (failed(checkNotLocal(func, "argument", index, func.getArgAttrDict(index))))
      return failure();
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (failed(checkNotLocal(func, "result", index, func.getResultAttrDict(index))))
      return failure();
  if (!train::isStepFunction(func))
    return func.emitError("step function has no argument with a train.role");
  return success();
}

void remarkAssumedDims(func::FuncOp step) {
  for (unsigned index = 0; index < step.getNumArguments(); ++index) {
    if (!train::isBatchArgument(step, index) || step.getArgAttr(index, train::kDims))
      continue;
    if (const int64_t dim = train::getDims(step, index).getSampleDim(); dim >= 0)
      emitRemark(step.getArgument(index).getLoc())
          << "dimension " << dim << " of '" << train::getArgName(step, index)
          << "' is assumed to count samples, as nothing says which does (--dim-role, train.dims)";
  }
}

} // namespace tessera
