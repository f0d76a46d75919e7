//===- DerivedState.h - copies of state in a narrower type -------------------===//

#ifndef TESSERA_RUNTIME_STEP_DERIVEDSTATE_H
#define TESSERA_RUNTIME_STEP_DERIVEDSTATE_H

#include "runtime/device/Device.h"
#include "runtime/device/RankContext.h"

namespace tessera {

/// Makes the derived tensors of a rank from its state, rounded to nearest, ties to even, as the step's own conversions
/// do. Runs on the calling thread's OpenMP team, and not while a step runs. Errors: of the device's transfers; a finite
/// number that would become infinite.
Status deriveState(const RankContext &context, Device &device);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_DERIVEDSTATE_H
