//===- OffloadActivations.h - activations that wait on the host -*- C++ -*-===//

#ifndef TESSERA_PASSES_SCHEDULE_OFFLOADACTIVATIONS_H
#define TESSERA_PASSES_SCHEDULE_OFFLOADACTIVATIONS_H

#include "compiler/dialect/dist/Dist.h"

#include "mlir/IR/Builders.h"

namespace tessera::schedule {

/// Begins a copy of `value` to the memory `to`, where the builder stands.
dist::CopyStartOp startCopy(mlir::OpBuilder &builder, mlir::Value value, llvm::StringRef to, dist::OriginAttr origin,
                            bool isBackward, llvm::StringRef why);
/// Ends it.
dist::DoneOp endCopy(mlir::OpBuilder &builder, dist::CopyStartOp start, llvm::StringRef why);

/// Sends what the backward pass of the block reads of its forward pass, if it is at least `minBytes` large, to the host
/// when it is computed, and back one unit ahead of its first reader. Returns how many values that are.
size_t offloadActivations(mlir::Block &block, int64_t minBytes);

} // namespace tessera::schedule

#endif // TESSERA_PASSES_SCHEDULE_OFFLOADACTIVATIONS_H
