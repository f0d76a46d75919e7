//===- GpuMathFunctions.h - f32 functions by a GPU's own units --*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_GPUMATHFUNCTIONS_H
#define TESSERA_PASSES_LOWER_CODEGEN_GPUMATHFUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::codegen {

/// The intrinsics that stand for `ex2.approx.ftz.f32` and `rcp.approx.ftz.f32`, as operands of `llvm.call_intrinsic`.
inline constexpr llvm::StringLiteral kExp2Intrinsic = "llvm.nvvm.ex2.approx.ftz";
inline constexpr llvm::StringLiteral kReciprocalIntrinsic = "llvm.nvvm.rcp.approx.ftz.f";

/// Marks the division 1 / (e^-x + 1) that is a sigmoid, and not a model's own.
inline constexpr llvm::StringLiteral kSigmoid = "sigmoid";

/// Turns math.{exp,tanh,erf} of f32, and divisions that are marked `kSigmoid`, into few instructions of a GPU.
llvm::LogicalResult useGpuMath(mlir::ModuleOp module);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_GPUMATHFUNCTIONS_H
