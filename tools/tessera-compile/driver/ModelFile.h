//===- ModelFile.h - where a run finds its initial values -------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MODELFILE_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MODELFILE_H

#include "runtime/artifact/artifact_generated.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace tessera {

/// The record of the file that the module was imported from (`train.model_file`) and of its values, or nothing if it
/// has none of a parameter. A file that cannot be read a second time (a pipe, ONNX text) has a record without a
/// fingerprint. Warns of values that a run will not find, and emits an error if a file is damaged.
mlir::FailureOr<std::optional<artifact::ModelFileT>> describeModelFile(const CompileOptions &options,
                                                                       mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MODELFILE_H
