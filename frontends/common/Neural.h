//===- Neural.h - whole ops that frameworks have ----------------*- C++ -*-===//
//
// Activations, normalisations, attention and losses as PyTorch and ONNX define them alike, on values: what a file says
// of types and shapes has been checked before, but for functions that take a call, which fail with its reason.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_NEURAL_H
#define TESSERA_FRONTENDS_COMMON_NEURAL_H

#include "frontends/common/Step.h"

namespace tessera::frontend {

/// `x` within bounds; its slope is 0 where it reaches one.
mlir::Value atLeast(train::Build &b, mlir::Value x, double bound);
mlir::Value atMost(train::Build &b, mlir::Value x, double bound);
/// The smaller one of each pair; of booleans: and.
mlir::Value minimum(train::Build &b, mlir::Value x, mlir::Value y);
/// x / y of integers rounded down, and what it leaves, whose sign is the divisor's.
mlir::Value floorDivide(train::Build &b, mlir::Value x, mlir::Value y);
mlir::Value floorRemainder(train::Build &b, mlir::Value x, mlir::Value y);

/// The mean over dimensions, in which there are elements.
mlir::Value mean(train::Build &b, mlir::Value x, llvm::ArrayRef<int64_t> dims);

/// `x` with elements set to 0 at random, and which ones are kept.
std::pair<mlir::Value, mlir::Value> dropOut(train::Build &b, mlir::Value x, double rate, Step &step);

/// Over dimensions in which there are elements.
mlir::Value logSumExp(train::Build &b, mlir::Value x, llvm::ArrayRef<int64_t> dims);
mlir::Value logSoftmax(train::Build &b, mlir::Value x, int64_t dim);

/// Over the last dimensions of `x`, of as many elements as scale and bias (null: none) have.
train::LayerNormOp normaliseInner(train::Build &b, mlir::Value x, llvm::ArrayRef<int64_t> inner, train::NormMode mode,
                                  mlir::Value scale, mlir::Value bias, double epsilon);
/// Over each of `groups` groups of channels of each sample, which is not empty: [samples, groups, elements].
train::LayerNormOp normaliseGroups(train::Build &b, mlir::Value x, int64_t groups, double epsilon);

/// Mean and variance of each channel of a batch.
struct BatchStatistics {
  mlir::Value mean, variance;
};
/// `runningMean`, `runningVariance`: the buffers that take their place in evaluation; empty: there are none.
BatchStatistics batchStatistics(train::Build &b, mlir::Value x, llvm::StringRef runningMean = {},
                                llvm::StringRef runningVariance = {});
/// Running statistics after a batch: (1 - momentum) * running + momentum * that of the batch, the variance by n - 1, of
/// `count` elements a channel. No gradient goes through.
BatchStatistics nextStatistics(train::Build &b, const BatchStatistics &running, const BatchStatistics &ofBatch,
                               double momentum, int64_t count);
/// `x` normalised by channel, times `scale`, plus `bias` (null: none).
mlir::Value normaliseChannels(train::Build &b, mlir::Value x, const BatchStatistics &by, mlir::Value scale,
                              mlir::Value bias, double epsilon);

/// What a call says of attention; query, key and value are [B, H, T, D].
struct AttentionArguments {
  mlir::Value query, key, value;
  mlir::Value mask; ///< broadcasts to [B, H, Tq, Tk], boolean or added; null: none
  /// Each query sees the keys up to its own place, counted from the first ones.
  bool isCausal = false;
  double scale = 1;
};
/// Fails where the shapes do not fit each other. Masks that are needed because the diagonal does not end in the last
/// key are written out; then `isCausal` is false.
mlir::LogicalResult checkAttention(Call &n, AttentionArguments &a);
/// The result [B, H, Tq, Dv] of arguments that are checked.
mlir::Value attention(train::Build &b, const AttentionArguments &a);

/// Scores [N, C, d…] as rows [N·d…, C].
mlir::Value classRows(train::Build &b, mlir::Value scores);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_NEURAL_H
