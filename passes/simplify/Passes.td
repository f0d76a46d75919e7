//===- Passes.td - passes of the simplify phase ------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY
#define TESSERA_PASSES_SIMPLIFY

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_SIMPLIFY
