//===- ChooseAttention.h - attention over sequence axes by cost -*- C++ -*-===//
//
// What `--attention auto` means for a model, a mesh and a target: each way is compiled, and the fastest step that fits
// is taken.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H

#include "compiler/cost/Target.h"
#include "runtime/artifact/artifact_generated.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <optional>

namespace tessera {

/// Whether there is something to choose: `--attention auto`, and a sequence axis larger than 1.
bool choosesAttention(const CompileOptions &options);

/// Replaces `--attention auto` by the way whose predicted step is shortest among those that fit what was asked for
/// (`--memory-limit`, `--fit`) or the target's device; by the one that takes least if none fits. Says which on `out`,
/// and what the others would take, and returns it for the artifact, but for the order of positions. If none compiles
/// `auto` stays, and nothing is returned: the compilation says what is wrong.
std::optional<artifact::SequenceChoiceT> chooseAttention(CompileOptions &options, const cost::Target &target,
                                                         mlir::MLIRContext &context, llvm::raw_ostream &out);

/// Completes, for the step of `module` before it is sharded, what the artifact says of attention over sequence axes;
/// `chosen` is what chooseAttention returned, if it was asked. Nothing if no sequence axis is larger than 1. Fails,
/// with the error of the phase, where what is asked for cannot be done.
mlir::FailureOr<std::optional<artifact::SequenceChoiceT>>
describeSequence(const CompileOptions &options, mlir::ModuleOp module,
                 const std::optional<artifact::SequenceChoiceT> &chosen);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H
