//===- CheckStep.h - what a step must not bring along -----*- C++ -*-===//

#ifndef TESSERA_COMPILER_DRIVER_CHECKSTEP_H
#define TESSERA_COMPILER_DRIVER_CHECKSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Reports what the phases cannot take though it is valid IR.
llvm::LogicalResult checkStep(mlir::func::FuncOp func);

} // namespace tessera

#endif // TESSERA_COMPILER_DRIVER_CHECKSTEP_H
