//===- UpdateBuilder.h - updates as elementwise ops -------------*- C++ -*-===//
//
// What optimizers have in common when they become elementwise ops: the gradient as it is taken, weight decay of some
// elements, updates that are left out, and narrow states.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_UPDATEBUILDER_H
#define TESSERA_COMPILER_DIALECT_TRAIN_UPDATEBUILDER_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::train {

/// Builds one update in the accumulation type of its parameter.
class UpdateBuilder : public Build {
public:
  UpdateBuilder(mlir::OpBuilder &builder, OptimizerUpdateOpInterface update);

  mlir::Value widen(mlir::Value x) { return convert(x, wide); }
  mlir::Value broadcastScalar(mlir::Value x, mlir::Value like) { return broadcast(x, shapeOf(like), {}); }

  /// The gradient, scaled and clipped.
  mlir::Value gradient();
  /// Of several ops that compute with the gradient, in their order, the first one is marked (`train.unit`), so that
  /// `fuse` can tell which kernel reads the gradient itself. Returns `ofGradient`.
  mlir::Value reads(mlir::Value ofGradient);

  /// `param * (1 - lr * decay)` for the elements that take decay; lr is wide.
  mlir::Value decayed(mlir::Value param, mlir::Value lr);
  /// `where the global index is below decay_elements ? decayed : plain`, without a select where all or none decay.
  mlir::Value chooseDecay(mlir::Value decayed, mlir::Value plain);

  /// The parameter's next value in its own type, or the one before where the update is not applied.
  mlir::Value storedParam(mlir::Value updated);
  /// The same of a state, rounded as the update says.
  mlir::Value storedState(mlir::Value updated, unsigned state);
  /// The new value of a state as the parameter's update reads it. It is the stored one if that is as wide, so that no
  /// second value need be kept; where the update is not applied the parameter does not depend on it.
  static mlir::Value forUpdate(mlir::Value updated, mlir::Value stored) {
    return updated.getType() == stored.getType() ? stored : updated;
  }

private:
  mlir::Value guarded(mlir::Value stored, mlir::Value before);
  mlir::Value clip(mlir::Value gradient, double limit);
  mlir::Value min(mlir::Value a, mlir::Value b) { return neg(max(neg(a), neg(b))); }

  OptimizerUpdateOpInterface update;
  mlir::Type wide;
  mlir::Attribute unit; ///< not marked yet
};

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_UPDATEBUILDER_H
