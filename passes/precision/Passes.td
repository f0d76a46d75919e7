//===- Passes.td - passes of the precision phase ------------------------------===//

#ifndef TESSERA_PASSES_PRECISION
#define TESSERA_PASSES_PRECISION

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_PRECISION
