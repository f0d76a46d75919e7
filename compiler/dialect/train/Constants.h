//===- Constants.h - the numbers that constants stand for -------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_CONSTANTS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_CONSTANTS_H

#include "mlir/IR/Value.h"

#include <optional>

namespace tessera::train {

/// The number that all elements of a constant tensor equal; true is 1. Nothing if they differ, if there are none, or if
/// no double is exactly that number.
std::optional<double> splatOf(mlir::Attribute elements);
/// The same of what defines `value`; nothing if that is no constant.
std::optional<double> splatOf(mlir::Value value);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_CONSTANTS_H
