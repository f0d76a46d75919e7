//===- Passes.h - passes of the precision phase ------------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_PRECISION_PASSES_H
#define TESSERA_PASSES_PRECISION_PASSES_H

#include "compiler/dialect/dist/Dist.h"
#include "passes/OptionTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "passes/precision/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/precision/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_PRECISION_PASSES_H
