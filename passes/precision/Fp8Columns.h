//===- Fp8Columns.h - columns of weights in a flat unit ---------*- C++ -*-===//
//
// A column of a weight lies scattered over its unit, and over the ranks' shards. Each shard gives the largest values of
// the columns that it meets; they are gathered, a number for each shard and column, and make one scale for each column.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_PRECISION_FP8COLUMNS_H
#define TESSERA_PASSES_PRECISION_FP8COLUMNS_H

#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera::precision {

/// A weight in a unit, row after row.
struct ColumnWeight {
  int64_t offset, rows, columns;

  int64_t end() const { return offset + rows * columns; }
};

/// The parts of a unit that are on one rank each, as rows of a matrix, and the place of each element.
class UnitShards {
public:
  /// `unit` in `count` parts of one size.
  UnitShards(train::Build &b, mlir::Value unit, int64_t count);

  mlir::Value getRows() const { return rows; }
  /// The largest absolute value of each column of each weight: f32 [columns]. What shards give is one value, which is
  /// gathered once.
  llvm::SmallVector<mlir::Value> columnMaxima(train::Build &b, llvm::ArrayRef<ColumnWeight> weights);
  /// For each element the scale of its column, f32 of the shape of the rows; 1 outside of all weights. `scales` has
  /// those of each weight.
  mlir::Value scalesOfElements(train::Build &b, llvm::ArrayRef<ColumnWeight> weights,
                               llvm::ArrayRef<mlir::Value> scales);

private:
  mlir::Value number(train::Build &b, int64_t value) const;
  /// `x` modulo a positive number, of numbers that are not negative.
  static mlir::Value modulo(train::Build &b, mlir::Value x, int64_t divisor);
  mlir::Value isIn(train::Build &b, const ColumnWeight &weight) const;
  /// [shards, columns], each row turned by where its shard begins.
  mlir::Value turnedMaxima(train::Build &b, const ColumnWeight &weight);

  int64_t shards, elements; ///< elements of a shard
  mlir::Value rows, places;
};

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FP8COLUMNS_H
