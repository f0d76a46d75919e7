//===- StreamOrder.h - orders in which streams may run ----------*- C++ -*-===//
//
// The instructions of a program run on streams, each in the order of its own, and events say what else comes before
// what. All orders that they allow must give the same results; the interpreter can run the program in three of them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_STREAMORDER_H
#define TESSERA_COMPILER_INTERP_STREAMORDER_H

#include "compiler/dialect/exec/Exec.h"

namespace tessera::interp {

enum class StreamOrder {
  Issued,       ///< as they stand in the program
  ComputeFirst, ///< collectives and copies run when the compute stream waits for them, and not before
  ComputeLast,  ///< collectives and copies run as soon as their events allow, before all else
};

/// One run of an instruction.
struct InstructionRun {
  mlir::Operation *op;
  int64_t iteration; ///< of the loop around it
};

/// All instructions but loops, records and waits, each as often as it runs. Reports a wait for an event that was not
/// recorded before.
mlir::FailureOr<std::vector<InstructionRun>> orderOf(exec::ProgramOp program, StreamOrder order);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_STREAMORDER_H
