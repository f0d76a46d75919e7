//===- CountValid.h - count_valid written out -------------------*- C++ -*-===//
//
// The clamp of `count_valid` does not commute with a sum over parts of the batch, so that passes that split the batch
// write it out first.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_COUNTVALID_H
#define TESSERA_COMPILER_DIALECT_TRAIN_COUNTVALID_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::train {

/// The maximum of 1 and the number of targets that count. Without an ignored index that is a number, or with
/// `asFunction` a sum over the targets all the same, so that it is seen to grow with the batch.
mlir::Value writeOutCount(Build &b, CountValidOp op, bool asFunction = false);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_COUNTVALID_H
