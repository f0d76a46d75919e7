//===- Passes.td - passes of the differentiate phase ------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE
#define TESSERA_PASSES_DIFFERENTIATE

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_DIFFERENTIATE
