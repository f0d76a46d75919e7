//===- Units.h - parameter units of a step and what uses them ---*- C++ -*-===//
//
// What a sharding strategy needs to know of the step: for each parameter its
// gradient and its update, and which of its uses belong to forward or backward.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_UNITS_H
#define TESSERA_PASSES_SHARD_UNITS_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::shard {

struct Unit {
  mlir::BlockArgument argument;
  llvm::StringRef name;
  mlir::Value gradient;              ///< null if the step has none
  mlir::Operation *update = nullptr; ///< null before the optimizer is inserted
  mlir::Operation *cast = nullptr;   ///< through which all compute uses read the unit in a narrower type; or null
  /// What the model reads the unit as, each of which is gathered for itself: the result of its cast; what it is
  /// quantised to, and the unit where something reads that, too; else the unit.
  llvm::SmallVector<mlir::Value, 1> reads;
};

/// Gives what reads chunks of a unit otherwise than to quantise them (precision::Fp8Weights, precision::Fp8Columns)
/// chunks of its own.
void separateQuantizedReads(mlir::func::FuncOp func);

/// All trained parameters and frozen units, in argument order; quantised reads are separate.
llvm::SmallVector<Unit> findUnits(mlir::func::FuncOp func);

/// Uses of a read of a unit other than its update, the function's return and what quantises it.
llvm::SmallVector<mlir::OpOperand *> computeUses(const Unit &unit, mlir::Value read);

/// Uses of a unit in one block that share one compute value.
struct ComputeUses {
  bool isBackward;
  mlir::Operation *first; ///< the first user in the block
  llvm::SmallVector<mlir::OpOperand *> uses;
};

/// Splits the compute uses of a read of a unit by block and phase. Slices and reshapes of the unit that both phases
/// read are made again for backward, so that the phases share nothing.
llvm::SmallVector<ComputeUses> splitComputeUses(Unit &unit, mlir::Value read);

/// Of each block, the unit that computes at both ends of its forward part (an embedding that is tied to the head) and
/// again where the backward part begins. It is whole all that time, and gathering it once more would make a second
/// copy.
llvm::DenseMap<mlir::Block *, mlir::BlockArgument> findTurningUnits(llvm::ArrayRef<Unit> units);

/// Gives each unit a gradient of its own, also where two have the same (biases that are added to one value), since what
/// is done to it is done for one unit. Returns the ops that make them.
llvm::DenseSet<mlir::Operation *> separateGradients(mlir::func::FuncOp func, llvm::MutableArrayRef<Unit> units);

/// Writes `count_valid` as comparison, sum and maximum: the sum can be sharded, the clamp to 1 cannot.
void expandCountValid(mlir::func::FuncOp func);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_UNITS_H
