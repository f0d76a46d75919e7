//===- Computation.h - tells what steps compute apart ---------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace tessera {

/// A number, as text, that is another one for a step with other operations, other settings of them or another order of
/// them. Sizes, the values of tables and names do not count, so that a model has one number at any size of its batch.
std::string describeComputation(mlir::func::FuncOp step);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPUTATION_H
