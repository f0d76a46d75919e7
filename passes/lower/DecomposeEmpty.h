//===- DecomposeEmpty.h - tensors without elements --------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_DECOMPOSEEMPTY_H
#define TESSERA_PASSES_LOWER_DECOMPOSEEMPTY_H

#include "mlir/IR/PatternMatch.h"

namespace tessera {

/// Ops that make elements out of a tensor that has none (sums, paddings, joins, scatters) no longer read it. No kernel
/// and no memory is made for such a tensor.
void addEmptyDecomposition(mlir::RewritePatternSet &patterns);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_DECOMPOSEEMPTY_H
