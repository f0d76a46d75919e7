//===- IndexParts.h - bounds of some elements of a sample -------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H

#include "llvm/ADT/StringRef.h"

namespace tessera::train {

/// On a batch argument: what must hold of some elements of each sample, besides what holds of all. An array of
/// dictionaries {bound, ignore_index (where there is one), starts, limits, strides}; the box has the dimensions of a
/// sample.
inline constexpr llvm::StringLiteral kIndexParts = "train.index_parts";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_INDEXPARTS_H
