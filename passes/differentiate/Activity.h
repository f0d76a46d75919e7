//===- Activity.h - which values a gradient flows through -------*- C++ -*-===//
//
// A value is active if it varies with a trainable parameter and the loss
// depends on it. Integers, booleans and what a `stop_gradient` or a
// non-differentiable operand cuts off are inactive.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_ACTIVITY_H
#define TESSERA_PASSES_DIFFERENTIATE_ACTIVITY_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"

namespace tessera {

/// True if a gradient may flow from `op` to its operand `index`, by the operand's type and the op's rule. An op without
/// a rule passes gradients to every floating-point operand, so that it is found.
bool flowsToOperand(mlir::Operation *op, unsigned index);

class Activity {
public:
  /// Analyses one block for gradients of `loss` with respect to `parameters`.
  Activity(mlir::Block &block, llvm::ArrayRef<mlir::Value> parameters, mlir::Value loss);
  /// Of a step function's loss and its arguments of role "param"; fails, with an error, if it has not one loss.
  static mlir::FailureOr<Activity> ofStep(mlir::func::FuncOp func);

  llvm::ArrayRef<mlir::Value> getParameters() const { return parameters; }
  mlir::Value getLoss() const { return loss; }

  bool isActive(mlir::Value value) const { return varied.contains(value) && useful.contains(value); }
  /// True if a gradient must be carried from a result of `op` to an operand.
  bool isActive(mlir::Operation *op) const;
  /// True if the gradient of operand `index` of an active op is needed.
  bool isNeeded(mlir::Operation *op, unsigned index) const {
    return varied.contains(op->getOperand(index)) && flowsToOperand(op, index);
  }

private:
  void propagateForward(mlir::Block &block);
  void propagateBackward(mlir::Block &block);

  llvm::SmallVector<mlir::Value> parameters;
  mlir::Value loss;
  llvm::DenseSet<mlir::Value> varied, useful;
};

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_ACTIVITY_H
