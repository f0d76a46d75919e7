//===- KernelPlan.h - how a fusion becomes loops ----------------*- C++ -*-===//
//
// Decides the iteration space of a kernel, its outer extent, its passes over a row and what may be computed in place.
// Fusion asks it whether a group of ops can become one kernel; code generation follows it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_KERNELPLAN_H
#define TESSERA_PASSES_LOWER_CODEGEN_KERNELPLAN_H

#include "passes/lower/codegen/Evaluator.h"

namespace tessera::codegen {

enum class KernelKind { Elementwise, Row, Column, ReduceAll, Scatter, RowColumn, Blocks };
llvm::StringRef kindName(KernelKind kind);

/// A maximal run of dimensions that a reduction treats alike.
struct Segment {
  int64_t size;
  bool reduced;
  bool operator==(const Segment &) const = default;
};
using Pattern = llvm::SmallVector<Segment, 3>;
/// The pattern of a reduction's operand: dimensions of size 1 are left out, neighbours of one sort are merged.
Pattern patternOf(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> reducedDims);
/// The reduced dimensions of a reduction or argmax.
llvm::SmallVector<int64_t> reducedDims(mlir::Operation *op);

struct Reduction {
  mlir::Operation *op;
  unsigned pass;
  /// Row-column kernels and kernels of blocks: it reduces the rows of a chunk or block, to one element a column.
  bool ofColumns = false;
};

/// How many elements a result has.
enum class OutputExtent {
  /// One per element of the space.
  Full,
  /// One per outer position; in kernels of blocks one per row of each block.
  Row,
  /// Row-column kernels: a reduction of the rows of each chunk, one a column, stored after all rows. Kernels of blocks:
  /// anything of one element a column of each block.
  Column
};

struct Output {
  mlir::Value value;
  OutputExtent extent;
  /// The pass in which it is stored; of rows and columns after all passes.
  unsigned pass;
  /// Inputs whose buffer it may overwrite.
  llvm::SmallVector<unsigned> mayOverwrite;
  /// Where in the result an element of the space is: on GPUs a result may be a transpose of the others.
  Index position;
  /// Kernels of blocks: it is one, stored through shared memory.
  bool isAcross = false;
};

/// An input that an elementwise kernel reads along another digit than its innermost one.
struct TileRead {
  mlir::Value input;
  Index index;
};

/// Shared memory that a GPU's block may declare.
inline constexpr int64_t kSharedBytes = 48 << 10;

/// What blocks of a GPU take together: tiles of the innermost digit and of the one that is innermost in what is listed.
/// That goes through shared memory, so that all memory is accessed along its own innermost dimension.
struct Tiles {
  unsigned row;
  llvm::SmallVector<TileRead> reads;
  /// Results, by number.
  llvm::SmallVector<size_t> results;
};

struct KernelPlan {
  KernelKind kind = KernelKind::Elementwise;
  llvm::SmallVector<Digit> digits;
  /// The position among all digits, among those of a row's results and among those of a column's results.
  Index fullIdentity, keptIdentity, columnIdentity;
  /// Digits of the outer loop and of the loops inside, outermost first; `lane` is the innermost loop of a column
  /// kernel.
  llvm::SmallVector<unsigned> outer, inner;
  /// Row-column kernels and kernels of blocks: the digits of the rows of a chunk or block, between others.
  llvm::SmallVector<unsigned> walked;
  std::optional<unsigned> lane;
  int64_t innerElements = 1;
  int64_t extent = 1, grain = 1;
  unsigned passes = 1;
  llvm::SmallVector<Reduction> reductions;
  llvm::SmallVector<Output> outputs;
  /// Expensive values that a later pass over the row needs again.
  llvm::SmallVector<mlir::Value> scratch;
  /// GPUs only, of elementwise kernels.
  std::optional<Tiles> tiles;
  /// GPUs only: whether a whole tensor is read across the innermost digit, an element a cache line, for want of tiles.
  bool readsAcross = false;
  /// Ops evaluated per element, a measure of recomputation.
  unsigned visits = 0;

  /// Makes the identities those of `digits`.
  void setIdentities();
  /// The position among the elements of a result, unless it is a transpose.
  const Index &identityOf(OutputExtent extent) const;
  /// Where reductions are known that are not at `keptIdentity`.
  llvm::DenseMap<mlir::Operation *, Index> ownIdentities() const;
};

/// The longest row that a row-column kernel holds in registers beside one sum of its columns, and beside several the
/// most that all of them together have.
inline constexpr int64_t kMostHeldColumns = 8192, kMostColumnSums = 16384;

/// Plans the kernel of `body`; if that cannot be one kernel returns nothing and says why. Row-column kernels and
/// transposed results are for GPUs only.
std::optional<KernelPlan> planKernel(const KernelBody &body, bool isGpu, std::string &why);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_KERNELPLAN_H
