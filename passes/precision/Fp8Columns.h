//===- Fp8Columns.h - columns of weights in a flat unit ---------*- C++ -*-===//
//
// A column of a weight lies scattered over its unit, and over the ranks' shards. Each shard gives the largest values of
// the columns that it meets, or of those of each block of rows; they are gathered, and make one scale for each column
// and block.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_PRECISION_FP8COLUMNS_H
#define TESSERA_PASSES_PRECISION_FP8COLUMNS_H

#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera::precision {

/// A weight in a unit, row after row. What is in one column of `blockRows` rows shares a scale.
struct ColumnWeight {
  int64_t offset, rows, columns, blockRows;

  int64_t end() const { return offset + rows * columns; }
  int64_t blocks() const { return rows / blockRows; }
  int64_t scales() const { return blocks() * columns; }
};

/// Those of one width behind each other as one, in order, which changes nothing of what shares a scale; whole columns
/// stay as they are.
llvm::SmallVector<ColumnWeight> joinBlocks(llvm::SmallVector<ColumnWeight> weights);

/// The parts of a unit that are on one rank each, as rows of a matrix, and the place of each element.
class UnitShards {
public:
  /// `unit` in `count` parts of one size.
  UnitShards(train::Build &b, mlir::Value unit, int64_t count);

  mlir::Value getRows() const { return rows; }
  /// The largest absolute values of what shares a scale, for each weight f32 [blocks * columns]. What shards give is
  /// one value, which is gathered once. Weights are all whole columns, or in order and in blocks of as many rows.
  llvm::SmallVector<mlir::Value> maxima(train::Build &b, llvm::ArrayRef<ColumnWeight> weights);
  /// For each element its scale, f32 of the shape of the rows; 1 outside of all weights. `scales` has those of each
  /// weight.
  mlir::Value scalesOfElements(train::Build &b, llvm::ArrayRef<ColumnWeight> weights,
                               llvm::ArrayRef<mlir::Value> scales);

private:
  /// How shards are cut into groups as long as a block of a weight, and where their maxima are.
  struct Cut {
    Cut(const ColumnWeight &weight, int64_t elements);

    ColumnWeight weight;
    int64_t length;    ///< elements of a block, and of a group
    int64_t shift;     ///< with it added to places, blocks begin at multiples of the length, and no place is negative
    bool isEven;       ///< whether every shard begins with a block
    int64_t groups;    ///< of a shard
    int64_t begin = 0; ///< of its maxima in those of a shard

    int64_t blocks() const { return isEven ? groups : groups + 1; } ///< that a shard may meet
    int64_t end() const { return begin + blocks() * weight.columns; }
  };

  /// Where the maxima of blocks are in the table of all shards, whose rows are of one width: [shards that meet the
  /// block, blocks, columns]. Where a shard does not, the place is 0.
  struct Lookup {
    mlir::Value places, meets;
  };

  mlir::Value number(train::Build &b, int64_t value) const;
  /// `x` modulo a positive number, of numbers that are not negative.
  static mlir::Value modulo(train::Build &b, mlir::Value x, int64_t divisor);
  static mlir::Value quotient(train::Build &b, mlir::Value x, int64_t divisor);
  mlir::Value isIn(train::Build &b, const ColumnWeight &weight) const;
  /// Absolute values within `weight`, else 0, and zeros to a multiple of `length` for each shard.
  mlir::Value magnitudes(train::Build &b, const ColumnWeight &weight, int64_t length);
  llvm::SmallVector<mlir::Value> maximaOfColumns(train::Build &b, llvm::ArrayRef<ColumnWeight> weights);
  llvm::SmallVector<mlir::Value> maximaOfBlocks(train::Build &b, llvm::ArrayRef<ColumnWeight> weights);
  /// [shards, blocks, columns], each row turned by where its shard begins.
  mlir::Value turnedMaxima(train::Build &b, const Cut &cut);
  Lookup lookUp(train::Build &b, int64_t width, const Cut &cut);

  int64_t shards, elements; ///< elements of a shard
  mlir::Value rows, places;
};

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FP8COLUMNS_H
