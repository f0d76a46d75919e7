//===- Passes.td - passes of the lower phase ------------------------------===//

#ifndef TESSERA_PASSES_LOWER
#define TESSERA_PASSES_LOWER

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_LOWER
