//===- Running.h - running sums and maxima ----------------------*- C++ -*-===//
//
// There is no op for them: they are written as sums and maxima over triangles, in blocks where the dimension is long.
// What finds such sums again is beside what writes them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_RUNNING_H
#define TESSERA_COMPILER_DIALECT_TRAIN_RUNNING_H

#include "compiler/dialect/train/Builders.h"

#include <optional>

namespace tessera::train {

/// Which elements the result at a place is of: those up to it, its own among them.
struct RunningDirection {
  bool exclusive = false; ///< without its own
  bool reverse = false;   ///< those from it on
};

/// The largest dimension whose running sums are one triangle.
constexpr int64_t kLongestTriangle = 8192;

/// Running sums along `axis`. Of floats they are products with triangular matrices, whose gradients are such products.
mlir::Value runningSums(Build &b, mlir::Value x, int64_t axis, RunningDirection direction);

/// Running maxima along `axis` of integers that are not negative; 0 where there is no element. Takes a time of 64 per
/// element, and no memory but that of the result.
mlir::Value runningMaxima(Build &b, mlir::Value x, int64_t axis, RunningDirection direction);

/// Whether a type holds all whole numbers from 0 to `most`.
bool holdsWhole(mlir::Type type, double most);

struct RunningSums {
  mlir::Value operand;
  RunningDirection direction;
};
/// What `value` holds the running sums of, along its last dimension, if `runningSums` wrote it. It may have sizes of 1
/// that the operand does not have, or the other way round, and it may be the first of the sums only.
std::optional<RunningSums> matchRunningSums(mlir::Value value);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_RUNNING_H
