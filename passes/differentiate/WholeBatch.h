//===- WholeBatch.h - sums of data that are those of the whole batch -*- C++ -*-===//
//
// What follows from data alone and is a sum or mean over the batch may stand
// where no part of it may: weights of a weighted mean, counts of labels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_WHOLEBATCH_H
#define TESSERA_PASSES_DIFFERENTIATE_WHOLEBATCH_H

#include "passes/differentiate/LossTerms.h"

namespace tessera {

/// Puts barriers (train.of_batch) between `op` and the sums and means of data that it reads: these are meant for the
/// whole batch, from `op` on. A LossTerms::Mend; new ops are added to `slice`, the ops that are looked at.
mlir::Operation *takeOfWholeBatch(mlir::Operation &op, const LossTerms &terms,
                                  llvm::SetVector<mlir::Operation *> &slice);

/// Divides what is a mean, or the same for each micro-batch, where it is added to sums over the batch, by the number of
/// micro-batches: a barrier of 1 (train.micro_batches). Only what `loss` is made of. Returns whether there was any.
bool shareMeans(const LossTerms &terms, mlir::Value loss);

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_WHOLEBATCH_H
