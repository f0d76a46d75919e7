//===- Emit.h - from lowered IR to the artifact file ------------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_EMIT_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_EMIT_H

#include "runtime/artifact/artifact_generated.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// (phase, IR text) of each phase that has run.
using PhaseSnapshots = std::vector<std::pair<std::string, std::string>>;

/// What one step amounts to, over all ranks and micro-batches; taken from the IR before it is sharded.
struct StepSize {
  double samples = 0;
  double tokens = 0;    ///< positions of the targets
  double positions = 0; ///< of one sample; 0 where no dimension counts them
  double flops = 0;
};
StepSize measureStep(mlir::ModuleOp module);

/// Generates code for the kernels of a lowered module and writes the artifact to `options.output`. `sequence`: how
/// attention is computed over sequence axes, if there are any.
llvm::LogicalResult emitArtifact(const CompileOptions &options, mlir::ModuleOp module, const StepSize &size,
                                 const std::optional<artifact::SequenceChoiceT> &sequence,
                                 const PhaseSnapshots &snapshots);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_EMIT_H
