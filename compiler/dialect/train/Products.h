//===- Products.h - what products are computed in ---------------*- C++ -*-===//
//
// The list of a model's products that people read.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_PRODUCTS_H
#define TESSERA_COMPILER_DIALECT_TRAIN_PRODUCTS_H

#include "compiler/dialect/train/Train.h"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/train/TrainProducts.h.inc"

namespace tessera::train {

/// On the module: array of #train.product.
inline constexpr llvm::StringLiteral kProducts = "train.products";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_PRODUCTS_H
