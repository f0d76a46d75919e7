//===- PhaseAnalysis.h - which ops are forward, backward, update *- C++ -*-===//
//
// The definition of a step's phases. They follow from what results need, so no simplification can lose them; the mark
// `train.backward` keeps an op that the backward pass repeats apart from its equal, and is verified against this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::train {

enum class StepPhase {
  Forward,  ///< the loss, a metric or an output needs it
  Backward, ///< it is not forward, and a gradient needs it
  Update,   ///< neither: clipping, the optimizer and what is dead
};

/// Of the ops of one step function, those inside of loops and checkpoints too. An op that is made later has no phase
/// until the analysis is made anew.
class PhaseAnalysis {
public:
  explicit PhaseAnalysis(mlir::func::FuncOp func);

  StepPhase getPhase(mlir::Operation *op) const;
  bool isBackward(mlir::Operation *op) const { return getPhase(op) == StepPhase::Backward; }

private:
  using Ops = llvm::DenseSet<mlir::Operation *>;
  /// Adds what `roots` need.
  static void addSlice(llvm::ArrayRef<mlir::Value> roots, Ops &ops);

  Ops forward, backward; ///< backward: what gradients need, forward ops among it
};

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H
