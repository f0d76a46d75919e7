//===- TilePlan.h - what lies across a kernel -------------------*- C++ -*-===//
//
// Finds results that are transposes of others, and what an elementwise kernel would read or write along another digit
// than its innermost one, an element a cache line. See Tiles in KernelPlan.h.
//
//===----------------------------------------------------------------------===//

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

/// Elements along both sides of a tile.
inline constexpr int64_t kTile = 64;
/// Elements between two of a line of a tile's column: lanes of a warp that read a column find it in different banks.
int64_t tilePitch(mlir::Type element);
/// The tiles of a planned kernel for a GPU, if there is something to gain.
std::optional<Tiles> planTiles(const KernelBody &body, const KernelPlan &plan);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_TILEPLAN_H
