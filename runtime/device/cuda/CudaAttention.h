//===- CudaAttention.h - attention on a GPU ------------------------------===//
//
// By cuDNN where it computes the same thing in the same order every time (GpuAttention.h says where), else by our own
// kernels on tensor cores, else by those that take all that the artifact can say.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/AttentionPlan.h"
#include "runtime/device/cuda/CudaAttentionKernels.h"
#include "runtime/device/cuda/CudnnPlans.h"
#include "runtime/device/cuda/Workspace.h"

#include <optional>

namespace tessera::cuda {

/// The operands of an instruction. The gradients are empty in a forward pass.
struct AttentionOperands {
  AttentionOperands(const artifact::Attention &table, const RankContext &context);
  AttentionOperands(const artifact::AttentionGrad &table, const RankContext &context);

  Operand q, k, v, out, lse;
  std::optional<Operand> mask, begin, end;
  Operand dout, dq, dk, dv;
  std::optional<Operand> delta; ///< the artifact's place for the row sums of dout * out
  float scale = 1;
  bool causal = false, isBackward = false, isPartial = false;
  int64_t window = 0;

  AttentionViews viewsAt(const Iteration &iteration) const;
  /// Whether their rows begin at multiples of 16 bytes in every iteration.
  bool isAligned() const;
};

class AttentionPlan {
public:
  virtual ~AttentionPlan() = default;
  virtual Status start(const Iteration &iteration, CUstream stream) = 0;
};

/// Why cuDNN's fused attention is not asked for this; empty if it is.
std::string cudnnRefusal(const AttentionOperands &operands, bool hasFastGradient);
/// What it is asked for then.
CudnnGraph attentionGraph(const AttentionOperands &operands, bool hasFastGradient);
/// Unsupported where it has no such kernel.
Result<std::unique_ptr<AttentionPlan>> planByCudnn(const AttentionOperands &operands, bool hasFastGradient,
                                                   CudnnPlans &plans, Workspace &workspace);

/// Makes the plans of one rank; they share one workspace, so that they run on one stream.
class AttentionPlanner {
public:
  bool hasFastGradient = false; ///< GpuOptions::hasFastAttentionGradient

  Result<std::unique_ptr<AttentionPlan>> plan(const AttentionOperands &operands, CudnnPlans &plans,
                                              Workspace &workspace, std::string_view location);

private:
  Result<std::unique_ptr<AttentionPlan>> planKernels(const AttentionOperands &operands, AttentionUnits units,
                                                     Workspace &workspace);

  AttentionKernels kernels;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H
