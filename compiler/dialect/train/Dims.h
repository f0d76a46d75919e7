//===- Dims.h - which dimension of a batch argument counts what -*- C++ -*-===//
//
// Inputs and targets say which of their dimensions counts samples, which
// positions. What one does not say is assumed here, in one place.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_DIMS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_DIMS_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "compiler/dialect/train/TrainDimsEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/train/TrainDims.h.inc"

namespace tessera::train {

/// On an input or target argument: #train.dims, what each of its dimensions counts.
inline constexpr llvm::StringLiteral kDims = "train.dims";

/// Whether the argument is an input or a target.
bool isBatchArgument(mlir::func::FuncOp func, unsigned index);

/// What the dimensions of an input or target argument count. Without `train.dims`, dimension 0 (dimension 1 of what
/// `train.accumulate` goes through) counts samples if it is as large as the batch: the samples of the first argument
/// that says which, else those of the first one that has the dimension. Nothing else is assumed.
DimsAttr getDims(mlir::func::FuncOp func, unsigned index);

/// Samples of a micro-batch over all ranks; 1 if no batch argument counts them.
int64_t getBatchSize(mlir::func::FuncOp func);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_DIMS_H
