//===- Fp8Weights.h - weights are quantised where they are held -*- C++ -*-===//
//
// A weight that is a part of a flat unit is quantised in the unit, so that each
// rank casts its shard and gathers bytes. Scales come from maxima of chunks of
// the unit: small, gathered whole, and the same for every shard.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_PRECISION_FP8WEIGHTS_H
#define TESSERA_PASSES_PRECISION_FP8WEIGHTS_H

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Fp8Policy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <array>
#include <optional>

namespace tessera::precision {

/// A value of 8-bit floats, and the inverses of its scales.
struct Quantized {
  mlir::Value value, inverseScale;
};

/// Quantises values in the way that all of a pass's values are.
struct Quantizer {
  bool oneIfNotFinite = false;

  /// The scales of largest absolute values.
  mlir::Value scale(train::Build &b, mlir::Value amax, const train::OperandPolicy &policy) const;
  /// `matrix` in blocks of these sizes that share a scale.
  Quantized quantize(train::Build &b, mlir::Value matrix, llvm::ArrayRef<int64_t> blocks,
                     const train::OperandPolicy &policy) const;
};

/// The weights of a step's flat units.
class Fp8Weights {
public:
  /// `shards`: ranks that a strategy may split units over.
  Fp8Weights(mlir::func::FuncOp func, Quantizer quantizer, int64_t shards)
      : func(func), quantizer(quantizer), shards(shards) {}

  /// Notes that `matrix`, a view of a parameter of a unit, will be read in `blocks`. Returns why it cannot be: its
  /// scales are not those of whole chunks of the unit, or it is no plain view; empty: it can.
  llvm::StringRef request(mlir::Value matrix, llvm::ArrayRef<int64_t> blocks, const train::OperandPolicy &policy);
  /// Quantises what was requested, at the beginning of the step.
  void build();
  /// What was requested, at `b`'s insertion point.
  Quantized read(train::Build &b, mlir::Value matrix, llvm::ArrayRef<int64_t> blocks,
                 const train::OperandPolicy &policy);

private:
  /// A weight as the rows of a matrix in a unit, and which of its blocks share a scale.
  struct Stored {
    mlir::BlockArgument unit;
    int64_t offset, rows, columns;
    bool isTransposed; ///< of the matrix that was asked for
    std::array<int64_t, 2> block;
    train::OperandPolicy policy;

    int64_t end() const { return offset + rows * columns; }
    bool isByColumn() const { return block[0] > 1 && block[1] == 1; }
    bool overlaps(const Stored &other) const { return offset < other.end() && other.offset < end(); }
    bool operator==(const Stored &other) const {
      return unit == other.unit && offset == other.offset && rows == other.rows && columns == other.columns &&
             block == other.block && policy == other.policy;
    }
  };
  /// A unit in 8 bits of one format, each of its elements in one way: all with scales of whole chunks, or all with
  /// those of columns, whole ones or in blocks of as many rows.
  struct Copy {
    /// Whether it can hold `weight`, too.
    bool hasRoomFor(const Stored &weight) const;
    bool isByColumn() const { return weights.front().first.isByColumn(); }

    llvm::SmallVector<std::pair<Stored, mlir::Value>> weights; ///< and the inverses of their scales
    mlir::Value chunks;                                        ///< a row each
  };
  /// Where `matrix` lies in a unit; nothing if it is no plain view of one.
  std::optional<Stored> locate(mlir::Value matrix, llvm::ArrayRef<int64_t> blocks,
                               const train::OperandPolicy &policy) const;
  void build(mlir::OpBuilder &builder, mlir::BlockArgument unit, llvm::MutableArrayRef<Copy> copies);
  void buildByColumn(train::Build &b, mlir::BlockArgument unit, Copy &copy);

  mlir::func::FuncOp func;
  Quantizer quantizer;
  int64_t shards;
  llvm::MapVector<mlir::BlockArgument, llvm::SmallVector<Copy>> units;
};

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FP8WEIGHTS_H
