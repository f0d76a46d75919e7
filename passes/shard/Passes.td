//===- Passes.td - passes of the shard phase ------------------------------===//

#ifndef TESSERA_PASSES_SHARD
#define TESSERA_PASSES_SHARD

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_SHARD
