//===- Loss.h - losses that frameworks have --------------------*- C++ -*-===//
//
// Of values whose types and shapes have been checked. Slopes at corners are PyTorch's.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_LOSS_H
#define TESSERA_FRONTENDS_COMMON_LOSS_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

enum class Reduction { None, Mean, Sum };

/// Of scores [R, C] and targets [R]: -scores[r, targets[r]], and 0 where the target is ignored (null: none is).
mlir::Value pickedLoss(train::Build &b, mlir::Value scores, mlir::Value targets, mlir::IntegerAttr ignored);
/// The weight of each target's class, 0 where it is ignored.
mlir::Value targetWeights(train::Build &b, mlir::Value weights, mlir::Value targets, mlir::IntegerAttr ignored);
/// Losses of rows, which are weighted already: their sum, or with `Mean` over the weights' sum (null: how many targets
/// are not ignored).
mlir::Value reduceRows(train::Build &b, mlir::Value rows, mlir::Value weights, mlir::Value targets,
                       mlir::IntegerAttr ignored, Reduction reduction);
/// Losses of elements, of which there are some: they themselves, their mean, or their sum.
mlir::Value reduceLoss(train::Build &b, mlir::Value each, Reduction reduction);

/// Of probabilities, and targets: logarithms are at least -100, and the slope's denominator is at least 1e-12.
mlir::Value binaryCrossEntropy(train::Build &b, mlir::Value x, mlir::Value target);

/// The p-norm of `x` over dimension `dim`, which is not empty, for p of 0 or above; its slope is 0 where it is 0.
mlir::Value distance(train::Build &b, mlir::Value x, int64_t dim, double p);
/// The cosine of the angle between vectors along `dim`. Norms below `epsilon` count as it, without changing slopes.
mlir::Value cosineSimilarity(train::Build &b, mlir::Value x, mlir::Value y, int64_t dim, double epsilon);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_LOSS_H
