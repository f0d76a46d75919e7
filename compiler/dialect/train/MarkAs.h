//===- MarkAs.h - ops in place of another one -------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_MARKAS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_MARKAS_H

#include "compiler/dialect/train/Train.h"
#include "mlir/IR/Builders.h"

namespace tessera::train {

/// Has `to` belong to the pass, forward, backward or recomputed, that `from` belongs to. What else `from` is marked as,
/// it alone is.
inline void copyMarks(mlir::Operation *from, mlir::Operation *to) {
  for (llvm::StringRef name : {llvm::StringRef(kBackward), llvm::StringRef(kRecompute)})
    if (mlir::Attribute mark = from->getAttr(name))
      to->setDiscardableAttr(name, mark);
}

/// Listener of a builder that replaces an op: marks all that it inserts as belonging to the pass, forward, backward or
/// recomputed, that the op belongs to.
struct MarkAs : mlir::OpBuilder::Listener {
  explicit MarkAs(mlir::Operation *like) : like(like) {}
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override { copyMarks(like, op); }

private:
  mlir::Operation *like;
};

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_MARKAS_H
