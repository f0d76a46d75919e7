//===- Rows.h - where rows or heads of values lie ---------------*- C++ -*-===//
//
// What passes need that compute for some rows (or heads) at a time what is computed for all: where an op has those of
// its operands and results, by its sharding rule, and what it is built with.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_ROWS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_ROWS_H

#include "compiler/dialect/train/Train.h"
#include "compiler/interfaces/ShardingRule.h"

namespace tessera::train {

/// Where the rows of a value lie: dimension `dim` is the rows, times `inner` that are minor.
struct RowsOf {
  int64_t dim, inner;
  bool operator==(const RowsOf &other) const { return dim == other.dim && inner == other.inner; }
};

/// The place of `factor` among the factors of a tensor's dimensions; `isMajor` becomes false where another one of its
/// dimension is major to it.
std::optional<RowsOf> placeOf(const ShardingRule &rule, const TensorFactors &dims, int64_t factor, bool &isMajor);

/// The factor of a tensor whose elements at `place` are `rows`, or each of them several neighbours, if any rows can be
/// taken alone; else -1.
int64_t rowFactor(const ShardingRule &rule, const TensorFactors &dims, RowsOf place, int64_t rows);

/// Whether `op` makes the same for every row: it can make as many as are needed.
bool repeatsRows(mlir::Operation *op, RowsOf place);

/// Whether `op` needs to know which of all elements it computes: it counts them, draws numbers for them, or lets them
/// see others by position.
bool knowsPlaces(mlir::Operation *op);

/// Builds `op` for some rows, of which it needs not know which they are; fails where it asks.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildForRows(mlir::Operation *op, mlir::OpBuilder &builder,
                                                             mlir::ValueRange operands, mlir::TypeRange types);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_ROWS_H
