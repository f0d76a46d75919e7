//===- MemoryContents.h - what the memory of a program holds ----*- C++ -*-===//
//
// The other side of the proof: which elements of which origins (ValueContents.h) lie in the slots of an exec program
// while its instructions run. Writing to a slot ends what other slots hold in the same bytes of their arena.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_MEMORYCONTENTS_H
#define TESSERA_PASSES_LOWER_MEMORYCONTENTS_H

#include "compiler/dialect/exec/Exec.h"
#include "passes/lower/ValueContents.h"

#include <map>

namespace tessera::lower {

/// From the elements of a buffer, in row-major order, to bytes of its slot; in iteration `iteration` of the loop around
/// the instruction, on the rank at `position` of its group over the buffer's axes.
StridedMap placeOf(exec::BufferOp buffer, int64_t iteration, int64_t position);

/// False if the places have no byte in common. Elements of different sizes are compared by their first and last bytes.
bool mayOverlap(const StridedMap &a, int64_t elementBytesA, const StridedMap &b, int64_t elementBytesB);

class MemoryContents {
public:
  explicit MemoryContents(const ValueContents &values) : values(values) {}

  /// What the buffer holds, as far as it is known.
  Content read(mlir::Value buffer, int64_t iteration) const;
  void write(mlir::Value buffer, int64_t iteration, const Content &content);
  /// The name of the slot that has overwritten this one since; empty if none has.
  llvm::StringRef overwriterOf(exec::SlotOp slot) const;

  StridedMap placeOf(mlir::Value buffer, int64_t iteration) const;
  /// True if both are views of one slot, and have a byte in common.
  bool overlap(mlir::Value a, mlir::Value b, int64_t iteration) const;

private:
  struct Cell {
    unsigned origin;
    int64_t elementBytes;
    StridedMap map; ///< from bytes of the slot, each an element's first, to elements of the origin
  };
  struct Slot {
    llvm::SmallVector<Cell> cells;
    bool isResident = false; ///< nothing else was written to its bytes since it was
    std::string overwriter;
  };

  void makeResident(exec::SlotOp slot);

  const ValueContents &values;
  llvm::DenseMap<mlir::Operation *, Slot> slots;
  /// By arena and offset: the resident slots, which share no memory.
  std::map<std::string, std::map<int64_t, exec::SlotOp>> residents;
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_MEMORYCONTENTS_H
