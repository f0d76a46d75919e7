//===- Program.h - what a function of a module is for -----------*- C++ -*-===//
//
// A module has a function for each program of the artifact. They share the state: arguments of role "param", "frozen"
// and "state" with equal names are one buffer.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_PROGRAM_H
#define TESSERA_COMPILER_DIALECT_TRAIN_PROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

namespace tessera::train {

enum class ProgramKind { Train, Evaluate };

/// On a function, or the program made of it: "evaluate"; without it, it trains. The results of an evaluation are pairs
/// of f32 scalars, the first of which is of the loss: that of several batches is S / (max(C, at_least) + plus), where S
/// is the sum of `loss_sum` over them and C that of `loss_count`. A count of the values of a target, but for the
/// ignored ones, names it (`train.of`). Metrics are the same of `metric_sum` and `metric_count`, which have the
/// metric's name.
inline constexpr llvm::StringLiteral kProgram = "train.program";
inline constexpr llvm::StringLiteral kEvaluate = "evaluate";
/// On a result "loss_count" or "metric_count" (f64): a lower bound of its sum over the batches, and what is added to
/// that.
inline constexpr llvm::StringLiteral kAtLeast = "train.at_least";
inline constexpr llvm::StringLiteral kPlus = "train.plus";

/// On random numbers that decide what a dropout keeps: evaluation leaves them out. Without it they are the model's own
/// (unit attribute).
inline constexpr llvm::StringLiteral kDropout = "train.dropout";

/// On a module that was imported: the fingerprint of what its step computes (driver/Computation.h). A string.
inline constexpr llvm::StringLiteral kComputation = "train.computation";

/// On a module that was imported: the mode in which PyTorch ran it, where the file says so, "training" or "evaluation".
inline constexpr llvm::StringLiteral kMode = "train.mode";
inline constexpr llvm::StringLiteral kTrainingMode = "training", kEvaluationMode = "evaluation";
/// On a module that was imported in training mode: what it does in evaluation mode otherwise, besides leaving dropout
/// out and normalising batches by running statistics. A string, for messages; without it, nothing that is known.
inline constexpr llvm::StringLiteral kEvaluationDiffers = "train.evaluation_differs";

/// Emits an error if the attribute names no program.
llvm::FailureOr<ProgramKind> programKind(mlir::Operation *op);

/// A function with roles that trains: what makes gradients, updates and micro-batches looks at no other.
bool isTrainingStep(mlir::func::FuncOp func);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_PROGRAM_H
