//===- ValueNumbering.h - each read sees the value it stands for -*- C++ -*-===//
//
// Proves that an exec program carries out the step that it was made from. Both run side by side: the step tells which
// value each operand of each instruction stands for (ValueContents.h), the program what memory holds there
// (MemoryContents.h). Copies and fills need no counterpart; whether they are right shows in what is read later on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_VALUENUMBERING_H
#define TESSERA_PASSES_LOWER_VALUENUMBERING_H

#include "compiler/dialect/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::lower {

/// The step that the program was made from and still carries; null if it does not.
mlir::func::FuncOp stepOf(exec::ProgramOp program);

/// Follows the instructions in program order, two iterations of each loop, on the first two ranks and the last. What
/// changes with the iteration or the rank are offsets, in proportion, so that these show what holds for all; where
/// something else changes, all iterations are followed. Reports the
/// first instruction that reads something else than the step says. That the order of the program is also that in which
/// streams reach memory is to be proved besides.
mlir::LogicalResult verifyValues(exec::ProgramOp program, mlir::func::FuncOp step);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_VALUENUMBERING_H
