//===- SplitReductions.h - long reductions in two steps ---------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_SPLITREDUCTIONS_H
#define TESSERA_PASSES_LOWER_SPLITREDUCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace tessera {

/// Splits a reduction of leading dimensions that leaves few elements into one over fixed chunks and one over their
/// partial results. The chunks depend on the shape alone, so the result does not depend on the number of threads.
/// `isGpu`: chunks for the blocks of a GPU, of reductions to many columns too.
void addReductionSplitting(mlir::RewritePatternSet &patterns, bool isGpu);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_SPLITREDUCTIONS_H
