//===- CrossEntropyGrad.h - the gradient of logits written out --*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_CROSSENTROPYGRAD_H
#define TESSERA_COMPILER_DIALECT_TRAIN_CROSSENTROPYGRAD_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::train {

/// What a cross-entropy and its gradient read: logits [N, V], lse [N] and targets [N].
struct CrossEntropyRows {
  mlir::Value logits, lse, targets;
  std::optional<uint64_t> ignoreIndex;
  double labelSmoothing;
};

/// exp(logits - lse) [N, V], of lse's type.
mlir::Value crossEntropyProbability(Build &build, const CrossEntropyRows &rows);
/// (probability - q) * grad [N, V], with q the smoothed target distribution and `grad` [N] that of each row's loss; 0
/// in rows that are ignored: one elementwise expression of the logits, which can be computed in their place.
mlir::Value crossEntropyGrad(Build &build, const CrossEntropyRows &rows, mlir::Value probability, mlir::Value grad);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_CROSSENTROPYGRAD_H
