//===- Passes.h - passes of the lower phase ------------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_PASSES_H
#define TESSERA_PASSES_LOWER_PASSES_H

#include "compiler/dialect/exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_PASSES_H
