//===- Passes.h - passes of the shard phase ---------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_SHARD_PASSES_H
#define TESSERA_PASSES_SHARD_PASSES_H

#include "compiler/dialect/dist/Dist.h"
#include "passes/OptionTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "passes/shard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"

/// Attaches the sharding rules of all train ops.
void registerShardingRules(mlir::DialectRegistry &registry);

} // namespace tessera

#endif // TESSERA_PASSES_SHARD_PASSES_H
