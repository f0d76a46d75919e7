//===- SampleLayouts.h - where the samples of values are --------*- C++ -*-===//
//
// Which dimension of a value counts samples, before sharding is decided: the layouts that values have on as many ranks
// as there are samples, by the rules by which they are sharded.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_SAMPLELAYOUTS_H
#define TESSERA_PASSES_SHARD_SAMPLELAYOUTS_H

#include "passes/shard/Sharding.h"

namespace tessera::shard {

class SampleLayouts {
public:
  explicit SampleLayouts(mlir::func::FuncOp func);

  /// Samples of a micro-batch over all ranks; 1 if nothing counts them.
  int64_t getNumSamples() const { return samples; }
  /// Where samples are in the operands of `op`, alike in those that share a dimension: at most one dimension of each is
  /// split, into its blocks with all samples in each. None is where an operand does not depend on samples, or mixes
  /// them.
  llvm::SmallVector<dist::Layout> ofOperands(mlir::Operation *op) const;

private:
  SampleLayouts(mlir::func::FuncOp func, int64_t samples);
  void visit(mlir::Block &block);
  std::optional<Solution> solveOp(mlir::Operation *op) const;

  int64_t samples;
  LayoutTable table;
};

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_SAMPLELAYOUTS_H
