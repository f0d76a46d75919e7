//===- AttentionPlan.h - attention's operands for our own kernels --------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"
#include "runtime/device/cuda/AttentionLayout.h"

#include <optional>
#include <string>

namespace tessera::cuda {

/// What an instruction says, as artifact.fbs. The gradients are empty in a forward pass.
struct AttentionViews {
  TensorView q, k, v, out, lse;
  std::optional<TensorView> mask, begin, end;
  TensorView dout, dq, dk, dv;
  float scale = 1;
  bool causal = false, isPartial = false;
  int64_t window = 0;
};

/// All but delta. Fails for types that the kernels do not have.
Result<AttentionLayout> attentionLayout(const AttentionViews &views);

/// Why cuDNN's fused attention is not asked for this; empty if it is. `isDeterministic`: a gradient is to be.
std::string cudnnRefusal(const AttentionViews &views, bool isBackward, bool isDeterministic = true);
/// Why our own kernels by tensor cores cannot compute this; empty if they can.
std::string tensorRefusal(const AttentionViews &views, bool isBackward);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONPLAN_H
