//===- SsaLiveness.h - positions and last uses of tensors -------*- C++ -*-===//
//
// A lowered step is straight-line code with loops, so liveness is a number per value: the position of its last use in
// program order. A use inside a loop of a value from outside counts as one at the loop's end, and what a collective
// reads is in use until its `done`.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_SSALIVENESS_H
#define TESSERA_PASSES_LOWER_SSALIVENESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::lower {

class SsaLiveness {
public:
  explicit SsaLiveness(mlir::func::FuncOp func);

  /// Position of an op in program order; loops number their body after themselves.
  unsigned position(mlir::Operation *op) const { return positions.lookup(op); }
  /// Position of the end of an op: after its body.
  unsigned end(mlir::Operation *op) const { return ends.lookup(op); }
  /// Last use of the value itself (not of what is derived from it); the defining op's position if there is none.
  unsigned lastUse(mlir::Value value) const;

private:
  void number(mlir::Block &block);

  llvm::DenseMap<mlir::Operation *, unsigned> positions, ends;
  unsigned next = 1;
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_SSALIVENESS_H
