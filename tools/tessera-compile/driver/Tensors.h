//===- Tensors.h - what became of a model's tensors -------------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_TENSORS_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_TENSORS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// One line on what the step trains: tensors and elements by role, and, once there is an optimizer, its state.
/// `source`: the model's file, which the line begins with. Called after the import or the optimize phase.
void printTensorSummary(mlir::ModuleOp module, llvm::StringRef source, llvm::raw_ostream &os);

/// One line for each tensor of the model file: role, name, type, and who decided so.
void printTensors(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_TENSORS_H
