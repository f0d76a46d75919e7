//===- Functions.h - functions of mathematics -------------------*- C++ -*-===//
//
// On values of floats, in forms that neither overflow nor cancel. Where a function has a corner its slope is PyTorch's:
// one side of a `select` takes all of the gradient (docs/differentiate.md has the table).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_FUNCTIONS_H
#define TESSERA_FRONTENDS_COMMON_FUNCTIONS_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

mlir::Value compareWith(train::Build &b, train::CompareDirection direction, mlir::Value x, double number);
mlir::Value plus(train::Build &b, mlir::Value x, double number);

/// gamma * alpha * (exp(x * inner) - 1) up to 0, whose slope counts there, and gamma * x above.
mlir::Value exponentialUnit(train::Build &b, mlir::Value x, double alpha, double gamma, double inner);

mlir::Value acosh(train::Build &b, mlir::Value x);
mlir::Value asinh(train::Build &b, mlir::Value x);
mlir::Value atanh(train::Build &b, mlir::Value x);
mlir::Value ceil(train::Build &b, mlir::Value x);
mlir::Value cosh(train::Build &b, mlir::Value x);
mlir::Value sinh(train::Build &b, mlir::Value x);
mlir::Value tan(train::Build &b, mlir::Value x);
/// The angle of the point (x, y), from -pi to pi.
mlir::Value atan2(train::Build &b, mlir::Value y, mlir::Value x);
/// The larger magnitude of two, without a gradient: what is divided by it has squares that do not overflow. 1 where
/// both are 0, or one is infinite.
mlir::Value scaleOf(train::Build &b, mlir::Value x, mlir::Value y);
/// sqrt(x^2 + y^2)
mlir::Value hypot(train::Build &b, mlir::Value x, mlir::Value y);
/// log(exp(x) + exp(y))
mlir::Value logAddExp(train::Build &b, mlir::Value x, mlir::Value y);
/// x * log(y), or 0 where x is 0.
mlir::Value xLogY(train::Build &b, mlir::Value x, mlir::Value y);
/// Rounded towards 0.
mlir::Value truncate(train::Build &b, mlir::Value x);
/// A constant function of `x`, whose gradient is zero rather than none: weight decay changes a parameter that only such
/// a function reads, as in PyTorch.
mlir::Value constantOf(train::Build &b, mlir::Value x, double number);
/// -1, 0 or 1, also of integers.
mlir::Value sign(train::Build &b, mlir::Value x);
mlir::Value isNaN(train::Build &b, mlir::Value x);
mlir::Value isInfinite(train::Build &b, mlir::Value x);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_FUNCTIONS_H
