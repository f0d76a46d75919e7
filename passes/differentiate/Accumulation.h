//===- Accumulation.h - cotangents that are still being summed --*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_ACCUMULATION_H
#define TESSERA_PASSES_DIFFERENTIATE_ACCUMULATION_H

#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera {

/// Collects the contributions to each value's cotangent in the order in which users deliver them, and sums them when
/// the value's own turn comes.
class Accumulation {
public:
  void add(mlir::Value primal, mlir::Value contribution) { pending[primal].push_back(contribution); }

  /// The cotangent of `primal`, or null if nothing contributed. Contributions that are boxes along one dimension (the
  /// gradients of slices) become one concat where they do not overlap, the others are added in order.
  mlir::Value take(mlir::OpBuilder &builder, mlir::Value primal);

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> pending;
};

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_ACCUMULATION_H
