//===- Aliases.h - results that are the next values of arguments -*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_ALIASES_H
#define TESSERA_COMPILER_DIALECT_TRAIN_ALIASES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::train {

/// Reports a result whose `train.alias` is not the number of an argument of its type.
llvm::LogicalResult verifyAliases(mlir::func::FuncOp func);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_ALIASES_H
