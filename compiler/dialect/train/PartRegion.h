//===- PartRegion.h - what can be computed for a part at a time -*- C++ -*-===//
//
// Readers want parts of values, such as some of all heads. What is computed for these readers alone can be computed for
// a part at a time, down to slices of weights, by the sharding rules of the ops.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_PARTREGION_H
#define TESSERA_COMPILER_DIALECT_TRAIN_PARTREGION_H

#include "compiler/dialect/train/Train.h"
#include "compiler/interfaces/ShardingRule.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::train {

/// Where parts of a value lie: dimension `dim` is `outer`, times the elements that parts are ranges of, times `inner`.
struct PartOf {
  int64_t dim, outer, inner;
  bool operator==(const PartOf &other) const {
    return dim == other.dim && outer == other.outer && inner == other.inner;
  }
};

class PartRegion {
public:
  /// Parts are ranges of `count` elements.
  explicit PartRegion(int64_t count) : count(count) {}

  /// A reader that wants parts of what it reads.
  void addReader(mlir::OpOperand &use, PartOf place);
  /// Ends the region once all readers are known: what something else reads as well is left out.
  void close();

  /// The ops of the region in the order of their block. Nothing else reads them: they are to be erased with the
  /// readers.
  mlir::ArrayRef<mlir::Operation *> getOps() const { return ops.getArrayRef(); }
  /// The part of a reader's operand, as of addReader.
  std::optional<PartOf> placeOf(mlir::OpOperand &use) const;
  /// Results of ops, of which parts are read, that are computed whole, and why; in the order in which they were found.
  void forEachWhole(llvm::function_ref<void(mlir::Value whole, mlir::StringRef why)> report) const;

private:
  friend class PartBuilder;
  struct Cut {
    ShardingRule rule;
    int64_t factor = -1, outer = 1, inner = 1; ///< parts lie in the factor as in a dimension
  };

  void add(mlir::Value value, PartOf place);
  bool cut(mlir::Operation *op, mlir::Value value, PartOf place);
  void drop(mlir::Operation *op, mlir::StringRef why);
  bool readsPart(mlir::OpOperand &use) const;
  /// Of an op of the region: where parts of an operand or result lie; nothing if it has none.
  std::optional<PartOf> placeIn(const Cut &cut, const TensorFactors &dims) const;

  int64_t count;
  llvm::MapVector<mlir::OpOperand *, PartOf> readers;
  llvm::DenseMap<mlir::Value, PartOf> known;
  llvm::DenseMap<mlir::Operation *, Cut> cuts;
  llvm::MapVector<mlir::Value, mlir::StringRef> reasons;
  llvm::SetVector<mlir::Operation *> ops;
};

/// Builds one part of what a region's readers want.
class PartBuilder {
public:
  /// Elements [first, first + taken).
  PartBuilder(const PartRegion &region, mlir::OpBuilder &builder, int64_t first, int64_t taken)
      : region(region), builder(builder), first(first), taken(taken) {}

  mlir::FailureOr<mlir::Value> get(mlir::Value whole, PartOf place);
  mlir::RankedTensorType typeOf(mlir::Value whole, PartOf place) const;

private:
  mlir::Value slice(mlir::Value whole, PartOf place);

  const PartRegion &region;
  mlir::OpBuilder &builder;
  int64_t first, taken;
  llvm::DenseMap<mlir::Value, mlir::Value> made;
};

/// The value that `parts`, one behind the other, are all parts of; of `shape`.
mlir::Value joinParts(mlir::OpBuilder &builder, mlir::ArrayRef<mlir::Value> parts, PartOf place,
                      mlir::ArrayRef<int64_t> shape);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_PARTREGION_H
