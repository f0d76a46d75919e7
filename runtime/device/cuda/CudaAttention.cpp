//===- CudaAttention.cpp - attention on a GPU ----------------------------===//

#include "runtime/device/cuda/CudaAttention.h"

#include "runtime/base/Log.h"

namespace tessera::cuda {

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

bool AttentionOperands::isAligned() const {
  for (const Operand *operand : {&q, &k, &v, &out, &dout, &dq, &dk, &dv})
    if (!operand->view.shape.empty() && cudnnAlignment(operand->view, operand->strideBits()) < 16)
      return false;
  return true;
}

static std::string tensorRefusal(const AttentionOperands &operands) {
  std::string reason = tensorRefusal(operands.viewsAt({}), operands.isBackward);
  return !reason.empty()         ? reason
         : !operands.isAligned() ? "an operand is not aligned to 16 bytes in each micro-batch"
                                 : "";
}

namespace {

class KernelPlan : public AttentionPlan {
public:
  KernelPlan(const AttentionOperands &operands, AttentionUnits units, const Workspace &workspace,
             const AttentionKernels &kernels)
      : operands(operands), units(units), workspace(workspace), kernels(kernels) {}

  Status start(const Iteration &iteration, CUstream stream) override {
    TESSERA_ASSIGN_OR_RETURN(AttentionLayout layout, attentionLayout(operands.viewsAt(iteration)));
    if (operands.isBackward)
      layout.delta = static_cast<float *>(operands.delta ? operands.delta->at(iteration) : workspace.data());
    return kernels.start(layout, operands.q.view.dtype, units, operands.isBackward, stream);
  }

private:
  const AttentionOperands operands;
  const AttentionUnits units;
  const Workspace &workspace;
  const AttentionKernels &kernels;
};

} // namespace

Result<std::unique_ptr<AttentionPlan>> AttentionPlanner::planKernels(const AttentionOperands &operands,
                                                                     AttentionUnits units, Workspace &workspace) {
  TESSERA_ASSIGN_OR_RETURN(AttentionLayout layout, attentionLayout(operands.viewsAt({})));
  TESSERA_RETURN_IF_ERROR(kernels.load(layout, operands.q.view.dtype, units));
  constexpr int64_t mostBlocks = (int64_t{1} << 31) - 1;
  if (forwardGrid(layout).blocks > mostBlocks || keyGradGrid(layout).blocks > mostBlocks)
    return TESSERA_ERROR(Unsupported,
                         "attention of more than 2^31 tiles of " + std::to_string(attentionTile) + " queries or keys");
  if (operands.isBackward && !operands.delta)
    TESSERA_RETURN_IF_ERROR(
        workspace.require(static_cast<size_t>(2 * layout.batch * layout.heads * layout.queries) * sizeof(float)));
  return std::unique_ptr<AttentionPlan>(std::make_unique<KernelPlan>(operands, units, workspace, kernels));
}

Result<std::unique_ptr<AttentionPlan>> AttentionPlanner::plan(const AttentionOperands &operands, CudnnPlans &plans,
                                                              Workspace &workspace, std::string_view location) {
  std::string reason = cudnnRefusal(operands, hasFastGradient);
  if (reason.empty()) {
    Result<std::unique_ptr<AttentionPlan>> made = planByCudnn(operands, hasFastGradient, plans, workspace);
    if (made.isOk() || made.status().code() != StatusCode::Unsupported)
      return made;
    reason = made.status().message();
  }
  const std::string scalarReason = tensorRefusal(operands);
  if (scalarReason.empty()) {
    log::info("node '{}': attention by our own kernels on tensor cores, not by cuDNN: {}", location, reason);
    return planKernels(operands, AttentionUnits::Tensor, workspace);
  }
  if (operands.q.view.dtype != DataType::F32)
    log::info("node '{}': attention by our own f32 kernels, not by cuDNN: {}; nor by those on tensor cores: {}",
              location, reason, scalarReason);
  return planKernels(operands, AttentionUnits::Scalar, workspace);
}

} // namespace tessera::cuda
