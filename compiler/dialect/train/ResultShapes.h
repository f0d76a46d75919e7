//===- ResultShapes.h - shapes that follow from operands --------*- C++ -*-===//
//
// What builders give and verifiers expect. Attributes are taken to be valid: the
// verifiers look at them first.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_RESULTSHAPES_H
#define TESSERA_COMPILER_DIALECT_TRAIN_RESULTSHAPES_H

#include "mlir/IR/TypeRange.h"
#include "mlir/Support/LLVM.h"

namespace tessera::train {

using Shape = llvm::SmallVector<int64_t>;

Shape transposedShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> permutation);
Shape slicedShape(llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> limits, llvm::ArrayRef<int64_t> strides);
Shape paddedShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                  llvm::ArrayRef<int64_t> interior);
/// Of tensors that have the same sizes but along `dim`.
Shape joinedShape(mlir::TypeRange tensors, int64_t dim);
/// Of rows of `table` that `indices` pick.
Shape rowsShape(llvm::ArrayRef<int64_t> table, llvm::ArrayRef<int64_t> indices);
/// Without the dimensions `dims`.
Shape reducedShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
/// The dimensions of a product; see train.dot_general.
struct ContractionDims {
  llvm::ArrayRef<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
};
/// Batch dimensions, then those of `lhs` and of `rhs` that are neither batch nor contracted.
Shape productShape(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs, const ContractionDims &dims);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_RESULTSHAPES_H
