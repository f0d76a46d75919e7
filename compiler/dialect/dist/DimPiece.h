//===- DimPiece.h - where a rank's part of a dimension lies ------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_DIMPIECE_H
#define TESSERA_COMPILER_DIALECT_DIST_DIMPIECE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::dist {

/// The place of a rank's elements in a dimension is given in pieces, major first: an index is made of one index of
/// each. Of `global` the rank has a run of `local / starts.size()` behind each of the starts (tensor<i64>; null: 0).
struct DimPiece {
  int64_t global, local;
  llvm::SmallVector<mlir::Value, 2> starts;
};

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_DIMPIECE_H
