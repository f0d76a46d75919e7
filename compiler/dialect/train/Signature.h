//===- Signature.h - arguments and results of a step function ---*- C++ -*-===//
//
// Reads and rewrites what the attributes of a step function say: which argument
// is a parameter, which result is the loss. See the train dialect's description.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_SIGNATURE_H
#define TESSERA_COMPILER_DIALECT_TRAIN_SIGNATURE_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::train {

/// One result of a step function with its attributes.
struct StepResult {
  mlir::Value value;
  mlir::DictionaryAttr attrs;
};

/// True if the function has a body and at least one argument with a role.
bool isStepFunction(mlir::func::FuncOp func);

/// Reports a function that is not one block from tensors of static shape to such tensors. A step function always is:
/// its attributes are verified.
llvm::LogicalResult checkTensorFunction(mlir::func::FuncOp func);

/// The argument's or result's `train.role`; none if it has none.
std::optional<ArgRole> getArgRole(mlir::FunctionOpInterface func, unsigned index);
std::optional<ResultRole> getResultRole(mlir::FunctionOpInterface func, unsigned index);
/// That of an op which stands for one (`exec.argument`, `exec.result`).
std::optional<ArgRole> getArgRole(mlir::Operation *op);
std::optional<ResultRole> getResultRole(mlir::Operation *op);
/// The role as the attribute `train.role`.
mlir::NamedAttribute getRoleAttr(mlir::MLIRContext *context, ArgRole role);
mlir::NamedAttribute getRoleAttr(mlir::MLIRContext *context, ResultRole role);

/// Whether the argument holds weights: trained or frozen.
inline bool isParameter(std::optional<ArgRole> role) { return role == ArgRole::Param || role == ArgRole::Frozen; }
/// Whether the argument is read anew for each batch.
inline bool isBatch(std::optional<ArgRole> role) { return role == ArgRole::Input || role == ArgRole::Target; }

/// The argument's `train.name`; empty if it has none.
llvm::StringRef getArgName(mlir::func::FuncOp func, unsigned index);

/// The argument whose next value the result is, if any.
std::optional<unsigned> getAliasedArg(mlir::FunctionOpInterface func, unsigned result);
/// Whether the result is the next value of a buffer of the model.
bool isNextOfBuffer(mlir::FunctionOpInterface func, unsigned result);

/// Numbers of the arguments with this role, ascending.
llvm::SmallVector<unsigned> getArgsWithRole(mlir::func::FuncOp func, ArgRole role);

/// Number of the loss: the only result of that role, a floating-point scalar. Emits an error if there is none.
llvm::FailureOr<unsigned> getLossResult(mlir::func::FuncOp func);

llvm::SmallVector<StepResult> getResults(mlir::func::FuncOp func);
/// Makes `results` the function's results: terminator, type and attributes.
void setResults(mlir::func::FuncOp func, llvm::ArrayRef<StepResult> results);

/// Appends an argument with this role, name and further attributes.
mlir::BlockArgument appendArgument(mlir::func::FuncOp func, mlir::Type type, ArgRole role, llvm::StringRef name,
                                   llvm::ArrayRef<mlir::NamedAttribute> more, mlir::Location loc);

/// The name of the innermost NameLoc of a location (the ONNX node's), or "".
llvm::StringRef getNodeName(mlir::Location loc);

/// The part of a dotted name up to its first integer component: "transformer.h.3" of "transformer.h.3.ln_1.weight";
/// empty if it has none. Slashes, as in ONNX node names, count as dots.
std::string getBlockScope(llvm::StringRef name);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_SIGNATURE_H
