//===- Passes.h - passes of the shard phase ------------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_SHARD_PASSES_H
#define TESSERA_PASSES_SHARD_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#include "passes/shard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_SHARD_PASSES_H
