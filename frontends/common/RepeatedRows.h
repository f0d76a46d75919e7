//===- RepeatedRows.h - known values that are repeated ----------*- C++ -*-===//
//
// A known tensor may be too large to be evaluated only because it is the same for
// each sample of a large batch: positions, and masks that are computed of them.
// Then one row is evaluated, and the tensor is its broadcast along dimension 0.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_REPEATEDROWS_H
#define TESSERA_FRONTENDS_COMMON_REPEATEDROWS_H

#include "compiler/dialect/train/Builders.h"
#include "frontends/common/HostTensor.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::frontend {

/// Of a broadcast of a known value that repeats it along dimension 0: `count` rows of it, the size of that dimension.
/// Null for any other value, and where the rows are too large.
Constant rowsOf(mlir::Value value, int64_t count);

/// Whether `two` is `one`, which has size 1 in dimension 0, twice along it, bit for bit.
bool areTwice(const HostTensor &two, const HostTensor &one);

/// The value whose rows, along dimension 0 of `size`, all equal `row`.
mlir::Value repeatRow(train::Build &b, const HostTensor &row, int64_t size);

/// Which values are the same in all places of dimension 0, by the dimensions of the ops that they are computed by.
class RepeatedRows {
public:
  /// `known`: values of which it is known.
  explicit RepeatedRows(llvm::ArrayRef<mlir::Value> known);
  bool contains(mlir::Value value);

private:
  bool find(mlir::Value value);
  bool isComputedOfConstants(mlir::Value value);
  llvm::DenseSet<mlir::Value> known;
  llvm::DenseMap<mlir::Value, bool> found;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_REPEATEDROWS_H
