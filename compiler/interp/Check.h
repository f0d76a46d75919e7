//===- Check.h - assertions that the interpreter evaluates ------*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERP_CHECK_H
#define TESSERA_COMPILER_INTERP_CHECK_H

#include "compiler/dialect/train/Train.h"
#include "compiler/interp/Tensor.h"

#include "compiler/interp/CheckDialect.h.inc"
#define GET_OP_CLASSES
#include "compiler/interp/CheckOps.h.inc"

namespace tessera::check {

/// Evaluates a check op on one rank; reports the first element that differs.
llvm::LogicalResult evaluate(mlir::Operation *op, const interp::Tensor &actual, const interp::Tensor &expected,
                             int64_t rank);

/// `|actual - expected| <= atol + rtol * |expected|`; infinities must be equal, a NaN is close to a NaN only.
bool isClose(double actual, double expected, double rtol, double atol);

} // namespace tessera::check

#endif // TESSERA_COMPILER_INTERP_CHECK_H
