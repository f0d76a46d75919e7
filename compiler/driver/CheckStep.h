//===- CheckStep.h - attributes of a step that was not imported -*- C++ -*-===//

#ifndef TESSERA_COMPILER_DRIVER_CHECKSTEP_H
#define TESSERA_COMPILER_DRIVER_CHECKSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Reports the first argument, result or attribute of `func` that the phases cannot take.
llvm::LogicalResult checkStep(mlir::func::FuncOp func);

} // namespace tessera

#endif // TESSERA_COMPILER_DRIVER_CHECKSTEP_H
