//===- PlanAhead.h - plans of a program made on several threads ----------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_PLANAHEAD_H
#define TESSERA_RUNTIME_DEVICE_CUDA_PLANAHEAD_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/CudnnPlans.h"

namespace tessera::cuda {

/// Makes what the attention and the convolutions of a program need of cuDNN, before their commands ask for it one by
/// one. `threads`: so many at the most.
Status planAhead(const RankContext &context, bool hasFastAttentionGradient, CudnnPlans &plans, int threads);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_PLANAHEAD_H
