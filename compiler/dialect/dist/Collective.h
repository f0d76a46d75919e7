//===- Collective.h - begins and ends of collectives ------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_COLLECTIVE_H
#define TESSERA_COMPILER_DIALECT_DIST_COLLECTIVE_H

#include "compiler/dialect/dist/Dist.h"

#include "mlir/IR/Builders.h"

namespace tessera::dist {

/// `op` as a collective that is not split into start and done; null if it is none.
CollectiveOpInterface asSynchronous(mlir::Operation *op);
/// `op` as the start of a collective; null if it is none.
CollectiveOpInterface asStart(mlir::Operation *op);

/// Begins `collective`, which is no start, at the builder's insertion point, with its attributes.
CollectiveOpInterface buildStart(mlir::OpBuilder &builder, CollectiveOpInterface collective);
/// Waits at the builder's insertion point for what `start`, of a collective or a copy, began.
DoneOp buildDone(mlir::OpBuilder &builder, mlir::Operation *start);

/// The `done` of a start of a collective or a copy; null unless its future has one user and that is one.
DoneOp doneOf(mlir::Operation *start);
/// What began that which `done` waits for; null if the future is a block's argument.
mlir::Operation *startOf(DoneOp done);
/// The collective whose result `op` gives: `op` itself, or what it waits for; null if it is neither.
CollectiveOpInterface collectiveBehind(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_COLLECTIVE_H
