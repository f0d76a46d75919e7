//===- MaskTerms.h - the conditions that a mask is made of ------*- C++ -*-===//

#ifndef TESSERA_PASSES_SIMPLIFY_MASKTERMS_H
#define TESSERA_PASSES_SIMPLIFY_MASKTERMS_H

#include "passes/simplify/AttentionMask.h"

namespace tessera::simplify {

/// A value seen as part of a larger one of which it is repeated, reshaped or transposed.
struct View {
  mlir::Value value;
  /// The dimension of the larger one that each dimension is; -1 where its size is 1.
  llvm::SmallVector<int64_t, 4> dims;
};
/// A value as itself.
View viewOf(mlir::Value value);
/// What a view is made of by broadcasts, transpositions, and reshapes that add or remove sizes of 1.
View sourceOf(View view);

/// One condition, or numbers that are added to the scores.
struct Term {
  View view; ///< of the whole mask
  bool isAdded;
  bool attendIsTrue; ///< of a condition
};

/// A mask taken apart: a key is seen where all terms show it.
class MaskTerms {
public:
  explicit MaskTerms(const Mask &mask);

  llvm::SmallVector<Term> terms;
  bool hidesFinitely = false; ///< some key by a number that is not infinite

private:
  void addScores(const View &view, int depth);
  void addCondition(const View &view, bool isTrue, int depth);
};

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_MASKTERMS_H
