//===- AttentionMask.h - masks of recognised attention ----------*- C++ -*-===//
//
// Masks found on the way from the scores to the softmax, and what becomes of
// them: nothing, causal, a window, a range of keys for each query, or one mask
// operand.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_ATTENTIONMASK_H
#define TESSERA_PASSES_SIMPLIFY_ATTENTIONMASK_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::simplify {

/// One mask of the shape of the scores.
struct Mask {
  mlir::Value value;
  bool isAdded;      ///< added to the scores; else boolean
  bool attendIsTrue; ///< of a boolean mask: true means attend (else true means hide)
  double hidden;     ///< of a boolean mask: the score of what is hidden
};

enum class MaskKind {
  Nothing, ///< all keys are seen
  Causal,  ///< as `causal` of an attention
  Window,  ///< and only the last `window` of these
  Ranges,  ///< a range of keys for each query, the same in all samples and heads
  Other,
};

/// What a mask does, as far as it is known at compile time.
struct MaskClass {
  MaskKind kind = MaskKind::Other;
  int64_t window = 0;
  /// Some key is hidden by a number that is not infinite: where a query sees no key it still counts.
  bool hidesFinitely = false;
  llvm::SmallVector<int64_t, 0> begin, end; ///< of Ranges, by query
};
/// Takes time in proportion to the queries.
MaskClass classifyMask(const Mask &mask);

/// Whether a query that sees no key attends to all of them equally, as softmax does where all scores are one number.
bool hasUniformRows(const Mask &mask);
/// `result` of an attention with the boolean `mask`, where queries that see a key; the mean of the values elsewhere,
/// which takes no part in the gradients of query and key.
mlir::Value withUniformRows(train::Build &b, mlir::Value result, mlir::Value mask, mlir::Value value);

/// The mask as `train.attention` takes it, for scores of `shape` (rank 4): boolean with true = attend, or to be added.
mlir::Value maskOperand(train::Build &b, const Mask &mask, llvm::ArrayRef<int64_t> shape);
/// Both masks at once.
mlir::Value combineMasks(train::Build &b, mlir::Value x, mlir::Value y, mlir::Type scoreType);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_ATTENTIONMASK_H
