//===- RepeatedElements.h - equal elements along a dimension ----*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_REPEATEDELEMENTS_H
#define TESSERA_PASSES_DIFFERENTIATE_REPEATEDELEMENTS_H

#include "compiler/dialect/train/Train.h"

namespace tessera {

/// Whether each of the `blocks` of a dimension of a constant has the same elements for each sample.
bool isConstantAlong(train::ConstantOp constant, int64_t dim, int64_t blocks, int64_t batchSize);

/// Whether all elements along a dimension are equal because they were repeated, as by a broadcast.
bool isRepeatedAlong(mlir::Value value, int64_t dim);

/// A sum, with no sample in it, over what may nevertheless be repeated for each of them.
bool hasUnclearCount(mlir::Operation &op, int64_t batchSize);

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_REPEATEDELEMENTS_H
