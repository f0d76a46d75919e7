//===- MemoryLimit.h - what a memory limit leaves room for ------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MEMORYLIMIT_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MEMORYLIMIT_H

#include "compiler/cost/Target.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// True if `options` leave choices to be made under the memory limit.
bool needsMemoryPlan(const CompileOptions &options);

/// Replaces `--keep-gathered=auto` by the units that fit, and sets how many bytes `--prefetch auto` may gather ahead.
/// Compiles the step without either first, to see what the memory plan leaves. A remark for each unit says why.
llvm::FailureOr<CompileOptions> planUnderLimit(const CompileOptions &options, const cost::Target &target,
                                               mlir::MLIRContext &context);

/// An error if a rank of the lowered module reserves more than the limit, which on a GPU leaves out what is on the
/// host.
llvm::LogicalResult checkMemoryLimit(const CompileOptions &options, bool isGpu, mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_MEMORYLIMIT_H
