//===- Axis.h - dimensions in another order, and what is done along one -----===//

#ifndef TESSERA_FRONTENDS_COMMON_AXIS_H
#define TESSERA_FRONTENDS_COMMON_AXIS_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

/// Orders of dimensions: all of `rank` with `dim` at a place among the others, and the order that undoes one.
llvm::SmallVector<int64_t> withDimAt(int64_t rank, int64_t dim, int64_t place);
llvm::SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> order);
/// A shape, and a tensor, in that order.
llvm::SmallVector<int64_t> permuted(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> order);
mlir::Value permute(train::Build &b, mlir::Value x, llvm::ArrayRef<int64_t> order);

/// Elements [from, to) of dimension `axis`, each `step`th.
mlir::Value sliceAlong(train::Build &b, mlir::Value x, int64_t axis, int64_t from, int64_t to, int64_t step = 1);
/// Element `index` of dimension `axis`, which disappears.
mlir::Value elementAlong(train::Build &b, mlir::Value x, int64_t axis, int64_t index);
/// Dimension `axis` with its last `by` elements first, 0 <= by <= its size.
mlir::Value rollAlong(train::Build &b, mlir::Value x, int64_t axis, int64_t by);
/// The elements of dimension `axis` at known indices, in their order: slices where they follow each other, repetitions
/// where they are equal, else a lookup.
mlir::Value takeAlong(train::Build &b, mlir::Value x, int64_t axis, llvm::ArrayRef<int64_t> indices);
/// Dimension `axis` as two, of `count` windows and of the `width` elements of each; windows start `stride` apart.
mlir::Value takeWindows(train::Build &b, mlir::Value x, int64_t axis, int64_t width, int64_t stride, int64_t count);
/// A constant of numbers that are rounded to the type of its elements.
mlir::Value roundedConstant(train::Build &b, mlir::Type element, llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<double> values);
/// The product of dimension `axis` with a constant matrix, row-major, with a row for each element of the result.
mlir::Value multiplyAlong(train::Build &b, mlir::Value x, int64_t axis, llvm::ArrayRef<double> matrix);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_AXIS_H
