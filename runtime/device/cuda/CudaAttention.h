//===- CudaAttention.h - attention on a GPU ------------------------------===//
//
// By cuDNN where it computes the same thing in the same order every time (AttentionPlan.h says where), else by our own
// kernels, which take all that the artifact can say.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/AttentionPlan.h"
#include "runtime/device/cuda/Cudnn.h"
#include "runtime/device/cuda/Workspace.h"

#include <map>
#include <optional>

namespace tessera::cuda {

/// The operands of an instruction. The gradients are empty in a forward pass.
struct AttentionOperands {
  Operand q, k, v, out, lse;
  std::optional<Operand> mask;
  Operand dout, dq, dk, dv;
  std::optional<Operand> delta; ///< the artifact's place for the row sums of dout * out
  float scale = 1;
  bool causal = false, isBackward = false;

  AttentionViews viewsAt(int64_t iteration, TensorView &maskView) const;
};

class AttentionPlan {
public:
  virtual ~AttentionPlan() = default;
  virtual Status start(int64_t iteration, CUstream stream) = 0;
};

/// The fused attention of cuDNN. Unsupported where it has no kernel that gives the same bits every time.
Result<std::unique_ptr<AttentionPlan>> planByCudnn(const AttentionOperands &operands, Cudnn &cudnn,
                                                   Workspace &workspace);

/// Makes the plans of one rank; they share one workspace, so that they run on one stream.
class AttentionPlanner {
public:
  ~AttentionPlanner();
  Result<std::unique_ptr<AttentionPlan>> plan(const AttentionOperands &operands, Cudnn &cudnn, Workspace &workspace,
                                              std::string_view location);

private:
  Status load();
  Result<std::unique_ptr<AttentionPlan>> planKernels(const AttentionOperands &operands, Workspace &workspace);

  CUlibrary library = nullptr;
  std::map<std::string, CUfunction> functions;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAATTENTION_H
