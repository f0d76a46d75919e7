//===- CudaAttention.cpp - attention on a GPU ----------------------------===//

#include "runtime/device/cuda/CudaAttention.h"

#include "runtime/base/Log.h"

namespace tessera::cuda {

/// PTX of Attention.cu, with a zero at its end; made by the build.
extern const char attentionKernels[];

using artifact::DataType;

template <typename Table>
static void readForward(AttentionOperands &operands, const Table &table, const RankContext &context) {
  operands.q = Operand(context, table.q());
  operands.k = Operand(context, table.k());
  operands.v = Operand(context, table.v());
  operands.out = Operand(context, table.out());
  operands.lse = Operand(context, table.lse());
  if (table.mask() >= 0)
    operands.mask = Operand(context, static_cast<uint32_t>(table.mask()));
  if (table.begin() >= 0) {
    operands.begin = Operand(context, static_cast<uint32_t>(table.begin()));
    operands.end = Operand(context, static_cast<uint32_t>(table.end()));
  }
  operands.scale = table.scale();
  operands.causal = table.causal();
  operands.window = table.window();
}

AttentionOperands::AttentionOperands(const artifact::Attention &table, const RankContext &context) {
  readForward(*this, table, context);
}

AttentionOperands::AttentionOperands(const artifact::AttentionGrad &table, const RankContext &context)
    : isBackward(true), isPartial(table.partial()) {
  readForward(*this, table, context);
  dout = Operand(context, table.dout());
  dq = Operand(context, table.dq());
  dk = Operand(context, table.dk());
  dv = Operand(context, table.dv());
  if (table.workspace() >= 0)
    delta = Operand(context, static_cast<uint32_t>(table.workspace()));
}

AttentionViews AttentionOperands::viewsAt(const Iteration &iteration) const {
  AttentionViews views;
  views.q = q.viewAt(iteration);
  views.k = k.viewAt(iteration);
  views.v = v.viewAt(iteration);
  views.out = out.viewAt(iteration);
  views.lse = lse.viewAt(iteration);
  if (mask)
    views.mask = mask->viewAt(iteration);
  if (begin) {
    views.begin = begin->viewAt(iteration);
    views.end = end->viewAt(iteration);
  }
  views.scale = scale;
  views.causal = causal;
  views.isPartial = isPartial;
  views.window = window;
  if (isBackward) {
    views.dout = dout.viewAt(iteration);
    views.dq = dq.viewAt(iteration);
    views.dk = dk.viewAt(iteration);
    views.dv = dv.viewAt(iteration);
  }
  return views;
}

namespace {

/// Our own kernels.
class KernelPlan : public AttentionPlan {
public:
  KernelPlan(const AttentionOperands &operands, const Workspace &workspace,
             const std::map<std::string, CUfunction> &functions)
      : operands(operands), workspace(workspace), functions(functions),
        type(artifact::EnumNameDataType(operands.q.view.dtype)) {}

  Status start(const Iteration &iteration, CUstream stream) override {
    TESSERA_ASSIGN_OR_RETURN(AttentionLayout layout, attentionLayout(operands.viewsAt(iteration)));
    if (!operands.isBackward)
      return launch("", forwardGrid(layout), layout, stream, sizeof(AttentionScratch));
    layout.delta = static_cast<float *>(operands.delta ? operands.delta->at(iteration) : workspace.data());
    int64_t rows = layout.batch * layout.heads * layout.queries;
    TESSERA_RETURN_IF_ERROR(
        launch("RowSum", {attentionParts(rows, attentionThreads), rows > 0 ? 1 : 0}, layout, stream, 0));
    TESSERA_RETURN_IF_ERROR(launch("QueryGrad", queryGradGrid(layout), layout, stream, sizeof(AttentionScratch)));
    return launch("KeyGrad", keyGradGrid(layout), layout, stream, sizeof(AttentionScratch));
  }

private:
  Status launch(const char *name, const AttentionGrid &grid, AttentionLayout &layout, CUstream stream,
                size_t sharedBytes) const {
    if (grid.blocks == 0 || grid.sections == 0)
      return Status::ok();
    void *arguments[] = {&layout};
    TESSERA_CU(cuLaunchKernel(functions.at(std::string("tesseraAttention") + name + type),
                              static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.sections), 1,
                              attentionThreads, 1, 1, static_cast<unsigned>(sharedBytes), stream, arguments, nullptr));
    return Status::ok();
  }

  const AttentionOperands operands;
  const Workspace &workspace;
  const std::map<std::string, CUfunction> &functions;
  const std::string type;
};

} // namespace

AttentionPlanner::~AttentionPlanner() {
  if (library)
    cuLibraryUnload(library);
}

Status AttentionPlanner::load() {
  if (library)
    return Status::ok();
  TESSERA_CU(cuLibraryLoadData(&library, attentionKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  for (const char *name : {"", "RowSum", "QueryGrad", "KeyGrad"})
    for (DataType dtype : {DataType::F32, DataType::BF16, DataType::F16}) {
      std::string symbol = std::string("tesseraAttention") + name + artifact::EnumNameDataType(dtype);
      CUkernel kernel = nullptr;
      TESSERA_CU(cuLibraryGetKernel(&kernel, library, symbol.c_str()));
      CUfunction &function = functions[symbol];
      TESSERA_CU(cuKernelGetFunction(&function, kernel));
      // More than what kernels may have unasked.
      TESSERA_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(sizeof(AttentionScratch))));
    }
  return Status::ok();
}

Result<std::unique_ptr<AttentionPlan>> AttentionPlanner::planKernels(const AttentionOperands &operands,
                                                                     Workspace &workspace) {
  TESSERA_RETURN_IF_ERROR(load());
  TESSERA_ASSIGN_OR_RETURN(AttentionLayout layout, attentionLayout(operands.viewsAt({})));
  constexpr int64_t mostBlocks = (int64_t{1} << 31) - 1;
  if (forwardGrid(layout).blocks > mostBlocks || keyGradGrid(layout).blocks > mostBlocks)
    return TESSERA_ERROR(Unsupported,
                         "attention of more than 2^31 tiles of " + std::to_string(attentionTile) + " queries or keys");
  if (operands.isBackward && !operands.delta)
    TESSERA_RETURN_IF_ERROR(
        workspace.require(static_cast<size_t>(2 * layout.batch * layout.heads * layout.queries) * sizeof(float)));
  return std::unique_ptr<AttentionPlan>(std::make_unique<KernelPlan>(operands, workspace, functions));
}

Result<std::unique_ptr<AttentionPlan>> AttentionPlanner::plan(const AttentionOperands &operands, CudnnPlans &plans,
                                                              Workspace &workspace, std::string_view location) {
  std::string reason = cudnnRefusal(operands);
  if (reason.empty()) {
    Result<std::unique_ptr<AttentionPlan>> made = planByCudnn(operands, hasFastGradient, plans, workspace);
    if (made.isOk() || made.status().code() != StatusCode::Unsupported)
      return made;
    reason = made.status().message();
  }
  if (operands.q.view.dtype != DataType::F32)
    log::info("node '{}': attention by our own f32 kernels, not by cuDNN: {}", location, reason);
  return planKernels(operands, workspace);
}

} // namespace tessera::cuda
