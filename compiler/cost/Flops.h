//===- Flops.h - floating-point operations of a step ------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_COST_FLOPS_H
#define TESSERA_COMPILER_COST_FLOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace tessera {

/// The part of all pairs of a query and one of `keys` keys that attention computes: half of them if it is causal, those
/// in its window, or what `density` says.
double seenPart(bool causal, std::optional<int64_t> window, std::optional<llvm::APFloat> density, double keys);

/// Floating-point operations of an op: a multiply-add of a product, a convolution or attention counts as two, pairs
/// that positions hide do not count, and the scores that attention's backward pass computes again do not count; 0 for
/// the rest.
double opFlops(mlir::Operation *op);

/// Floating-point operations of one execution of the function on global shapes: products, convolutions and
/// attention, times the micro-batches around them. Elementwise work and what the backward pass repeats of the forward
/// pass are left out: what MFU counts (PaLM, arXiv 2204.02311, appendix B; causal attention by half, as in llm.c).
double stepFlops(mlir::func::FuncOp step);

} // namespace tessera

#endif // TESSERA_COMPILER_COST_FLOPS_H
