//===- LibraryLayouts.h - the layouts that instructions can use -*- C++ -*-===//
//
// What the runtime's library calls read and write in place, and matrix products brought into the form of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_LIBRARYLAYOUTS_H
#define TESSERA_PASSES_LOWER_LIBRARYLAYOUTS_H

#include "compiler/dialect/train/Train.h"
#include "passes/lower/Layout.h"

namespace tessera::lower {

/// Which of a contraction's three tensors.
enum class GemmSide { Lhs, Rhs, Result };

/// A matrix product: train.dot_general, exec.add_product, exec.epilogue_product or exec.scaled_product.
struct Contraction {
  mlir::OpOperand *lhs, *rhs;
  mlir::OpOperand *accumulator; ///< null if the product is not added to anything
  llvm::ArrayRef<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  mlir::OpOperand *input = nullptr; ///< that of the epilogue

  static std::optional<Contraction> of(mlir::Operation *op);
  /// The side that an operand is; the accumulator's is that of the result.
  GemmSide sideOf(mlir::OpOperand &use) const {
    return &use == lhs ? GemmSide::Lhs : &use == rhs ? GemmSide::Rhs : GemmSide::Result;
  }
};

/// The tensor as [batch…, rows, columns] of a matrix product (lhs: m, k; rhs: k, n; result: m, n); nothing if its
/// dimensions do not merge or neither innermost stride is 1.
std::optional<Layout> gemmLayout(const Contraction &op, GemmSide side, const Layout &layout);

/// True if the user reads this operand in this layout as it is.
bool acceptsLayout(mlir::OpOperand &use, const Layout &layout);

/// True if the op that defines the value can write it in this layout.
bool producesLayout(mlir::OpResult result, const Layout &layout);

/// The result that may be written where this operand lies, if the operand dies there: of a fusion that says so, or of a
/// product that adds to it.
mlir::OpResult overwrittenBy(mlir::OpOperand &use);

/// True for reshape, transpose, slice, stop_gradient and slice_local: a value that may be a view of its operand.
bool isLayoutOp(mlir::Operation *op);
/// True if such an op keeps all elements.
bool isBijective(mlir::Operation *op);
/// The layout of a layout op's result in terms of its operand's; nothing if it is no view.
std::optional<Layout> layoutOfResult(mlir::Operation *op, const Layout &operand);
/// The layout of a bijective layout op's operand in terms of its result's.
std::optional<Layout> layoutOfOperand(mlir::Operation *op, const Layout &result);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_LIBRARYLAYOUTS_H
