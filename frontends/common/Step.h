//===- Step.h - the function @step while a file is imported -----*- C++ -*-===//
//
// Arguments and results of the function, and the note of what became of each
// tensor of the file. Ops are added at the end of its block.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_STEP_H
#define TESSERA_FRONTENDS_COMMON_STEP_H

#include "compiler/dialect/train/Signature.h"
#include "frontends/common/Call.h"
#include "frontends/common/InputDims.h"
#include "frontends/common/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::frontend {

/// A table that lookups give no gradient in one row.
struct PaddedTable {
  int64_t row = 0;
  bool placed = false; ///< a lookup was found
};

class Step {
public:
  /// `loc` is the file's.
  explicit Step(mlir::Location loc);

  /// A tensor of the file that ops read: a constant, or an argument. `what` such tensors are called; `read` reads the
  /// values. Emits errors.
  mlir::FailureOr<Entry> addTensor(llvm::StringRef name, mlir::RankedTensorType type, Roles &roles,
                                   llvm::StringRef what, llvm::function_ref<llvm::Expected<HostTensor>()> read);
  /// A tensor that the model's code changes, and its value before the first step (an initialiser).
  Entry addBuffer(llvm::StringRef name, mlir::RankedTensorType type, llvm::StringRef init, Roles &roles);
  /// What the step leaves in a buffer.
  void setNext(mlir::Value buffer, mlir::Value next) { nextOf[buffer] = next; }
  /// A tensor that nothing reads.
  void addUnused(llvm::StringRef name, mlir::RankedTensorType type, Roles &roles);
  /// An input, of `dims` that are resolved. Emits errors.
  mlir::FailureOr<mlir::Value> addInput(const InputDims &dims, const InputDims::Input &input, mlir::Type element);
  /// Fails if a row was said to be padding of a table that no `lookup` reads. Emits errors.
  mlir::LogicalResult checkPadding(llvm::StringRef lookup);
  /// The argument that makes randomness differ from step to step, made on first use.
  mlir::Value seed();
  /// An output; a constant becomes a value.
  mlir::Value addResult(llvm::StringRef name, Entry entry);

  /// A node that cannot be imported, and why.
  void addUnsupported(mlir::Location where, std::string what) { unsupported.emplace_back(where, std::move(what)); }
  /// Fails with all of them in one error.
  mlir::LogicalResult reportUnsupported();

  bool hasTensors() const { return !tensors.empty(); }
  size_t numResults() const { return results.size(); }
  /// Ends the function. The module that holds it, or null: the verifier has said why.
  mlir::OwningOpRef<mlir::ModuleOp> finish();

  mlir::OpBuilder builder;
  llvm::MapVector<mlir::Value, PaddedTable> padding; ///< by argument
  int64_t randomStreams = 0;                         ///< how many random tensors there are so far
  std::string mode, evaluationDiffers;               ///< `train.mode` and `train.evaluation_differs`; empty: not known
  train::WeightMapAttr weightMap;                    ///< `train.weight_map`; null: none
  int64_t runningPairs = 0; ///< how many normalisations have running statistics that training leaves alone

private:
  mlir::InFlightDiagnostic error() { return mlir::emitError(loc); }
  mlir::Location locOf(llvm::StringRef name);
  mlir::Value addArgument(llvm::StringRef name, mlir::RankedTensorType type, train::ArgRole role);
  void setArgumentAttr(llvm::StringRef name, mlir::Attribute value); ///< of the last argument
  void note(llvm::StringRef name, mlir::RankedTensorType type, train::TensorRole role, llvm::StringRef reason);

  mlir::Location loc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> argAttrs, resultAttrs;
  std::vector<mlir::Attribute> tensors; ///< for `train.tensors`
  mlir::Value seedArgument;             ///< null if nothing is random
  std::vector<std::pair<mlir::Location, std::string>> unsupported;
  llvm::MapVector<mlir::Value, mlir::Value> nextOf; ///< by the argument of a buffer
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_STEP_H
