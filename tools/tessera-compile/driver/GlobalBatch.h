//===- GlobalBatch.h - micro-batches of a global batch ---------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_GLOBALBATCH_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_GLOBALBATCH_H

#include "tools/tessera-compile/driver/Fit.h"

namespace tessera {

/// Divides the samples of --global-batch into micro-batches: those of --batch, or one. Returns an error text that names
/// the nearest numbers that work; empty if all is well.
std::string divideGlobalBatch(CompileOptions &options);

/// Where --fit leaves open how large a micro-batch is: compiles the step with more and smaller ones until it fits the
/// device, prints what each takes, and leaves `options` with the first that fits, or the smallest.
mlir::LogicalResult fitGlobalBatch(CompileOptions &options, const cost::Target &target, mlir::MLIRContext &context,
                                   llvm::raw_ostream &out);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_GLOBALBATCH_H
