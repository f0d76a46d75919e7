//===- EpilogueProduct.h - a product whose epilogue is free -----*- C++ -*-===//
//
// What a library does while it writes a product, as `fuse-epilogues` sees it: the product, and what can become part of
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_EPILOGUEPRODUCT_H
#define TESSERA_PASSES_LOWER_EPILOGUEPRODUCT_H

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Train.h"
#include "passes/lower/FusionRole.h"

namespace tessera::epilogue {

/// A product without a batch, of floats, that has no epilogue yet.
struct Product {
  explicit Product(mlir::Operation *op);

  /// Dimensions of the result that come from the right: its columns.
  llvm::ArrayRef<int64_t> columnShape() const;
  int64_t columns() const;
  mlir::Type elementType() const;
  /// Whether a pre-activation of the product's shape can be read and written: cuBLASLt wants rows that start at a
  /// multiple of 8 elements.
  bool hasAlignedColumns() const;
  /// Type of a bias gradient: the dimensions of the left's rows, or of the columns.
  mlir::Type vectorType(bool isRows) const;

  /// `before`: where the product goes, unless where it is.
  exec::EpilogueProductOp build(exec::Epilogue epilogue, mlir::Value input, mlir::Type output,
                                mlir::Operation *before = nullptr) const;

  mlir::Operation *op;
  mlir::Value result, lhs, rhs, accumulator;
  llvm::ArrayRef<int64_t> lhsContract, rhsContract;
  /// Whether it is what this struct is of.
  bool isPlain = false;
};

mlir::Type elementOf(mlir::Value value);
int64_t elementsOf(llvm::ArrayRef<int64_t> shape);

/// What a value is of without conversions between floating point types and barriers.
mlir::Value withoutConversions(mlir::Value value);
/// The ops that read a value, as it is or converted to another floating point type.
llvm::SmallVector<mlir::Operation *> readersOf(mlir::Value value);
/// `value` in this element type: itself, or a conversion of it that is there already; null if there is none.
mlir::Value inType(mlir::Value value, mlir::Type elementType);

/// Makes a bias that the product's only reader adds, and GELU of the sum, part of the product; false if there is
/// neither. With `fusesGelu` false of biases alone. What nearly could be is told by a remark.
bool fuseForward(const Product &product, const FusionRoles &roles, bool fusesGelu);
/// Makes `product * gelu'(z)`, where a product has written z, and its sum over rows part of the product.
bool fuseGeluGrad(const Product &product);
/// Makes the sum of one factor over the dimensions that the product contracts (a bias gradient) part of the product.
void fuseBiasGrad(const Product &product);

} // namespace tessera::epilogue

#endif // TESSERA_PASSES_LOWER_EPILOGUEPRODUCT_H
