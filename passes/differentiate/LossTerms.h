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

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
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
  mlir::Operation *op = nullptr;
  llvm::StringRef why;    ///< what `op` does that nothing follows
  int64_t blocks = 1;     ///< of samples: how many blocks `dim` consists of, each of which counts all of them
  bool isAverage = false; ///< of a sum: it was divided by a count or a sum of the whole batch

  bool isReduced() const { return kind == Kind::Sum || kind == Kind::Mean; }
};

/// The ops that `value` is computed by, in order, but for those behind a `stop`.
llvm::SetVector<mlir::Operation *> opsOf(
    mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> stop = [](mlir::Operation *) { return false; });

/// The input or target argument whose elements `value` holds, unchanged but perhaps in another shape; null if there is
/// none.
mlir::BlockArgument findBatchArgument(mlir::Value value, mlir::func::FuncOp func);

class LossTerms {
public:
  /// Follows the batch through the forward pass of a step function.
  explicit LossTerms(mlir::func::FuncOp func);

  Dependence of(mlir::Value value) const { return values.lookup(value); }
  /// Terms of sums that are means, or the same for each micro-batch, while others are sums over the batch: the sum is
  /// one over the batch only if these are divided by the number of micro-batches. Only those that `loss` is made of.
  llvm::SmallVector<mlir::OpOperand *> meansAmongSums(mlir::Value loss) const;
  /// Why the loss is `Other`: sums and means over the batch at that op which follow from data alone. They may be
  /// computed for the whole batch before it is split.
  llvm::SetVector<mlir::Value> dataOf(const Dependence &other) const;
  /// Says at the op in question why the loss, which is `Other`, cannot be split. (A scalar is never `Samples`.)
  llvm::LogicalResult reject(mlir::Value loss) const;

private:
  void visit(mlir::Block &block);
  Dependence visit(mlir::Operation &op, unsigned result);
  Dependence ofSamples(mlir::Operation &op, unsigned result) const;
  Dependence ofReshape(mlir::Operation &op, const Dependence &samples) const;
  Dependence ofReduced(mlir::Operation &op);
  Dependence ofSum(mlir::Operation &op, llvm::ArrayRef<bool> linear);
  Dependence ofWhole(mlir::Operation &op);
  bool isData(mlir::Value value) const;

  mlir::func::FuncOp func;
  int64_t batchSize = 1;
  llvm::DenseMap<mlir::Value, Dependence> values;
  llvm::SmallVector<mlir::OpOperand *> mixed;
  llvm::DenseSet<mlir::Value> wholeSums, wholeMeans; ///< what was made of sums and means of the whole batch
};

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_LOSSTERMS_H
