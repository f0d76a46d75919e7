//===- Loss.h - how a loss depends on the size of the batch -----*- C++ -*-===//
//
// Attributes by which frontends and passes say what a graph of static shapes no
// longer shows: which sums belong to means, and how the losses of micro-batches
// make the loss of the whole batch.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_LOSS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_LOSS_H

#include "compiler/dialect/train/Train.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tessera::train {

/// On a sum (`reduce`): its only use divides it by the number of elements that were added up (unit attribute).
inline constexpr llvm::StringLiteral kMean = "train.mean";
/// On a sum over the batch: statistics that are those of a micro-batch by definition, as in a batch normalisation (unit
/// attribute).
inline constexpr llvm::StringLiteral kStatistics = "train.statistics";
/// On a sum with kStatistics: the buffer that has, in evaluation, what the sum divided by the number of its terms is in
/// training (string).
inline constexpr llvm::StringLiteral kRunning = "train.running";
/// On a `barrier` of 1: it stands for the number of micro-batches (unit attribute).
inline constexpr llvm::StringLiteral kMicroBatches = "train.micro_batches";
/// On a `barrier` of a number or tensor that follows from the batch's data alone: it stands for the same of the whole
/// batch, which is the sum or the mean of those of the micro-batches (OfBatch).
inline constexpr llvm::StringLiteral kOfBatch = "train.of_batch";
/// On a step function: how many of these there are, so that a pass that loses one is noticed (i64).
inline constexpr llvm::StringLiteral kNumOfBatch = "train.num_of_batch";
/// On a `barrier` of a number that follows from the size of the batch: what it is for the whole batch (f64).
inline constexpr llvm::StringLiteral kOfBatchNumber = "train.of_batch_number";
/// On an op that arranges elements: the dimension of its result that grows with the batch, and with it alone:
/// micro-batches are its parts as they are of the batch (i64).
inline constexpr llvm::StringLiteral kGrows = "train.grows";
/// On an op: its result is another one for a batch of another size, otherwise than that dimensions are longer, such as
/// a part of a parameter that is as long as the batch; and on what is computed of it (unit attribute).
inline constexpr llvm::StringLiteral kFollowsBatchSize = "train.follows_batch_size";
/// On a constant whose size grows with the batch, or on its barrier: it has other values for other samples (unit
/// attribute).
inline constexpr llvm::StringLiteral kByPlace = "train.by_place";
/// On a `gather_rows`: the table has as many rows for each place along dimension 0 of the indices, and each index is
/// one of its own place's rows, by a number of rows that was added to it (unit attribute).
inline constexpr llvm::StringLiteral kOwnRows = "train.own_rows";
/// On a step function: all numbers that follow from the size of the batch are known to do so (kOfBatch), as are the
/// shapes (kGrows); the program keeps consecutive samples together in this many groups (i64).
inline constexpr llvm::StringLiteral kBatchGroups = "train.batch_groups";
/// On a step function with kBatchGroups: for how many micro-batches it is known (i64).
inline constexpr llvm::StringLiteral kBatchParts = "train.batch_parts";
/// On a step function (OfBatch): the loss of a batch is the sum of its micro-batches' losses, or their mean, or (terms)
/// the sum because some of its terms are divided by the number of micro-batches (kMicroBatches).
inline constexpr llvm::StringLiteral kLossOfBatch = "train.loss_of_batch";
/// On a step function whose loss add-loss made of an output (unit attribute): samples of a batch may influence each
/// other in front of it, so that the losses of micro-batches do not make the loss of the whole batch.
inline constexpr llvm::StringLiteral kSamplesMeet = "train.samples_meet";

/// What kLossOfBatch of a step function or kOfBatch of a barrier says; nothing without it.
std::optional<OfBatch> getOfBatch(mlir::Operation *op, llvm::StringRef name);
void setOfBatch(mlir::Operation *op, llvm::StringRef name, OfBatch value);

/// On a `mul` by one number: it makes the gradient of the whole batch of what was added up over micro-batches (unit
/// attribute). On a probe: that number (f64).
inline constexpr llvm::StringLiteral kGradientScale = "train.gradient_scale";
/// On a fusion with optimizer updates: what makes its operands `train.grad_operands` gradients of the whole batch (an
/// array of f64).
inline constexpr llvm::StringLiteral kGradientScales = "train.gradient_scales";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_LOSS_H
