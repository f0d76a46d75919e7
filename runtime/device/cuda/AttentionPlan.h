//===- AttentionPlan.h - attention's operands for our own kernels --------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"
#include "runtime/device/cuda/AttentionLayout.h"

#include <string>

namespace tessera::cuda {

/// The gradients are empty in a forward pass.
struct AttentionViews {
  TensorView q, k, v, out, lse;
  const TensorView *mask = nullptr;
  TensorView dout, dq, dk, dv;
};

/// All but delta. Fails for types that the kernels do not have.
Result<AttentionLayout> attentionLayout(const AttentionViews &views, float scale, bool causal);

/// Why cuDNN's fused attention is not asked for this; empty if it is.
std::string cudnnRefusal(const AttentionViews &views, bool causal, bool isBackward);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H
