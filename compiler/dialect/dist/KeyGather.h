//===- KeyGather.h - how the keys of an attention are gathered --*- C++ -*-===//
//
// Attributes of `train.attention` and `train.attention_grad` on global values, which `localize` heeds: keys, values and
// their gradients cross ranks for some key heads at a time, or in another type. No value depends on the first.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_KEYGATHER_H
#define TESSERA_COMPILER_DIALECT_DIST_KEYGATHER_H

#include "mlir/IR/Operation.h"

#include <cstdint>

namespace tessera::dist {

/// An i64: bytes that the gathered keys and values of a rank may take, with their gradients in the backward pass.
inline constexpr llvm::StringLiteral kGatherBytes = "dist.gather_bytes";
/// A float type: what keys and values are gathered in and their gradients added up in over ranks; else their own.
inline constexpr llvm::StringLiteral kGatherType = "dist.gather_type";

struct KeyGather {
  int64_t bytes = 0; ///< 0: all heads at once
  mlir::Type type;   ///< null: that of keys and values

  explicit operator bool() const { return bytes != 0 || type; }
  static KeyGather of(mlir::Operation *op);
  void annotate(mlir::Operation *op) const;
};

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_KEYGATHER_H
