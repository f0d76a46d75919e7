//===- LossAverage.h - the loss of several batches --------------*- C++ -*-===//
//
// What each batch gives so that the loss of all of them, or a metric, is that of
// one batch that holds all of their samples.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_OPTIMIZE_LOSSAVERAGE_H
#define TESSERA_PASSES_OPTIMIZE_LOSSAVERAGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <limits>

namespace tessera {

/// The loss, or a metric, of several batches is S / (max(C, atLeast) + plus), where S and C are the sums of `sum` and
/// `count` over them; f32 scalars.
struct LossAverage {
  mlir::Value sum, count;
  mlir::StringAttr of; ///< the target whose values are counted; null if it is something else
  double atLeast = -std::numeric_limits<double>::infinity(), plus = 0.0;
};

/// Builds the average of `loss`, the loss of a step function after add-loss. Error, at the op in question: the loss of
/// several batches does not follow from theirs.
llvm::FailureOr<LossAverage> averageLoss(mlir::func::FuncOp func, mlir::Value loss, mlir::OpBuilder &builder);

/// The same of another number that the step function computes, which may also be a plain sum over the batch. Barriers
/// that stand for the whole batch are put into `func`, which is one that evaluates.
llvm::FailureOr<LossAverage> averageMetric(mlir::func::FuncOp func, mlir::Value metric, mlir::OpBuilder &builder);

/// The error that an evaluation of the model is refused by, to be completed.
mlir::InFlightDiagnostic refuseEvaluation(mlir::Location loc);

} // namespace tessera

#endif // TESSERA_PASSES_OPTIMIZE_LOSSAVERAGE_H
