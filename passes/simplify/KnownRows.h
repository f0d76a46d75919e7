//===- KnownRows.h - values known at compile time, row by row ---*- C++ -*-===//
//
// Masks and positions are known at compile time but too large to be folded to constants: a mask of T x T weighs T².
// Their rows are few pieces that are constant or ascend evenly, however long they are, and here they are computed as
// such.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_KNOWNROWS_H
#define TESSERA_PASSES_SIMPLIFY_KNOWNROWS_H

#include "passes/simplify/Pieces.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace tessera::simplify {

/// Computes rows of values that follow from constants and `iota` by elementwise ops, comparisons, selections and
/// changes of shape. Nothing may change the IR while it is in use.
class KnownRows {
public:
  /// The row of `value` at `index`, one number for each dimension but the last. Nothing if it is not known, not made of
  /// few pieces, or if the rows read so far took too long.
  std::optional<Row> row(mlir::Value value, llvm::ArrayRef<int64_t> index);

  /// The dimensions along which `value` may differ; along all others it is the same everywhere. Conservative.
  llvm::BitVector variesAlong(mlir::Value value);

private:
  std::optional<Row> compute(mlir::Value value, llvm::ArrayRef<int64_t> index);
  std::optional<double> element(mlir::Value value, llvm::ArrayRef<int64_t> index);
  std::optional<Row> constantRow(mlir::DenseElementsAttr elements, llvm::ArrayRef<int64_t> index);
  std::optional<Row> broadcastRow(train::BroadcastOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> reshapeRow(train::ReshapeOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> transposeRow(train::TransposeOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> sliceRow(train::SliceOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> convertRow(train::ConvertOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> selectRow(train::SelectOp op, llvm::ArrayRef<int64_t> index);
  std::optional<Row> binaryRow(mlir::Operation *op, llvm::ArrayRef<int64_t> index);

  int64_t work = 0; ///< pieces and elements read
  int depth = 0;
  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, Row> constantRows; ///< by constant and the row's number in it
};

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_KNOWNROWS_H
