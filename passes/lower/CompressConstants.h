//===- CompressConstants.h - tables without repetition ----------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_COMPRESSCONSTANTS_H
#define TESSERA_PASSES_LOWER_COMPRESSCONSTANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Turns constants that repeat themselves along a dimension into broadcasts of what is repeated. Folding has expanded
/// them (the tables of rotary embeddings, over batch and heads); a kernel reads the small table.
void compressConstants(mlir::func::FuncOp function);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_COMPRESSCONSTANTS_H
