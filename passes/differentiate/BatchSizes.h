//===- BatchSizes.h - what of a step follows from its batch -----*- C++ -*-===//
//
// A program says `x.sum() / x.shape[0]` or `r.view(-1, 8)`, and a graph of static
// shapes has numbers and shapes in place of that. The same program imported for a
// larger batch says which of them follow from the size of the batch, and how.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_BATCHSIZES_H
#define TESSERA_PASSES_DIFFERENTIATE_BATCHSIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Marks in `step` what follows from the size of its batch, by `larger`, the same step of a batch `times` as large:
/// numbers become barriers that stand for those of the whole batch (train.of_batch, train.of_batch_number), shapes say
/// which dimension grows (train.grows), and the function that all of it is known (train.batch_groups).
/// False: nothing is known and nothing was changed, since a batch of this size cannot be evaluated at import as the
/// step's own can. Fails where the steps differ otherwise, at the first op that does.
mlir::FailureOr<bool> markBatchSizes(mlir::func::FuncOp step, mlir::func::FuncOp larger, int64_t times);

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_BATCHSIZES_H
