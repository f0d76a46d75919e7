//===- SimtEmulator.h - GPU kernels on a CPU, for tests ---------*- C++ -*-===//
//
// Runs the code that is generated for GPU threads without a GPU: the threads of a block are fibers, which meet at
// barriers, shuffles and votes. What it cannot show: the memory system, PTX, races within a warp.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_PASSES_LOWER_CODEGEN_SIMTEMULATOR_H
#define TESSERA_TESTS_PASSES_LOWER_CODEGEN_SIMTEMULATOR_H

#include "passes/lower/codegen/GpuKernel.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::test {

/// Replaces the intrinsics in `module` by calls through a table `emulator`, and gives each kernel @name a twin
/// `emulated_name(ptr buffers)` that takes its pointers from a list.
void useEmulator(mlir::ModuleOp module);

/// Tells a loaded library of such kernels where the table is. The inexact units err as much as NVIDIA documents; `seed`
/// says which of their results are too large and which too small.
bool connectEmulator(void *library, uint32_t seed);

/// Runs all blocks of a launch, one after the other. Returns what went wrong: threads of a warp that do not meet.
std::string emulate(void (*kernel)(void *const *), void *const *buffers, const codegen::GpuLaunch &launch);

} // namespace tessera::test

#endif // TESSERA_TESTS_PASSES_LOWER_CODEGEN_SIMTEMULATOR_H
