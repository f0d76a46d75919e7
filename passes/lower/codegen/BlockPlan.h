//===- BlockPlan.h - reductions of small blocks of a matrix -----*- C++ -*-===//
//
// Whether a body reduces the rows and the columns of small blocks, so that a GPU's block of threads can hold what it
// takes of the matrix in registers, and compute and store each element from there, in both orientations.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_BLOCKPLAN_H
#define TESSERA_PASSES_LOWER_CODEGEN_BLOCKPLAN_H

#include "passes/lower/codegen/KernelPlan.h"

namespace tessera::codegen {

/// Threads of a GPU's block, and the columns that they take together.
inline constexpr int64_t kBlockThreads = 256, kBlockColumns = 128;
/// Heights of blocks are multiples of the rows that the threads take at once, 8 columns each: fewer columns are fewer
/// rows, which divide that.
inline constexpr int64_t kBlockRows = kBlockThreads * 8 / kBlockColumns, kMostBlockRows = 128;
/// Elements between two of a line of a transposed tile's column: lanes that read every eighth line find them in
/// different banks.
inline constexpr int64_t kBlockPitch = kBlockColumns + 1;

/// A matrix of `down` x `across` blocks of `height` x `width` elements.
struct BlockGrid {
  int64_t down, height, across, width;

  int64_t elements() const { return down * height * across * width; }
};

/// The blocks whose rows and columns two reductions reduce, their patterns in any order. Without a second one those of
/// columns alone, if a result is stored transposed. Nothing if there are no such blocks, or too large ones.
std::optional<BlockGrid> findBlocks(const KernelBody &body, const Pattern &first, const Pattern &second);

/// Notes which results are stored transposed, and by which op. Returns why threads cannot hold what is reduced, or
/// shared memory what goes through it; empty: they can.
std::string placeBlockResults(const KernelBody &body, KernelPlan &plan,
                              llvm::MutableArrayRef<train::TransposeOp> transposes);

/// Returns why memory would be accessed across its innermost dimension; empty: it is not.
std::string checkBlockAccess(const KernelPlan &plan);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_BLOCKPLAN_H
