//===- Finite.h - values that stay finite when they are rounded -*- C++ -*-===//
//
// Scores are hidden by the smallest number of f32, which bf16 would round to an
// infinity; a row of which all is hidden would then be NaN after a softmax.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_PRECISION_FINITE_H
#define TESSERA_PASSES_PRECISION_FINITE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::precision {

/// Follows numbers that are finite in a wide type and infinite when rounded to bf16 through a function: such constants,
/// and floats among inputs, frozen parameters and buffers, of which the values are not known, once an elementwise op
/// has combined them with others (a mask that is added to scores). They are followed through what moves, chooses, adds
/// and scales elements.
class LargeValues {
public:
  explicit LargeValues(mlir::func::FuncOp func);

  bool contains(mlir::Value value) const { return known.lookup(value) == Size::Large; }

private:
  enum class Size { Ordinary, Given, Large };
  void visit(mlir::Block &block);
  Size sizeOf(mlir::Operation *op) const;

  llvm::DenseMap<mlir::Value, Size> known;
};

/// `value`, f32 and of those that are large, rounded to bf16: what is finite becomes at most the largest finite number,
/// infinities and NaN stay so.
mlir::Value roundLarge(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// `number` as bf16 can hold it, by the same rule.
double heldByBf16(double number);

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FINITE_H
