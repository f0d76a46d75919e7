//===- Passes.td - passes of the schedule phase ------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE
#define TESSERA_PASSES_SCHEDULE

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_SCHEDULE
