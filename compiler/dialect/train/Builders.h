//===- Builders.h - train ops with inferred result types --------*- C++ -*-===//
//
// The vocabulary in which frontends and gradient rules write train IR: each
// function builds one op (or a fixed short idiom) and infers its result type.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_BUILDERS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_BUILDERS_H

#include "compiler/dialect/train/Train.h"
#include "mlir/IR/Builders.h"

namespace tessera::train {

/// Builds ops at `builder`'s insertion point with location `loc`.
class Build {
public:
  Build(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// A tensor of `type` filled with `value` (converted to the element type).
  mlir::Value splat(mlir::RankedTensorType type, double value);
  /// A tensor filled with `value`, of the type of `like`.
  mlir::Value splatLike(mlir::Value like, double value);
  mlir::Value zeros(mlir::RankedTensorType type) { return splat(type, 0.0); }
  mlir::Value constant(mlir::ElementsAttr value);
  mlir::Value iota(mlir::RankedTensorType type, int64_t dim);

  template <typename Op> mlir::Value unary(mlir::Value x) { return Op::create(builder, loc, x.getType(), x); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return AddOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return SubOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return MulOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return DivOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) { return MaxOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value pow(mlir::Value a, mlir::Value b) { return PowOp::create(builder, loc, a.getType(), a, b); }
  mlir::Value neg(mlir::Value a) { return unary<NegOp>(a); }
  mlir::Value exp(mlir::Value a) { return unary<ExpOp>(a); }
  mlir::Value gelu(GeluForm form, mlir::Value x) { return GeluOp::create(builder, loc, x.getType(), form, x); }
  mlir::Value scale(mlir::Value x, double factor) { return mul(x, splatLike(x, factor)); }
  mlir::Value compare(CompareDirection direction, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value predicate, mlir::Value onTrue, mlir::Value onFalse);
  /// `x` itself if it has the element type already.
  mlir::Value convert(mlir::Value x, mlir::Type elementType);

  /// `x` itself if it has the shape already.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  /// Dimension `from` becomes dimension `to`; the others keep their order.
  mlir::Value moveDim(mlir::Value x, int64_t from, int64_t to);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dimensions);
  /// Broadcasts as NumPy does: shapes aligned at the end. `x` itself if it has the shape already.
  mlir::Value broadcastTo(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  /// Broadcasts a reduced value back along the dimensions that the reduction removed.
  mlir::Value broadcastReduced(mlir::Value x, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> reducedDims);
  /// Repeats each element of `x`, a scalar or of sizes that divide those of `shape`, for its block of neighbours.
  mlir::Value repeatBlocks(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> limits,
                    llvm::ArrayRef<int64_t> strides = {});
  mlir::Value pad(mlir::Value x, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                  llvm::ArrayRef<int64_t> interior = {}, double value = 0.0);
  mlir::Value concat(mlir::ValueRange xs, int64_t dim);
  /// `paddingIndex`: a row to which lookups give no gradient.
  mlir::Value gatherRows(mlir::Value table, mlir::Value indices, std::optional<int64_t> paddingIndex = std::nullopt);

  mlir::Value reduce(ReduceKind kind, mlir::Value x, llvm::ArrayRef<int64_t> dimensions);
  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> dimensions) { return reduce(ReduceKind::Sum, x, dimensions); }
  mlir::Value sumAll(mlir::Value x);
  mlir::Value dot(mlir::Value lhs, mlir::Value rhs, llvm::ArrayRef<int64_t> lhsBatch, llvm::ArrayRef<int64_t> rhsBatch,
                  llvm::ArrayRef<int64_t> lhsContract, llvm::ArrayRef<int64_t> rhsContract,
                  mlir::TypeAttr computeType = {}, ScalingAttr scaling = {});

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// Listener of a builder that builds the backward pass: marks every op that it inserts with `train.backward`.
struct MarkBackward : mlir::OpBuilder::Listener {
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override {
    op->setDiscardableAttr(kBackward, mlir::UnitAttr::get(op->getContext()));
  }
};

mlir::RankedTensorType tensorType(mlir::Value value);
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
/// The type that sums of `elementType` are kept in: f32 for narrower floats, else the type itself.
mlir::Type accumulationType(mlir::Type elementType);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_BUILDERS_H
