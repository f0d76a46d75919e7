//===- IndexParts.h - bounds of some elements of a sample -------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H

#include "llvm/ADT/StringRef.h"

namespace tessera::train {

/// On a batch argument: what must hold of some elements of each sample, besides what holds of all. An array of
/// dictionaries {bound, ignore_index (where there is one), starts, limits, strides}; the box has the dimensions of a
/// sample.
inline constexpr llvm::StringLiteral kIndexParts = "train.index_parts";

/// On a result of role `index_check`: of each sample an index that was computed from data, one outside of its table if
/// there is any. It must be at least this and below `train.index_bound`; `train.of` names the table, `train.name` the
/// node.
inline constexpr llvm::StringLiteral kIndexLow = "train.index_low";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H
