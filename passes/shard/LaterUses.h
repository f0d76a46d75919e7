//===- LaterUses.h - what the backward pass reads of a result ---*- C++ -*-===//
//
// A result of the forward pass may be made again for the backward pass, from something smaller or in another form.
// These find the readers, which may read views of it, and give them what was made.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_LATERUSES_H
#define TESSERA_PASSES_SHARD_LATERUSES_H

#include "mlir/IR/Builders.h"

namespace tessera::shard {

/// What the backward pass reads of `value`, a result of the forward pass, or of views of it, or of concatenations with
/// results of other attentions (of other heads); not attention's gradient, which reads what it needs as it is.
llvm::SmallVector<mlir::OpOperand *> findLaterUses(mlir::Value value);

/// Lets `uses`, of `value` or of views of it, read what `make` builds in front of the first of them, marked as of the
/// backward pass like the views, which are repeated.
void replaceLaterUses(mlir::Value value, llvm::ArrayRef<mlir::OpOperand *> uses,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &)> make);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_LATERUSES_H
