//===- ChooseAttention.h - attention over sequence axes by cost -*- C++ -*-===//
//
// What `--attention auto` means for a model, a mesh and a target: each way is compiled, and the fastest step that fits
// is taken.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H

#include "compiler/cost/Target.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/MLIRContext.h"

namespace tessera {

/// Whether there is something to choose: `--attention auto`, and a sequence axis larger than 1.
bool choosesAttention(const CompileOptions &options);

/// Replaces `--attention auto` by the way whose predicted step is shortest among those that fit what was asked for
/// (`--memory-limit`, `--fit`) or the target's device; by the one that takes least if none fits. Says which on `out`,
/// and what the others would take. If none compiles `auto` stays: the compilation says what is wrong.
void chooseAttention(CompileOptions &options, const cost::Target &target, mlir::MLIRContext &context,
                     llvm::raw_ostream &out);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_CHOOSEATTENTION_H
