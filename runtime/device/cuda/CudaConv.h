//===- CudaConv.h - 2-D convolution and its gradients by cuDNN -----------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDACONV_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDACONV_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/CudnnPlans.h"
#include "runtime/device/cuda/Workspace.h"

namespace tessera::cuda {

/// Convolutions in the layouts of their operands. cuDNN takes groups from the channels of x and w.
class ConvPlan {
public:
  /// What the library is asked for. Fails for types that it does not have.
  static Result<CudnnGraph> graphOf(const artifact::Conv &conv, const RankContext &context);
  static Result<std::unique_ptr<ConvPlan>> make(const artifact::Conv &conv, const RankContext &context,
                                                CudnnPlans &plans, Workspace &workspace);
  Status start(const Iteration &iteration, CUstream stream) {
    return plan->start({x.at(iteration), w.at(iteration), y.at(iteration)}, workspace.data(), stream);
  }

private:
  explicit ConvPlan(const Workspace &workspace) : workspace(workspace) {}

  Operand x, w, y;
  std::shared_ptr<CudnnPlan> plan;
  const Workspace &workspace;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDACONV_H
