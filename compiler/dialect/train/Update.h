//===- Update.h - what optimizer updates have in common ---------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_UPDATE_H
#define TESSERA_COMPILER_DIALECT_TRAIN_UPDATE_H

#include "mlir/IR/Operation.h"

namespace tessera::train {

/// The gradient that an optimizer update takes; null for other ops.
mlir::Value getUpdateGradient(mlir::Operation *op);

/// Where an optimizer update takes whether it is applied (i1); none for other ops.
std::optional<mlir::MutableOperandRange> getUpdateApply(mlir::Operation *op);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_UPDATE_H
