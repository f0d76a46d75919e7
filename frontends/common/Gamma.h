//===- Gamma.h - the gamma function's logarithm -----------------*- C++ -*-===//
//
// Of tensors of f64, which callers convert to: computed there, results are right to less than one unit in the last
// place of f32 over its whole range, beside the zeros too. In the last places of f64 they are not.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_GAMMA_H
#define TESSERA_FRONTENDS_COMMON_GAMMA_H

#include "compiler/dialect/train/Builders.h"

namespace tessera::frontend {

/// log |gamma(x)|; its slope is digamma(x).
mlir::Value logGamma(train::Build &b, mlir::Value x);
/// The slope of logGamma.
mlir::Value digamma(train::Build &b, mlir::Value x);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_GAMMA_H
