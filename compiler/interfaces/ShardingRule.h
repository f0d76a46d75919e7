//===- ShardingRule.h - einsum factors of an op's dimensions ----*- C++ -*-===//
//
// How an op may be sharded, without naming axes: each dimension of each operand
// and result is a product of factors. A factor that is sharded on some mesh axes
// is sharded on them in every tensor that has it. Shardy's OpShardingRule.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERFACES_SHARDINGRULE_H
#define TESSERA_COMPILER_INTERFACES_SHARDINGRULE_H

#include "compiler/dialect/dist/DimPiece.h"
#include "compiler/dialect/dist/ReductionKind.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera {

enum class FactorKind {
  PassThrough,     ///< a result has it, or reduces it
  Internal,        ///< a partition's own collectives do away with it: results are whole without it
  NeedReplication, ///< must not be sharded (a sorted dimension, a sliced dimension)
};

struct Factor {
  int64_t size;
  FactorKind kind;
  /// The op knows the place of an element along it (iota): a part is one range, never a range of each of several
  /// blocks.
  bool isOrdered = false;
  /// The op knows which elements a part has as long as it is one range, or all that one zigzag or one order
  /// deals.
  bool isRun = false;
};

/// Factors of one tensor: for each dimension the factors it is the product of, major first.
/// An empty list is a dimension of size 1 or one that is never sharded.
using TensorFactors = llvm::SmallVector<llvm::SmallVector<int64_t, 1>, 4>;

/// A result lacks the factor since it is reduced: it becomes unreduced over the factor's axes.
struct Reduction {
  int64_t factor;
  dist::ReductionKind kind;
};

struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<TensorFactors> operands;
  llvm::SmallVector<TensorFactors> results;
  /// What each result reduces; one list per result.
  llvm::SmallVector<llvm::SmallVector<Reduction, 1>> reductions;

  /// Which operands a partial sum may pass through. `linear[i]`: the op is linear in operand i while the others are
  /// fixed (mul, dot_general, neg, reshape). Empty: none.
  llvm::SmallVector<bool> linear;
  /// The op is linear in all its operands together (add, concat, select on a replicated predicate): a result may stay
  /// unreduced only if every linear operand is unreduced over the same axes.
  bool jointlyLinear = false;

  /// Which operands a partial maximum (minimum) may pass through: the op applied to the maximum is the maximum of the
  /// op applied to the parts, and that in all of these operands together. Operands that owe none are whole: a value is
  /// its own partial maximum. Empty: none.
  llvm::SmallVector<bool> maxima, minima;

  /// Adds a factor and returns its number.
  int64_t addFactor(int64_t size, FactorKind kind = FactorKind::PassThrough);
  /// `linear`, `maxima` or `minima`.
  llvm::ArrayRef<bool> passes(dist::ReductionKind kind) const;
  /// How result `result` reduces `factor`, if it does.
  std::optional<dist::ReductionKind> reductionOf(unsigned result, int64_t factor) const;
  /// Each factor of an operand is had or reduced by every result, or never split: no result differs between ranks
  /// unnoticed.
  bool isComplete() const;
};

/// What localisation tells an op that needs its place in the global tensor.
class LocalizeContext {
public:
  virtual ~LocalizeContext() = default;
  /// Global index of the first local element of result `result` along `dim`, of which each rank has one range, as
  /// tensor<i64>; null if it is always 0.
  virtual mlir::Value globalOffset(mlir::OpBuilder &builder, unsigned result, int64_t dim) = 0;
  /// Global indices of the local elements along `dim`, as tensor<n x i64>; null if the dimension is whole.
  virtual mlir::Value globalIndices(mlir::OpBuilder &builder, unsigned result, int64_t dim) = 0;
  /// Whether each rank has early and late parts of the dimension, so that all have the same work in causal attention.
  virtual bool isBalanced(unsigned result, int64_t dim) = 0;
  /// The same in pieces; nothing where they do not come in such (CollectiveBuilder::pieces).
  virtual std::optional<llvm::SmallVector<dist::DimPiece>> pieces(mlir::OpBuilder &builder, unsigned result,
                                                                  int64_t dim) = 0;
};

/// Clones `op` with local operands and result types; attributes stay as they are.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> cloneWithLocalTypes(mlir::Operation *op, mlir::OpBuilder &builder,
                                                                    mlir::ValueRange operands,
                                                                    mlir::TypeRange resultTypes);

} // namespace tessera

#endif // TESSERA_COMPILER_INTERFACES_SHARDINGRULE_H
