//===- Program.h - evaluates programs of the exec dialect -------*- C++ -*-===//
//
// A program has no tensors, only memory, so that what it means is what its instructions do to bytes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_PROGRAM_H
#define TESSERA_COMPILER_INTERP_PROGRAM_H

#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Interp.h"
#include "compiler/interp/StreamOrder.h"

namespace tessera::interp {

/// The tensor that a buffer holds.
mlir::RankedTensorType tensorTypeOf(mlir::Value buffer);

/// A module that holds a function without a body, with the name, the arguments and the results of the step that the
/// program was made from: first the results of its own, then the next values of parameters and states.
mlir::OwningOpRef<mlir::ModuleOp> signatureOf(exec::ProgramOp program);

/// Runs the program on `arguments[argument][rank]`; returns `results[result][rank]` in the order of the signature.
mlir::FailureOr<std::vector<RankTensors>> evaluateProgram(exec::ProgramOp program, std::vector<RankTensors> arguments,
                                                          int64_t numRanks, StreamOrder order = StreamOrder::Issued);

/// Evaluates one instruction but `loop`, `copy` and `fill` on all ranks: `inputs[operand][rank]` are what it reads, in
/// the order of `exec::readBuffers`; returns what it writes, in that of `exec::writtenBuffers`.
mlir::FailureOr<std::vector<RankTensors>> evaluateInstruction(mlir::Operation *instruction,
                                                              std::vector<RankTensors> inputs, dist::MeshAttr mesh,
                                                              int64_t numRanks);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_PROGRAM_H
