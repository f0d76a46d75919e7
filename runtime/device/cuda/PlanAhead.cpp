//===- PlanAhead.cpp - plans of a program made on several threads --------===//

#include "runtime/device/cuda/PlanAhead.h"

#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaAttention.h"
#include "runtime/device/cuda/CudaConv.h"

namespace tessera::cuda {

Status planAhead(const RankContext &context, bool hasFastAttentionGradient, CudnnPlans &plans, int threads) {
  std::vector<CudnnGraph> graphs;
  auto addAttention = [&](const AttentionOperands &operands) {
    if (cudnnRefusal(operands).empty())
      graphs.push_back(attentionGraph(operands, hasFastAttentionGradient));
  };
  forEachInstruction(context.artifact.program(), [&](const artifact::Instruction &instruction) {
    if (const artifact::Attention *attention = instruction.operation_as_Attention())
      addAttention({*attention, context});
    else if (const artifact::AttentionGrad *gradient = instruction.operation_as_AttentionGrad())
      addAttention({*gradient, context});
    else if (const artifact::Conv *conv = instruction.operation_as_Conv())
      if (Result<CudnnGraph> graph = ConvPlan::graphOf(*conv, context); graph.isOk()) // else its command says why
        graphs.push_back(*std::move(graph));
  });
  return plans.makeAhead(graphs, threads);
}

} // namespace tessera::cuda
