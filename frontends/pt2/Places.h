//===- Places.h - which elements indices and slices name --------*- C++ -*-===//
//
// What reads elements and what writes them find these in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_PLACES_H
#define TESSERA_FRONTENDS_PT2_PLACES_H

#include "frontends/pt2/Call.h"

namespace tessera::pt2 {

/// Indices of several dimensions as indices of one, into which they are merged, before all others.
struct FlatIndices {
  mlir::Value flat;                  ///< of shape `common`
  llvm::SmallVector<int64_t> common; ///< to which the indices broadcast
  llvm::SmallVector<int64_t> table,
      all;                      ///< shapes: of the tensor with its dimensions merged, of all that is named
  std::optional<int64_t> first; ///< of the flat indices, where all are known and each is one more than the one before
  llvm::SmallVector<int64_t> order, ///< of the tensor's dimensions: those that are indexed come first
      placed;                       ///< of those of `all` in the result
  bool areOwnRows = false;          ///< the first index is the place along dimension 0 of `common`: train.own_rows
  mlir::Value within;               ///< the other index, of shape `common`, where there is one: of dimension 1
};

/// Of `self` by the tensors of integers and known masks at these inputs. Fails with the call's reason.
mlir::FailureOr<FlatIndices> flatIndices(Call &c, llvm::ArrayRef<int> inputs);

/// Elements [from, to) of a dimension, each `step`th.
struct SliceRange {
  int64_t dim = 0, from = 0, to = 0, step = 1;
};

/// What `dim`, `start`, `end` and `step` name of `self`.
mlir::FailureOr<SliceRange> sliceOf(Call &c);
/// The one element that `dim` and `index` name.
mlir::FailureOr<SliceRange> selectOf(Call &c);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_PLACES_H
