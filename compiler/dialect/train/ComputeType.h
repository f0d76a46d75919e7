//===- ComputeType.h - what is computed in f32 ------------------*- C++ -*-===//
//
// Where a model is computed in a narrower type, parameters may be named that are
// not: what they are read in is said on them, and on the products that read them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_COMPUTETYPE_H
#define TESSERA_COMPILER_DIALECT_TRAIN_COMPUTETYPE_H

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::train {

/// On an f32 parameter's argument, then on its unit's: the type that the model reads it in; without it, the precision
/// phase decides. The products that read it say so themselves (`compute_type`, `scaling`).
inline constexpr llvm::StringLiteral kComputeType = "train.compute_type";

/// On a frozen parameter's argument, then on its unit's: the wider type it has in the model, so that weights are
/// rounded.
inline constexpr llvm::StringLiteral kModelType = "train.model_type";

/// Whether the argument is read in f32 whatever the precision phase does with others.
bool isComputedInF32(mlir::func::FuncOp func, unsigned index);
/// Whether products read it in 8 bits; each casts it for itself.
bool isComputedInFloat8(mlir::func::FuncOp func, unsigned index);
/// Whether the product's operands stay f32.
bool isComputedInF32(DotGeneralOp product);

/// The values of a function that a narrower type must not touch, since they follow from parameters that are computed in
/// f32 and from neutral values alone: f32 numbers, and what is compared, counted or sorted of them.
class F32Values {
public:
  enum class Products {
    OfParameters, ///< a product counts if all that it reads does: a weight that is made of two
    OfData, ///< those that are computed in f32 count whatever they read, as activations do then, whatever chooses among
            ///< them; backward only what is computed again
  };
  explicit F32Values(mlir::func::FuncOp func, Products products = Products::OfParameters);

  bool contains(mlir::Value value) const { return exact.contains(value); }
  /// Neither a parameter nor a float input has a say in it: constants, counters, random numbers, integers of the batch.
  bool isNeutral(mlir::Value value) const;
  bool empty() const { return exact.empty(); }

private:
  void visit(mlir::Operation *op);

  Products products;
  llvm::DenseSet<mlir::Value> exact, neutral;
};

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_COMPUTETYPE_H
