//===- CudaConv.cpp - 2-D convolution and its gradients by cuDNN ---------===//

#include "runtime/device/cuda/CudaConv.h"

namespace tessera::cuda {

using artifact::DataType;

Result<CudnnGraph> ConvPlan::graphOf(const artifact::Conv &conv, const RankContext &context) {
  const Operand x(context, conv.x()), w(context, conv.w()), y(context, conv.y());
  const DataType dtype = x.view.dtype;
  if (dtype != DataType::F32 && dtype != DataType::BF16 && dtype != DataType::F16)
    return TESSERA_ERROR(Unsupported, std::string("a convolution of type ") + artifact::EnumNameDataType(dtype));
  for (const Operand *operand : {&w, &y})
    if (operand->view.dtype != dtype)
      return TESSERA_ERROR(Unsupported, std::string("a convolution of types ") + artifact::EnumNameDataType(dtype) +
                                            " and " + artifact::EnumNameDataType(operand->view.dtype));
  CudnnGraph graph;
  graph.isF32 = dtype == DataType::F32;
  auto describe = [&](const Operand &operand) {
    return graph.operand(cudnnTensor(operand.view, operand.strideBits()));
  };
  CudnnGraph::Convolution operation;
  operation.kind = conv.kind();
  operation.strides = {conv.strides()->begin(), conv.strides()->end()};
  operation.dilations = {conv.dilations()->begin(), conv.dilations()->end()};
  operation.paddingBefore = {conv.padding()->Get(0), conv.padding()->Get(1)};
  operation.paddingAfter = {conv.padding()->Get(2), conv.padding()->Get(3)};
  operation.x = describe(x);
  operation.w = describe(w);
  operation.y = describe(y);
  graph.convolution(operation);
  return graph;
}

Result<std::unique_ptr<ConvPlan>> ConvPlan::make(const artifact::Conv &conv, const RankContext &context,
                                                 CudnnPlans &plans, Workspace &workspace) {
  TESSERA_ASSIGN_OR_RETURN(CudnnGraph graph, graphOf(conv, context));
  std::unique_ptr<ConvPlan> made(new ConvPlan(workspace));
  made->x = Operand(context, conv.x());
  made->w = Operand(context, conv.w());
  made->y = Operand(context, conv.y());
  TESSERA_ASSIGN_OR_RETURN(made->plan, plans.find(graph));
  TESSERA_RETURN_IF_ERROR(workspace.require(made->plan->workspaceBytes()));
  return made;
}

} // namespace tessera::cuda
