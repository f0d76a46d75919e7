//===- CudaConv.cpp - 2-D convolution and its gradients by cuDNN ---------===//

#include "runtime/device/cuda/CudaConv.h"

namespace tessera::cuda {

using artifact::DataType;

Result<std::unique_ptr<ConvPlan>> ConvPlan::make(const artifact::Conv &conv, const RankContext &context, Cudnn &cudnn,
                                                 Workspace &workspace) {
  std::unique_ptr<ConvPlan> made(new ConvPlan(workspace));
  made->x = Operand(context, conv.x());
  made->w = Operand(context, conv.w());
  made->y = Operand(context, conv.y());
  DataType dtype = made->x.view.dtype;
  if (dtype != DataType::F32 && dtype != DataType::BF16 && dtype != DataType::F16)
    return TESSERA_ERROR(Unsupported, std::string("a convolution of type ") + artifact::EnumNameDataType(dtype));
  for (const Operand *operand : {&made->w, &made->y})
    if (operand->view.dtype != dtype)
      return TESSERA_ERROR(Unsupported, std::string("a convolution of types ") + artifact::EnumNameDataType(dtype) +
                                            " and " + artifact::EnumNameDataType(operand->view.dtype));
  TESSERA_ASSIGN_OR_RETURN(cudnnHandle_t handle, cudnn.handle());
  CudnnGraph graph(handle);
  auto describe = [&](const Operand &operand) { return graph.operand(cudnnTensor(operand.view, operand.stride)); };
  CudnnGraph::Convolution operation;
  operation.kind = conv.kind();
  operation.strides = {conv.strides()->begin(), conv.strides()->end()};
  operation.dilations = {conv.dilations()->begin(), conv.dilations()->end()};
  operation.paddingBefore = {conv.padding()->Get(0), conv.padding()->Get(1)};
  operation.paddingAfter = {conv.padding()->Get(2), conv.padding()->Get(3)};
  operation.x = describe(made->x);
  operation.w = describe(made->w);
  operation.y = describe(made->y);
  graph.convolution(operation);
  TESSERA_ASSIGN_OR_RETURN(made->plan, std::move(graph).plan(dtype == DataType::F32));
  TESSERA_RETURN_IF_ERROR(workspace.require(made->plan->workspaceBytes()));
  return made;
}

} // namespace tessera::cuda
