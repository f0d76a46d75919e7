//===- DecomposeProducts.h - library calls as libraries take them -*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_DECOMPOSEPRODUCTS_H
#define TESSERA_PASSES_LOWER_DECOMPOSEPRODUCTS_H

#include "mlir/IR/PatternMatch.h"

namespace tessera {

/// Matrix products, convolutions and attention that no library call computes as they are: products of f64 and of
/// integers, and of nothing, become sums; f16, and bf16 where a library lacks it, is computed in f32; operands whose
/// dimensions do not merge into those of a matrix are transposed.
void addProductDecomposition(mlir::RewritePatternSet &patterns);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_DECOMPOSEPRODUCTS_H
