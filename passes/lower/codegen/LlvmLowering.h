//===- LlvmLowering.h - loops of scalars to the LLVM dialect ----*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_LLVMLOWERING_H
#define TESSERA_PASSES_LOWER_CODEGEN_LLVMLOWERING_H

#include "mlir/IR/BuiltinOps.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace tessera::codegen {

enum class Processor { Cpu, Gpu };

/// Lowers scf, arith, math and func. exp, log, tanh and erf of f32 become polynomials, the same ones on every
/// processor; what else has no instruction becomes a call: of libm on a CPU, of libdevice (`__nv_…`) on a GPU.
llvm::LogicalResult lowerToLlvmDialect(mlir::ModuleOp module, Processor processor);

/// The code generator of an initialised target at its highest level, with products and sums fused; null with an error
/// at `loc` if this LLVM has none.
std::unique_ptr<llvm::TargetMachine> createTargetMachine(llvm::StringRef triple, llvm::StringRef cpu,
                                                         llvm::StringRef features,
                                                         std::optional<llvm::Reloc::Model> relocation,
                                                         mlir::Location loc);

/// LLVM's optimisations at level 3, for the machine's triple and data layout.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_LLVMLOWERING_H
