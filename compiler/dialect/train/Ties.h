//===- Ties.h - which of equal elements takes a gradient --------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_TIES_H
#define TESSERA_COMPILER_DIALECT_TRAIN_TIES_H

#include "llvm/ADT/StringRef.h"

namespace tessera::train {

/// On a `reduce` of kind max or min: of several extreme elements the first takes the whole gradient; without it they
/// share (unit attribute).
inline constexpr llvm::StringLiteral kFirst = "train.first";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_TIES_H
