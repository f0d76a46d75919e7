//===- PhaseAnalysis.h - which ops are forward, backward, update *- C++ -*-===//
//
// The definition of a step's phases: they follow from what results need, so no rewrite can lose them. The mark
// `train.backward` is that property written down. It keeps an op that the backward pass repeats (a view of a unit, a
// cast) apart from its equal in the forward pass, which CSE would merge it with; `verify-phases` compares the two.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::train {

enum class StepPhase {
  Forward,  ///< the loss, an output or the check of an index needs it
  Backward, ///< it is not forward, and a gradient needs it
  Update,   ///< neither: the norm of gradients, the optimizer and what is dead
};

/// The phases of the ops of one step function, those inside of loops too; without a loss all is update.
/// An op that is made later has no phase until the analysis is made anew.
class PhaseAnalysis {
public:
  explicit PhaseAnalysis(mlir::func::FuncOp func);

  StepPhase getPhase(mlir::Operation *op) const;
  bool isBackward(mlir::Operation *op) const { return getPhase(op) == StepPhase::Backward; }

private:
  using Ops = llvm::DenseSet<mlir::Operation *>;
  /// Adds what `roots` need.
  static void addSlice(llvm::ArrayRef<mlir::Value> roots, Ops &ops);

  Ops forward, gradients; ///< what results of the forward pass need, and what gradients need
};

/// Whether `op` has the mark, and giving it: an op that is made for the backward pass alone has it from the beginning.
inline bool isMarkedBackward(mlir::Operation *op) { return op->hasAttr(kBackward); }
inline void markBackward(mlir::Operation *op) { op->setAttr(kBackward, mlir::UnitAttr::get(op->getContext())); }

/// Marks the ops of the backward pass that have lost their mark, to a simplification that made another op of one. A
/// constant is of no phase: folding shares it.
void completeBackwardMarks(mlir::func::FuncOp func);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_PHASEANALYSIS_H
