//===- Flops.h - floating-point operations of a step ------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_COST_FLOPS_H
#define TESSERA_COMPILER_COST_FLOPS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Floating-point operations of an op: a multiply-add of a product, a convolution or attention counts as two; 0 for the
/// rest.
double opFlops(mlir::Operation *op);

/// Floating-point operations of one execution of the module's functions on global shapes: products, convolutions and
/// attention (a multiply-add counts as two; a causal mask halves attention; attention's recomputation in backward
/// counts), times the micro-batches around them. Elementwise work and what the backward pass repeats of the forward
/// pass are left out, as is usual for MFU.
double stepFlops(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_COMPILER_COST_FLOPS_H
