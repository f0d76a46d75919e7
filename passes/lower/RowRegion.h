//===- RowRegion.h - ops between a widening and a narrowing product -*- C++ -*-===//
//
// Which ops can be computed for some rows at a time so that what is wide between them never exists whole: a product
// that makes rows wider, all that reads or makes what is as wide, up to the products that make it narrow again or sum
// over the rows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_ROWREGION_H
#define TESSERA_PASSES_LOWER_ROWREGION_H

#include "compiler/dialect/train/Rows.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::lower {

using train::RowsOf;

/// Bytes of a value.
int64_t bytesOf(mlir::Value value);

class RowRegion {
public:
  /// Grows from `product`, whose result is wider than the operand that has its rows, along all that takes more than
  /// `limit` bytes. `whyNot` is empty if the region may be computed for some rows at a time.
  RowRegion(train::DotGeneralOp product, int64_t limit);

  std::string whyNot;
  int64_t rows = 0;                       ///< of the whole
  int64_t widest = 0;                     ///< bytes of the largest value that has them
  llvm::SetVector<mlir::Operation *> ops; ///< once grown, in the order of their block

  /// The rows of a value; nothing if it has none.
  std::optional<RowsOf> rowsOf(mlir::Value value) const;
  /// Whether `result`, of one of the ops, is a sum over the rows.
  bool isSum(mlir::Value result) const { return sums.contains(result); }
  /// Ops outside of the region that need a result of it and stand in front of `end`, in the order of the block.
  llvm::SmallVector<mlir::Operation *> dependentsBefore(mlir::Operation *end) const;

private:
  /// Takes `op`, which makes or reads the wide `value`, and finds what else of it has rows. False after `whyNot`.
  bool add(mlir::Operation *op, mlir::Value value, int64_t limit);
  bool setRows(mlir::Value value, RowsOf place);
  void checkReads();
  void checkOrder();

  llvm::DenseMap<mlir::Value, RowsOf> places;
  llvm::DenseSet<mlir::Value> sums;
  llvm::DenseMap<mlir::Operation *, int64_t> factors; ///< of an op: the rows
  llvm::SetVector<mlir::Value> wide;                  ///< none of them leaves the region
  llvm::SmallVector<mlir::Operation *> dependents;    ///< in the order of the block
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_ROWREGION_H
