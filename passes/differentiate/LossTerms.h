//===- LossTerms.h - how a loss depends on the batch ------------*- C++ -*-===//
//
// A step may be split into micro-batches if the loss of the whole batch follows
// from those of its parts. This analysis follows the samples through the forward
// pass, by the same factors that sharding knows ops by, and says how each value
// of the whole batch is made from its values for the micro-batches.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_LOSSTERMS_H
#define TESSERA_PASSES_DIFFERENTIATE_LOSSTERMS_H

#include "compiler/dialect/train/Train.h"
#include "compiler/interfaces/ShardingRule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// How a value for the whole batch follows from its values for the micro-batches.
struct Dependence {
  enum class Kind {
    None,    ///< it is the same for each of them
    Samples, ///< they are its parts along `dim`, whose major part counts the samples
    Sum,     ///< it is their sum
    Mean,    ///< it is their mean
    Other,   ///< it does not, because of `op`
  };
  Kind kind = Kind::None;
  int64_t dim = 0;
  mlir::Operation *op = nullptr; ///< of a sum or mean: the op that it was made by
  llvm::StringRef why;           ///< what `op` does that nothing follows
  int64_t blocks = 1;            ///< of samples: how many blocks `dim` consists of, each of which counts all of them
  bool isAverage = false;        ///< of a sum: it was divided by a count or a sum of the whole batch
  /// Of samples: what multiplied them by a number that may be a count of them, or divided them by it.
  mlir::Operation *scaledBy = nullptr;
  bool usesWhole = false; ///< of samples: a sum or mean of the whole batch was combined with them

  static Dependence other(mlir::Operation &op, llvm::StringRef why) { return {Kind::Other, 0, &op, why}; }
  bool isReduced() const { return kind == Kind::Sum || kind == Kind::Mean; }
};

/// What an op does that nothing follows from (Dependence::why), where several kinds of op do it.
inline constexpr llvm::StringLiteral kMixesSamples = "lets the samples of a batch influence each other";
inline constexpr llvm::StringLiteral kNotLinear = "is not linear in what was added up over the batch";
inline constexpr llvm::StringLiteral kCountedSamples =
    "scales samples by a number that may be their count; write a mean or a "
    "plain sum, or compile with another --batch if "
    "the number is not meant so";

/// The ops that `value` is computed by, in order, but for those behind a `stop`.
llvm::SetVector<mlir::Operation *> opsOf(
    mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> stop = [](mlir::Operation *) { return false; });

/// The input or target argument whose elements `value` holds, unchanged but perhaps in another shape; null if there is
/// none.
mlir::BlockArgument findBatchArgument(mlir::Value value, mlir::func::FuncOp func);

class LossTerms {
public:
  /// Changes `op`, from which nothing follows, or what it is computed from. Returns the op to go on from: what comes
  /// before it is as it was. Null: nothing was changed.
  using Mend = llvm::function_ref<mlir::Operation *(mlir::Operation &op, const LossTerms &terms)>;

  /// Follows the batch through the forward pass of a step function.
  explicit LossTerms(mlir::func::FuncOp func, Mend mend = {});

  Dependence of(mlir::Value value) const { return values.lookup(value); }
  /// Terms of sums that are means, or the same for each micro-batch, while others are sums over the batch: the sum is
  /// one over the batch only if these are divided by the number of micro-batches. Only those that `loss` is made of.
  llvm::SmallVector<mlir::OpOperand *> meansAmongSums(mlir::Value loss) const;
  /// Of an op that results are `Other` because of: sums and means over the batch that it reads and that follow from
  /// data alone. They may be computed for the whole batch before it is split.
  llvm::SetVector<mlir::Value> dataOf(mlir::Operation &op) const;
  /// Says at the op in question why the loss, which is `Other`, cannot be split. (A scalar is never `Samples`.)
  llvm::LogicalResult reject(mlir::Value loss) const;

private:
  void visit(mlir::Block &block, Mend mend = {});
  Dependence visit(mlir::Operation &op, unsigned result);
  Dependence ofSamples(mlir::Operation &op, unsigned result);
  std::pair<int64_t, int64_t> findParts(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, int64_t dim,
                                        int64_t blocks, std::optional<int64_t> grows = std::nullopt) const;
  void noteScale(mlir::Operation &op, Dependence &samples) const;
  llvm::SmallVector<int64_t> countsAround(mlir::Value samples) const;
  bool isSameForSamples(mlir::Value value, int64_t dim, int64_t blocks);
  bool findSameForSamples(mlir::Value value, int64_t dim, int64_t blocks);
  bool isSameAlong(mlir::Operation &op, const ShardingRule &factors, int64_t factor, int64_t blocks);
  bool scaledUndoes(mlir::Operation &op, bool isMean) const;
  bool mayUndo(mlir::Operation &op, unsigned reduced, mlir::Operation *reduction) const;
  Dependence ofReduced(mlir::Operation &op);
  Dependence ofSum(mlir::Operation &op, llvm::ArrayRef<bool> linear);
  Dependence ofWhole(mlir::Operation &op);
  bool isData(mlir::Value value) const;

  Dependence ofOwnIndices(mlir::Value indices) const;
  Dependence ofOwnRows(train::GatherRowsOp op) const;
  Dependence ofSlice(train::SliceOp op, const Dependence &samples) const;
  Dependence ofConcat(train::ConcatOp op) const;

  mlir::func::FuncOp func;
  bool knowsSizes = false; ///< which numbers and shapes follow from the size of the batch (kBatchGroups)
  int64_t batchSize = 1;   ///< samples, or groups of consecutive ones that the program keeps together
  llvm::DenseMap<mlir::Value, Dependence> values;
  llvm::SmallVector<mlir::OpOperand *> mixed;
  /// What was made of sums and means of the whole batch, with the ops that these are made by.
  llvm::DenseMap<mlir::Value, mlir::Operation *> wholeSums, wholeMeans;
  llvm::DenseMap<std::tuple<mlir::Value, int64_t, int64_t>, bool> same;
};

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_LOSSTERMS_H
