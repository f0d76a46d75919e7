//===- InstructionOrder.h - when instructions run, and slots live -*- C++ -*-===//
//
// The order that streams and events establish between the instructions of an exec program, and from it how long each
// slot is in use. Planning and verification of memory both rest on it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_INSTRUCTIONORDER_H
#define TESSERA_PASSES_LOWER_INSTRUCTIONORDER_H

#include "compiler/dialect/exec/Exec.h"
#include "passes/lower/Allocator.h"
#include "llvm/ADT/MapVector.h"

#include <array>

namespace tessera::lower {

using Clock = std::array<int64_t, exec::kNumStreams>;

/// One run of an instruction.
struct Step {
  mlir::Operation *op;
  int64_t index;     ///< in the flattened instruction list; the same for all iterations of a loop
  int64_t iteration; ///< of the enclosing loop, 0 outside
  exec::LoopOp loop; ///< the enclosing loop, or null
  int64_t stream;
  int64_t sequence; ///< how many instructions of its stream came before it
  Clock before{};   ///< how many instructions of each stream are over when it begins
};

/// Runs through the program, through the body of each loop `unroll` times.
llvm::SmallVector<Step> orderInstructions(exec::ProgramOp program, int64_t unroll);

/// True if `a` is over before `b` begins.
inline bool happensBefore(const Step &a, const Step &b) { return b.before[a.stream] > a.sequence; }

/// The slot that a buffer is a view of.
exec::SlotOp slotOf(mlir::Value buffer);

/// From which to which instruction (of the flattened list) each slot holds something. A slot that an asynchronous
/// instruction uses is in use until the compute stream knows that it is over. One that carries a value from one
/// iteration to the next, or into or out of a loop, is in use during the whole loop. Slots that nothing uses are left
/// out.
llvm::MapVector<mlir::Operation *, Lifetime> slotLifetimes(exec::ProgramOp program);

/// Number of entries of the flattened instruction list.
int64_t numInstructions(exec::ProgramOp program);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_INSTRUCTIONORDER_H
