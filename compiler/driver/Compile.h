//===- Compile.h - a compilation from file to artifact ----------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DRIVER_COMPILE_H
#define TESSERA_COMPILER_DRIVER_COMPILE_H

#include "compiler/driver/Options.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// The pass pipeline of a phase in textual form, as `tessera-opt --pass-pipeline` takes it.
std::string phasePipeline(Phase phase, const CompileOptions &options);

/// Compiles as `options` say. Stopped before the artifact, it prints the IR to `out`. Errors and, if asked for, remarks
/// go through the context's diagnostics. On failure no output file exists or has been changed.
llvm::LogicalResult compile(const CompileOptions &options, mlir::MLIRContext &context, llvm::raw_ostream &out);

} // namespace tessera

#endif // TESSERA_COMPILER_DRIVER_COMPILE_H
