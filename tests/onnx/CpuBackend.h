//===- CpuBackend.h - runs an imported forward function on the CPU -*- C++ -*-===//
//
// For tests that link compiler and runtime together: lowers a function with the driver's own pipelines, writes the
// artifact to memory and executes it in a session of one rank.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_ONNX_CPUBACKEND_H
#define TESSERA_TESTS_ONNX_CPUBACKEND_H

#include "compiler/interp/Tensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tessera::test {

struct CpuRun {
  enum Kind {
    Ran,         ///< `results` holds the values
    Unsupported, ///< the compiler refused, with a diagnostic
    Broken       ///< the runtime refused what the compiler made, or the step failed
  } kind = Broken;
  std::string why; ///< empty for `Unsupported`: the reason is in the context's diagnostics
  std::vector<interp::Tensor> results;
};

/// Executes the module's @step, which is consumed, on arguments in the function's order. The context must have been
/// made with `registerAllDialects`, and `registerAllPasses` must have run.
CpuRun runOnCpu(mlir::ModuleOp module, llvm::ArrayRef<interp::Tensor> arguments);

} // namespace tessera::test

#endif // TESSERA_TESTS_ONNX_CPUBACKEND_H
