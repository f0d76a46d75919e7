//===- OptimizerUpdate.h - what the update interface speaks of --*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERFACES_OPTIMIZERUPDATE_H
#define TESSERA_COMPILER_INTERFACES_OPTIMIZERUPDATE_H

#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace tessera::train {

/// Builds what an update is made of; see compiler/dialect/train/UpdateBuilder.h.
class UpdateBuilder;

/// Where the random bits of rounding come from: the step's seed (i64), and a number of the unit's own.
struct StateRounding {
  mlir::Value seed;
  int64_t stream;
};

/// One element of an update, in f64. The gradient has been scaled and clipped; `decay` is 0 where there is none.
struct UpdateElement {
  double param, grad, decay;
  llvm::ArrayRef<double> hyper; ///< in the order of getHyper()
  llvm::MutableArrayRef<double> states;
};

} // namespace tessera::train

#include "compiler/interfaces/OptimizerUpdate.h.inc"

#endif // TESSERA_COMPILER_INTERFACES_OPTIMIZERUPDATE_H
