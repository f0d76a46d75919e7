//===- PlanAhead.cpp - plans of a program made on several threads --------===//

#include "runtime/device/cuda/PlanAhead.h"

#include "runtime/base/Log.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaAttention.h"
#include "runtime/device/cuda/CudaConv.h"

namespace tessera::cuda {

/// How cuDNN computes them.
static std::string describe(const std::vector<CudnnGraph> &gradients, bool isFast, CudnnPlans &plans) {
  if (!isFast)
    return "deterministic";
  for (const CudnnGraph &graph : gradients)
    if (CudnnPlans::Plan plan = plans.find(graph); plan.status().code() == StatusCode::Unsupported)
      return "fast asked for, deterministic taken: " + plan.status().message();
  return "fast";
}

Status planAhead(const RankContext &context, bool hasFastAttentionGradient, CudnnPlans &plans, int threads) {
  std::vector<CudnnGraph> graphs, gradients;
  auto addAttention = [&](const AttentionOperands &operands) {
    if (!cudnnRefusal(operands, hasFastAttentionGradient).empty())
      return;
    graphs.push_back(attentionGraph(operands, hasFastAttentionGradient));
    if (operands.isBackward)
      gradients.push_back(graphs.back());
  };
  forEachInstruction(context.artifact.package(), [&](const artifact::Instruction &instruction) {
    if (const artifact::Attention *attention = instruction.operation_as_Attention())
      addAttention({*attention, context});
    else if (const artifact::AttentionGrad *gradient = instruction.operation_as_AttentionGrad())
      addAttention({*gradient, context});
    else if (const artifact::Conv *conv = instruction.operation_as_Conv())
      if (Result<CudnnGraph> graph = ConvPlan::graphOf(*conv, context); graph.isOk()) // else its command says why
        graphs.push_back(*std::move(graph));
  });
  TESSERA_RETURN_IF_ERROR(plans.makeAhead(graphs, threads));
  if (!gradients.empty() && context.communicator.rank() == 0)
    log::info("attention gradient: {}", describe(gradients, hasFastAttentionGradient, plans));
  return Status::ok();
}

} // namespace tessera::cuda
