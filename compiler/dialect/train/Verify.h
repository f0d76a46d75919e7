//===- Verify.h - checks that verifiers share -------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_VERIFY_H
#define TESSERA_COMPILER_DIALECT_TRAIN_VERIFY_H

#include "compiler/dialect/train/ResultShapes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tessera::train {

// Each reports an error at `op` that says what was found and what was expected.
llvm::LogicalResult verifyDim(mlir::Operation *op, llvm::StringRef name, int64_t dim, int64_t rank);
llvm::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef name, mlir::RankedTensorType type,
                                llvm::ArrayRef<int64_t> shape);
llvm::LogicalResult verifyType(mlir::Operation *op, llvm::StringRef name, mlir::Type type, mlir::Type expected);
llvm::LogicalResult verifyCount(mlir::Operation *op, llvm::StringRef name, int64_t count, int64_t expected);

llvm::LogicalResult verifyContraction(mlir::Operation *op, mlir::RankedTensorType lhs, mlir::RankedTensorType rhs,
                                      mlir::RankedTensorType result, const ContractionDims &dims);

bool isStaticTensor(mlir::Type type);
/// The type before it was localised of what has these attributes: segments number the elements of a whole unit.
mlir::ShapedType globalType(mlir::DictionaryAttr attrs, mlir::Type type);
/// What the arguments and results of a function with roles must be together.
llvm::LogicalResult verifyStep(mlir::FunctionOpInterface func);

/// The attributes that `op` took over from an argument or result of the step; `type` is the argument's.
llvm::LogicalResult verifyArgumentAttrs(mlir::Operation *op, mlir::ShapedType type);
llvm::LogicalResult verifyResultAttrs(mlir::Operation *op);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_VERIFY_H
