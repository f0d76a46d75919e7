//===- Computation.h - tells what steps compute apart ---------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace tessera {

/// A fingerprint, in hexadecimal digits, of the operations of a step as it was imported, of what they read and of their
/// settings that are one number or name. Constants, shapes and what only arranges elements do not count, so that a
/// model has one fingerprint at any size of its batch.
std::string fingerprintOf(mlir::func::FuncOp step);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H
