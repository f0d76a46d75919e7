//===- CheckStep.h - what a step must not bring along -----*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHECKSTEP_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHECKSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Reports what the phases cannot take though it is valid IR.
llvm::LogicalResult checkStep(mlir::func::FuncOp func);

/// Remarks which dimension of an input or target is taken for the batch although nothing says so.
void remarkAssumedDims(mlir::func::FuncOp step);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHECKSTEP_H
