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

#include <optional>
#include <string>

namespace tessera::simplify {

/// Scores at or below this get no probability beside ordinary ones in f32: exp underflows.
constexpr double kHiddenScore = -1e4;

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

/// Where a document begins: where `steps`, [samples or 1, positions], is not 0, or after it; then the last one may be
/// missing. Or where an id differs from the one before, of an input whose equal elements are promised to lie side by
/// side.
struct DocumentStarts {
  mlir::Value steps;
  bool isAfter = false;
  mlir::BlockArgument promised = {}; ///< the input; then `steps` are its elements, perhaps in another shape or type
};
using Documents = llvm::SmallVector<DocumentStarts, 1>;

/// What a mask does, as far as it is known at compile time.
struct MaskClass {
  MaskKind kind = MaskKind::Other;
  /// Queries see keys of their own document only, and of these what the kind says: a document begins where any of these
  /// says so.
  Documents documents;
  int64_t window = 0;
  /// Some key is hidden by a number that is not infinite: where a query sees no key it still counts.
  bool hidesFinitely = false;
  /// Each query sees its own key, the last ones of the keys being those of the queries.
  bool showsOwn = false;
  llvm::SmallVector<int64_t, 0> begin, end; ///< of Ranges, by query
  bool takesPositionsAsSmall = false;       ///< it is this only if no position it compares is beyond 2^30
  std::string remark;                       ///< why a mask that compares ids of documents is Other
};
/// Takes time in proportion to the queries. `promiseRuns`: of an input of ids, take equal ones to lie side by side; the
/// caller sees to it that every batch is checked.
MaskClass classifyMask(const Mask &mask, bool promiseRuns);

/// The keys [begin, end) that a query sees.
struct Shown {
  int64_t begin, end;
  bool operator==(const Shown &other) const { return begin == other.begin && end == other.end; }
};
/// For each row of a mask, the same in all samples and heads. Nothing where it is not known at compile time, or is no
/// range. `hidesFinitely` becomes true where a key is hidden by a number that is not infinite.
std::optional<llvm::SmallVector<Shown, 0>> shownKeys(const Mask &mask, bool &hidesFinitely);
/// What ranges, one for each query, are.
MaskClass classifyRanges(llvm::ArrayRef<Shown> ranges, int64_t keys);

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
