//===- ScaleLayout.h - how a library takes scales ---------------*- C++ -*-===//
//
// The table of scale modes: which elements of an operand of a product share a
// scale, and where in memory it is. Nothing else knows a layout.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_EXEC_SCALELAYOUT_H
#define TESSERA_COMPILER_DIALECT_EXEC_SCALELAYOUT_H

#include "compiler/dialect/exec/Exec.h"

namespace tessera::exec {

/// Sizes of a product of 8-bit floats are multiples of it.
inline constexpr int64_t kScaledMultiple = 16;

/// Elements that share a scale along what is contracted, and along the rest; 0: all.
struct ScaleBlocks {
  int64_t contracted, kept;
  bool operator==(const ScaleBlocks &) const = default;
};

/// Not for `none`.
ScaleBlocks blocksOf(ScaleMode mode);

/// Whether a library multiplies operands whose scales have these modes.
bool isModePair(ScaleMode lhs, ScaleMode rhs);

/// The type of the scales of an operand with `kept` rows of `contracted` elements.
mlir::RankedTensorType scaleType(mlir::MLIRContext *context, ScaleMode mode, int64_t kept, int64_t contracted);
/// The place among them, in row-major order, of that of an element.
int64_t scalePosition(ScaleMode mode, int64_t kept, int64_t contracted, int64_t row, int64_t column);

/// An operand as [kept, contracted], and its scales.
struct ScaledOperand {
  mlir::ShapedType type;
  ScaleMode mode;
  mlir::ShapedType scales;
};
/// What cuBLASLt multiplies: formats, sizes and modes, and scales that lie where it reads them.
llvm::LogicalResult verifyScaledOperands(mlir::Operation *op, const ScaledOperand &lhs, const ScaledOperand &rhs,
                                         mlir::ShapedType result);

} // namespace tessera::exec

#endif // TESSERA_COMPILER_DIALECT_EXEC_SCALELAYOUT_H
