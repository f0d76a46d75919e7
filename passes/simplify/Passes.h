//===- Passes.h - passes of the simplify phase ------------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_SIMPLIFY_PASSES_H
#define TESSERA_PASSES_SIMPLIFY_PASSES_H

#include "passes/OptionTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "passes/simplify/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/simplify/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_SIMPLIFY_PASSES_H
