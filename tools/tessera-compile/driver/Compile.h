//===- Compile.h - a compilation from file to artifact ----------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPILE_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPILE_H

#include "compiler/cost/Target.h"
#include "tools/tessera-compile/driver/Emit.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// Reads the machine that `options.target` names, and sets the architecture that it has. Before anything else is asked
/// of the options.
llvm::FailureOr<cost::Target> resolveTarget(CompileOptions &options, mlir::MLIRContext &context);

/// Adds the passes of a phase to those of a module.
void addPasses(mlir::OpPassManager &module, Phase phase, const CompileOptions &options);
/// The same as text, as `tessera-opt --pass-pipeline` takes it.
std::string phasePipeline(Phase phase, const CompileOptions &options);

/// A step after the phase lower, without code.
struct LoweredStep {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  StepSize size;
};
/// Compiles to the phase lower; writes nothing.
llvm::FailureOr<LoweredStep> compileToLower(const CompileOptions &options, mlir::MLIRContext &context);

/// How a compilation without errors ended.
enum class CompileOutcome { Done, DoesNotFit };

/// Compiles as `options` say. Stopped before the artifact, it prints the IR to `out`; a report too. Errors and, if
/// asked for, remarks go through the context's diagnostics. On failure no output file exists or has been changed.
llvm::FailureOr<CompileOutcome> compile(const CompileOptions &options, mlir::MLIRContext &context,
                                        llvm::raw_ostream &out);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_COMPILE_H
