//===- MathFunctions.h - f32 functions as arithmetic ------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_MATHFUNCTIONS_H
#define TESSERA_PASSES_LOWER_CODEGEN_MATHFUNCTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Patterns that turn math.{exp,expm1,log,log1p,tanh,erf} of f32 into arithmetic.
void addMathFunctions(mlir::RewritePatternSet &patterns);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_MATHFUNCTIONS_H
