//===- JoinSums.h - sums that are added up, in one --------------*- C++ -*-===//
//
// The norm of all gradients is a sum of a sum for each unit. Each of these gives partial sums, which lie side by side
// and are added up together.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_JOINSUMS_H
#define TESSERA_PASSES_LOWER_JOINSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Where sums of long tensors to numbers are added to each other: lets each be partial sums of chunks that fill the
/// blocks of a GPU, all in one tensor, and adds that up. The order of summation follows from the shapes. The ops that
/// this replaces stay, unread.
void joinSums(mlir::func::FuncOp func);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_JOINSUMS_H
