//===- DimRoles.h - what the dimensions of values count ---------*- C++ -*-===//
//
// Inputs say which of their dimensions count samples and positions. The other
// values' dimensions count what those of their operands do, by the factors that
// sharding knows ops by.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_DIMROLES_H
#define TESSERA_PASSES_DIFFERENTIATE_DIMROLES_H

#include "compiler/dialect/train/Dims.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera {

class DimRoles {
public:
  /// Follows the dimensions of inputs through the function.
  explicit DimRoles(mlir::func::FuncOp func);

  /// One role for each dimension of `value`; a dimension made of several, or of which operands disagree, has none.
  llvm::SmallVector<train::DimRole> of(mlir::Value value) const;

private:
  /// A dimension as the product of what was merged into it, major first.
  struct Part {
    int64_t size;
    train::DimRole role;
  };
  using Parts = llvm::SmallVector<Part, 2>;

  void visit(mlir::Block &block);
  void visit(mlir::Operation &op);

  llvm::DenseMap<mlir::Value, llvm::SmallVector<Parts>> values;
};

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_DIMROLES_H
