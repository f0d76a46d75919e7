//===- Segments.h - what a flat unit is made of -----------------*- C++ -*-===//
//
// Before parameters are flattened, each may be placed: split over axes of the
// mesh. A flat unit then lists its parameters, with what was said of them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_SEGMENTS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_SEGMENTS_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/train/TrainSegments.h.inc"

namespace tessera::train {

/// On a parameter's argument: #train.placement; without it, each rank along model axes has the whole.
inline constexpr llvm::StringLiteral kPlacement = "train.placement";
/// On a flat unit argument: array of #train.segment in the order of their offsets.
inline constexpr llvm::StringLiteral kSegments = "train.segments";

/// On a flat unit argument: the name of the module whose parameters are several units, as they differ in type or axes.
inline constexpr llvm::StringLiteral kModule = "train.module";

/// The parameters of a flat unit; empty for an argument that is none.
llvm::SmallVector<SegmentAttr> getSegments(mlir::func::FuncOp func, unsigned index);
/// The same of an op that has the attributes of an argument.
llvm::SmallVector<SegmentAttr> getSegments(mlir::Operation *op);

/// Whether the argument is a parameter that `flatten-parameters` makes part of a unit: one that is trained, or a frozen
/// one of floats that may begin with any value. What must be given (a buffer of the model) stays as it is.
bool isFlattened(mlir::func::FuncOp func, unsigned index);

/// Where a unit with these segments is placed: null if it is whole on each rank along model axes.
PlacementAttr getPlacement(llvm::ArrayRef<SegmentAttr> segments);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_SEGMENTS_H
