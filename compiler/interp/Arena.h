//===- Arena.h - the memory of an exec program, in bytes --------*- C++ -*-===//
//
// What the interpreter runs programs on: the arenas of one rank, with elements in the types and places that the program
// gives them. Memory that was never written holds NaN (or -1).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_ARENA_H
#define TESSERA_COMPILER_INTERP_ARENA_H

#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Tensor.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::interp {

class Arenas {
public:
  explicit Arenas(exec::ProgramOp program);

  /// The buffer's elements in iteration `iteration`, on the rank at `position` of its group over the buffer's axes.
  Tensor read(exec::BufferOp buffer, int64_t iteration, int64_t position) const;
  void write(exec::BufferOp buffer, int64_t iteration, int64_t position, const Tensor &value);

private:
  llvm::StringMap<std::vector<uint8_t>> arenas;
};

/// Reports slots that have no place in their arena, and buffers that leave their slot in `iterations` or on one of the
/// mesh's ranks.
mlir::LogicalResult checkMemory(exec::ProgramOp program);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_ARENA_H
