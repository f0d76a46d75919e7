//===- GpuAttentions.h - attention as a GPU's kernels see it ----*- C++ -*-===//

#ifndef TESSERA_COMPILER_COST_GPUATTENTIONS_H
#define TESSERA_COMPILER_COST_GPUATTENTIONS_H

#include "runtime/artifact/GpuAttention.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace tessera::cost {

/// What the runtime chooses kernels by, of an attention or its gradient of the train or exec dialect; none of others.
std::optional<GpuAttention> gpuAttention(mlir::Operation *op);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_GPUATTENTIONS_H
