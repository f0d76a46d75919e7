//===- InPlace.h - values that overwrite what dies --------------*- C++ -*-===//
//
// The second half of buffer assignment: lets a result share the storage of an operand that dies, the next value of an
// argument the argument's, and the value carried around a loop its accumulator's.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_INPLACE_H
#define TESSERA_PASSES_LOWER_INPLACE_H

#include "passes/lower/BufferAssignment.h"

namespace tessera::lower {

class InPlace {
public:
  explicit InPlace(BufferAssignment &assignment) : assignment(assignment) {}
  void run();

private:
  void shareArguments();
  void placeResults();
  void shareInits(exec::RepeatOp repeat);
  void shareFusion(exec::FusionOp fusion);
  void shareReduction(mlir::Operation *begin, mlir::Value result);

  /// True if the storage was made for `root` alone and may be replaced by another of its size.
  bool isFree(mlir::Value root) const;
  /// True if `operand` is all of its storage, which nothing reads after `op` except `op` itself through other operands.
  bool diesAt(mlir::Value operand, mlir::Operation *op, unsigned lastRead) const;
  /// For a carried accumulator that dies at `op` inside the loop: true if `result` is its next value.
  bool continuesAccumulator(mlir::Value operand, mlir::Value result, mlir::Operation *op) const;
  /// The fusion's operand that `result` may overwrite; null if there is none or another operand shares its storage.
  mlir::Value overwritable(mlir::OpResult result) const;
  bool sameBytes(mlir::Value a, mlir::Value b) const;
  /// All views of `from` become views of `into`.
  void merge(unsigned from, unsigned into);

  BufferAssignment &assignment;
};

/// Sets the memory class, and with it the arena, of every storage from what its values are used for.
void classifyStorages(BufferAssignment &assignment);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_INPLACE_H
