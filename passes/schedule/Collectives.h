//===- Collectives.h - what schedule passes share ---------------*- C++ -*-===//

#ifndef TESSERA_PASSES_SCHEDULE_COLLECTIVES_H
#define TESSERA_PASSES_SCHEDULE_COLLECTIVES_H

#include "compiler/dialect/dist/Dist.h"

namespace tessera::schedule {

inline void setReason(mlir::Operation *op, const llvm::Twine &reason) {
  op->setAttr(dist::kReason, mlir::StringAttr::get(op->getContext(), reason));
}

inline bool isStart(mlir::Operation *op) {
  return mlir::isa<dist::AllGatherStartOp, dist::ReduceScatterStartOp, dist::AllReduceStartOp, dist::AllToAllStartOp,
                   dist::PermuteStartOp>(op);
}

inline bool isSynchronous(mlir::Operation *op) {
  return mlir::isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllReduceOp, dist::AllToAllOp, dist::PermuteOp>(op);
}

/// The `done` of a start; null unless it has exactly one user and that is one.
inline dist::DoneOp doneOf(mlir::Operation *start) {
  mlir::Value future = start->getResult(0);
  return future.hasOneUse() ? mlir::dyn_cast<dist::DoneOp>(*future.user_begin()) : dist::DoneOp();
}

/// The label of a start, or its name where it has none.
inline llvm::StringRef labelOf(mlir::Operation *start) {
  auto label = start->getAttrOfType<mlir::StringAttr>("label");
  return label ? label.getValue() : start->getName().getStringRef();
}

} // namespace tessera::schedule

#endif // TESSERA_PASSES_SCHEDULE_COLLECTIVES_H
