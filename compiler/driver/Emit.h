//===- Emit.h - from lowered IR to the artifact file ------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DRIVER_EMIT_H
#define TESSERA_COMPILER_DRIVER_EMIT_H

#include "compiler/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// (phase, IR text) of each phase that has run.
using PhaseSnapshots = std::vector<std::pair<std::string, std::string>>;

/// Generates code for the kernels of a lowered module and writes the artifact to `options.output`.
llvm::LogicalResult emitArtifact(const CompileOptions &options, mlir::ModuleOp module, const PhaseSnapshots &snapshots);

} // namespace tessera

#endif // TESSERA_COMPILER_DRIVER_EMIT_H
