//===- TilePlan.h - results in two orientations -----------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_TILEPLAN_H
#define TESSERA_PASSES_LOWER_CODEGEN_TILEPLAN_H

#include "passes/lower/codegen/KernelPlan.h"

namespace tessera::codegen {

/// Of each result the transpose of another innermost dimension that it is computed through, where other results are
/// computed through none: the kernel iterates in the order of those.
llvm::SmallVector<train::TransposeOp> findTransposes(const KernelBody &body);

/// The transpose of another innermost dimension on the way to a result, of values as large; null if there is none.
train::TransposeOp transposeOf(mlir::Value result, const llvm::DenseSet<mlir::Operation *> &members);

/// Where the result of `transpose` has what is at `index` of its operand. Nothing if digits do not align; `cut` is set
/// if one helps.
std::optional<Index> transposedIndex(const Space &space, train::TransposeOp transpose, const Index &index,
                                     std::optional<Cut> &cut);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_TILEPLAN_H
