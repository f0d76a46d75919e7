//===- Exec.h - the exec dialect --------------------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_EXEC_EXEC_H
#define TESSERA_COMPILER_DIALECT_EXEC_EXEC_H

#include "compiler/dialect/train/Train.h"
#include "mlir/IR/SymbolTable.h"

#include "compiler/dialect/exec/ExecDialect.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/exec/ExecOps.h.inc"

#endif // TESSERA_COMPILER_DIALECT_EXEC_EXEC_H
