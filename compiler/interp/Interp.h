//===- Interp.h - the reference interpreter ---------------------*- C++ -*-===//
//
// Says what a program means: evaluates a function of train, dist and exec.fusion
// ops on N virtual ranks in lock-step. Every value is one tensor per rank. SPMD
// control flow is the same on all ranks, so a collective sees all of them at once.
// Program.h does the same for what a function is lowered to.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_INTERP_H
#define TESSERA_COMPILER_INTERP_INTERP_H

#include "compiler/interp/Shards.h"
#include "compiler/interp/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::interp {

/// A value: one tensor per rank.
using RankTensors = std::vector<Tensor>;

/// Evaluates `function` on as many ranks as its arguments have tensors (`arguments[argument][rank]`; `numRanks` if it
/// has no arguments). Returns `results[result][rank]`. Errors are reported at the op that fails.
mlir::FailureOr<std::vector<RankTensors>> evaluate(mlir::func::FuncOp function, std::vector<RankTensors> arguments,
                                                   int64_t numRanks = 1);

/// Evaluates on one rank.
mlir::FailureOr<std::vector<Tensor>> evaluateOnOneRank(mlir::func::FuncOp function, std::vector<Tensor> arguments);

/// Evaluates `function` on global tensors: splits arguments that have `dist.global` by their `dist.sharding` over the
/// module's mesh (others are copied to all ranks) and joins the results in the same way. `numRanks` is used if the
/// module has no mesh.
mlir::FailureOr<std::vector<Tensor>> evaluateGlobal(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
                                                    int64_t numRanks = 1);

/// The same for whatever has the arguments and results of `signature`: `run` evaluates it on the ranks' parts.
using RankEvaluation = llvm::function_ref<mlir::FailureOr<std::vector<RankTensors>>(std::vector<RankTensors>)>;
mlir::FailureOr<std::vector<Tensor>> evaluateGlobal(mlir::func::FuncOp signature, llvm::ArrayRef<Tensor> arguments,
                                                    int64_t numRanks, RankEvaluation run);

/// The module's mesh, or null.
dist::MeshAttr meshOf(mlir::Operation *op);
/// The type of an argument or result before localisation.
mlir::RankedTensorType globalArgType(mlir::func::FuncOp function, unsigned index);
mlir::RankedTensorType globalResultType(mlir::func::FuncOp function, unsigned index);

/// Lets the folders of the train dialect evaluate ops on constants with the interpreter, so that compile-time and
/// reference semantics cannot differ. Results larger than 2^20 elements are left alone unless they are splats.
void registerConstantFolding(mlir::DialectRegistry &registry);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_INTERP_H
