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

enum class KernelKind { Elementwise, Row, Column, ReduceAll, Scatter };
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
};

struct Output {
  mlir::Value value;
  /// One element per outer position instead of one per element of the space.
  bool perRow;
  /// The pass in which it is stored; for perRow, after all passes.
  unsigned pass;
  /// Inputs whose buffer it may overwrite.
  llvm::SmallVector<unsigned> mayOverwrite;
};

struct KernelPlan {
  KernelKind kind = KernelKind::Elementwise;
  llvm::SmallVector<Digit> digits;
  Index fullIdentity, keptIdentity;
  /// Digits of the outer loop and of the loops inside, outermost first; `lane` is the innermost loop of a column
  /// kernel.
  llvm::SmallVector<unsigned> outer, inner;
  std::optional<unsigned> lane;
  int64_t innerElements = 1;
  int64_t extent = 1, grain = 1;
  unsigned passes = 1;
  llvm::SmallVector<Reduction> reductions;
  llvm::SmallVector<Output> outputs;
  /// Expensive values that a later pass over the row needs again.
  llvm::SmallVector<mlir::Value> scratch;
  /// Ops evaluated per element, a measure of recomputation.
  unsigned visits = 0;
};

/// Plans the kernel of `body`; if that cannot be one kernel returns nothing and says why.
std::optional<KernelPlan> planKernel(const KernelBody &body, std::string &why);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_KERNELPLAN_H
