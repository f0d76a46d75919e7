//===- Kept.h - which values of a step are kept in memory -------*- C++ -*-===//
//
// Fusion computes elementwise values inside kernels and repeats them where they are cheap. What is left is read from
// memory: by libraries, and by the backward pass.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_PRECISION_KEPT_H
#define TESSERA_PASSES_PRECISION_KEPT_H

#include "compiler/dialect/train/Train.h"

namespace tessera::precision {

/// Computes each element of its result from those at the same place, in one type.
inline bool isElementwise(mlir::Operation *op) {
  return op->hasTrait<mlir::OpTrait::Elementwise>() && !mlir::isa<train::ConvertOp>(op);
}

/// Whether `value`, which an elementwise op computes, is read from memory. `fromBackward`: the backward pass computes
/// it, so what it reads of its own is no reason to keep it, nor is a product that is computed in f32.
bool isKept(mlir::Value value, bool fromBackward);

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_KEPT_H
