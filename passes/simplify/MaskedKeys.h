//===- MaskedKeys.h - what the masks of an attention come to ----*- C++ -*-===//
//
// Masks that are causal, a window, ranges of keys or documents become attributes and ranges; of the others one mask.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_MASKEDKEYS_H
#define TESSERA_PASSES_SIMPLIFY_MASKEDKEYS_H

#include "passes/simplify/AttentionMask.h"
#include "passes/simplify/Documents.h"

namespace tessera::simplify {

/// Masks by value and by how they are used: layers share them.
using MaskKinds = llvm::DenseMap<std::pair<mlir::Value, int>, MaskClass>;
std::pair<mlir::Value, int> kindKey(const Mask &part);

/// Finds what each mask is, unless a layer before has the same. Remarks are `reader`'s.
void classifyMasks(llvm::ArrayRef<Mask> masks, MaskKinds &kinds, bool promiseRuns, mlir::Operation *reader);

/// Attributes, ranges of keys, and a mask of what is neither (null: none).
struct MaskedKeys {
  bool causal = false;
  mlir::IntegerAttr window;
  mlir::FloatAttr density;
  DocumentRanges keys;
  mlir::Value mask;
};
/// What the masks, which are classified, of an attention with scores of `shape` [B, H, Tq, Tk] come to. `showOwn`: no
/// query sees nothing.
MaskedKeys applyMasks(train::Build &b, llvm::ArrayRef<Mask> masks, const MaskKinds &kinds,
                      llvm::ArrayRef<int64_t> shape, mlir::Type element, bool showOwn, mlir::Operation *reader);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_MASKEDKEYS_H
