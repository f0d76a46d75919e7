//===- Float8.h - what all that knows 8-bit floats agrees on ----*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_FLOAT8_H
#define TESSERA_COMPILER_DIALECT_TRAIN_FLOAT8_H

#include "mlir/IR/BuiltinTypes.h"

namespace tessera::train {

/// The formats that products of 8-bit floats read.
inline bool isFloat8(mlir::Type element) { return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element); }

/// A unit that is held in 8 bits is cut into chunks, each with one maximum: so many elements, as many as can be for
/// what is gathered of them, and few enough to lie in one row of a weight; fewer where rows are shorter, but at least
/// kLeastFloat8Chunk.
inline constexpr int64_t kFloat8Chunk = 128, kLeastFloat8Chunk = 16;

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_FLOAT8_H
