//===- GpuFloat8.h - 8-bit floats by a GPU's own instructions ---*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_GPUFLOAT8_H
#define TESSERA_PASSES_LOWER_CODEGEN_GPUFLOAT8_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::codegen {

/// Turns the casts of Float8.h into the instructions of sm_90 and newer, two casts an instruction where a thread has
/// two. Says whether there are any: they need PTX 8.1.
bool useGpuFloat8(mlir::ModuleOp module);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_GPUFLOAT8_H
