//===- Passes.td - passes of the optimize phase ------------------------------===//

#ifndef TESSERA_PASSES_OPTIMIZE
#define TESSERA_PASSES_OPTIMIZE

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_OPTIMIZE
