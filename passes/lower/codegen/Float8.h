//===- Float8.h - scalar code of 8-bit floats -------------------*- C++ -*-===//
//
// In registers and memory an 8-bit float is its bits, an i8. A cast is emitted as
// two ops of `arith`; what they become depends on the processor. Where it has no
// instruction it is integer arithmetic without tables or branches, which
// vectorises.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_FLOAT8_H
#define TESSERA_PASSES_LOWER_CODEGEN_FLOAT8_H

#include "compiler/dialect/train/Train.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera::codegen {

bool isFloat8(mlir::Type type);

/// The bits of an f32 in the 8-bit float `type`, rounded to the nearest, ties to even. What is beyond the largest
/// number is NaN in f8E4M3FN and infinite in f8E5M2, as in the interpreter; of f8E8M0FNU, which has neither sign nor
/// zero, only numbers above 0 are.
mlir::Value emitToFloat8(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);
/// The f32 of the bits of a `type`.
mlir::Value emitFromFloat8(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type type);

/// The two ops that emitToFloat8 or emitFromFloat8 made.
struct Float8Cast {
  mlir::Operation *first, *last;
  mlir::Value operand() const { return first->getOperand(0); }
  mlir::Type type() const { return first->getResult(0).getType(); }
};
/// Those of a block in their order.
struct Float8Casts {
  llvm::SmallVector<Float8Cast> narrowing, widening;
};
Float8Casts findFloat8Casts(mlir::Block &block);
void replaceFloat8Cast(const Float8Cast &cast, mlir::Value made);

/// Turns casts into integer arithmetic.
void expandFloat8(mlir::ModuleOp module);

/// train.quantize_scale of an f32.
mlir::Value emitQuantizeScale(mlir::OpBuilder &builder, train::QuantizeScaleOp op, mlir::Value amax);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_FLOAT8_H
