//===- Solve.h - layouts that satisfy an op's sharding rule -----*- C++ -*-===//
//
// The one place that decides, from the layouts of an op's operands and what is
// known of its results, how the op runs: propagation, reshard insertion and
// verification ask the same function and therefore agree.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_SOLVE_H
#define TESSERA_PASSES_SHARD_SOLVE_H

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/interfaces/Interfaces.h"

namespace tessera::shard {

/// What is known about one operand.
struct OperandState {
  const dist::Layout *layout;
  /// A splat constant: it can be had in any layout, so it decides nothing.
  bool isSplat = false;
  /// A splat of zero: it is also its own partial sum.
  bool isZero = false;
};

OperandState getOperandState(mlir::Value value, const dist::Layout &layout);

/// The layouts that an op needs of its operands and gives to its results.
struct Solution {
  llvm::SmallVector<dist::Layout> operands;
  llvm::SmallVector<dist::Layout> results;
  std::optional<unsigned> choice; ///< the op's partition by which it runs; none: as it is
};

/// Operands decide in their order, then the results (`null`: nothing known). Where two disagree about a factor the
/// first wins; where one says more than the other (a longer list of axes) it wins. An axis splits at most one factor.
Solution solve(const ShardingRule &rule, llvm::ArrayRef<OperandState> operands,
               llvm::ArrayRef<const dist::Layout *> results, dist::MeshAttr mesh);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_SOLVE_H
