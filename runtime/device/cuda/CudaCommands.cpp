//===- CudaCommands.cpp - instructions as work for a GPU --------------------===//

#include "runtime/device/LaunchBuffers.h"
#include "runtime/device/cuda/CudaConv.h"
#include "runtime/device/cuda/CudaStream.h"

#include <nvtx3/nvToolsExt.h>

namespace tessera::cuda {

using artifact::Operation;

namespace {

/// Gives work to a stream, under the name of its source node, and says so in the progress.
class CudaCommand : public Command {
public:
  explicit CudaCommand(CudaShared &shared) : shared(shared) {}

  Status run(const Iteration &iteration) final {
    return issue(iteration, [] {});
  }
  Status runTimed(const Iteration &iteration, const std::function<void()> &mark) final {
    return issue(iteration, mark);
  }

protected:
  virtual Status start(const Iteration &iteration, CUstream handle) = 0;

  CudaShared &shared;
  bool communicates = false;

private:
  /// What is told of progress takes some time on the GPU, too, and is not counted.
  template <typename Mark> Status issue(const Iteration &iteration, const Mark &mark) {
    CUstream handle = shared.streams[stream]->handle;
    // A graph keeps the words of collectives alone: they are where ranks wait for each other.
    bool isTold = !shared.isCapturing || communicates;
    nvtxRangePushA(location.empty() ? kind.data() : location.data());
    Status status = isTold ? shared.progress.begin(*this, handle) : Status::ok();
    if (status.isOk()) {
      mark();
      status = start(iteration, handle);
      mark();
    }
    if (status.isOk() && isTold)
      status = shared.progress.end(*this, handle);
    nvtxRangePop();
    if (!status.isOk()) {
      status = shared.streams[stream]->blame(status);
      shared.watchdog.setFailed(status);
    }
    return status;
  }
};

class LaunchCommand : public CudaCommand {
public:
  LaunchCommand(const artifact::Launch &launch, CudaShared &shared)
      : CudaCommand(shared), kernel(*shared.rank->artifact.package().kernels()->Get(launch.kernel())),
        function(shared.kernels[launch.kernel()].function) {
    kind = "launch";
    detail = kernel.symbol()->string_view();
    if (launch.buffers())
      for (uint32_t buffer : *launch.buffers())
        operands.emplace_back(*shared.rank, buffer);
    addresses.resize(operands.size());
    for (void *&address : addresses)
      arguments.push_back(&address);
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override {
    for (size_t index = 0; index < operands.size(); ++index)
      addresses[index] = operands[index].at(iteration);
    TESSERA_CU(cuLaunchKernel(function, kernel.blocks(), 1, 1, kernel.threads_x(), kernel.threads_y(), 1, 0, handle,
                              arguments.data(), nullptr));
    return Status::ok();
  }

  const artifact::Kernel &kernel;
  CUfunction function;
  std::vector<Operand> operands;
  std::vector<void *> addresses;
  std::vector<void *> arguments; ///< addresses of `addresses`
};

class GemmCommand : public CudaCommand {
public:
  GemmCommand(const artifact::Gemm &gemm, CudaShared &shared) : CudaCommand(shared) {
    kind = "gemm";
    operands.a = Operand(*shared.rank, gemm.a());
    operands.b = Operand(*shared.rank, gemm.b());
    operands.c = Operand(*shared.rank, gemm.c());
    operands.alpha = gemm.alpha();
    operands.beta = gemm.beta();
    operands.epilogue = gemm.epilogue();
    if (gemm.epilogue() != artifact::Epilogue::None)
      detail = artifact::EnumNameEpilogue(gemm.epilogue());
    if (gemm.epilogue_input() >= 0)
      operands.input = Operand(*shared.rank, static_cast<uint32_t>(gemm.epilogue_input()));
    if (gemm.epilogue_output() >= 0)
      operands.output = Operand(*shared.rank, static_cast<uint32_t>(gemm.epilogue_output()));
    if (gemm.a_scales() >= 0 && gemm.b_scales() >= 0) {
      operands.aScales = Operand(*shared.rank, static_cast<uint32_t>(gemm.a_scales()));
      operands.bScales = Operand(*shared.rank, static_cast<uint32_t>(gemm.b_scales()));
      operands.scaling = {gemm.a_scale_mode(), gemm.b_scale_mode(), gemm.fast_accumulation()};
      detail = artifact::EnumNameScaleMode(gemm.a_scale_mode());
    }
  }
  Status prepare(const artifact::Instruction &instruction, std::string_view node) {
    if (shared.besideCollectives.contains(&instruction))
      operands.multiprocessors = shared.multiprocessorsBeside;
    TESSERA_ASSIGN_OR_RETURN(plan, shared.gemms.plan(operands, node));
    return Status::ok();
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override {
    return plan->start(operands.at(iteration), handle);
  }

  GemmOperands operands;
  std::unique_ptr<GemmPlan> plan;
};

class AttentionCommand : public CudaCommand {
public:
  AttentionCommand(std::string_view name, CudaShared &shared) : CudaCommand(shared) { kind = name; }
  Status prepare(const AttentionOperands &operands, std::string_view node) {
    TESSERA_ASSIGN_OR_RETURN(plan, shared.attentions.plan(operands, shared.cudnn, shared.workspace, node));
    return Status::ok();
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override { return plan->start(iteration, handle); }

  std::unique_ptr<AttentionPlan> plan;
};

class ConvCommand : public CudaCommand {
public:
  explicit ConvCommand(CudaShared &shared) : CudaCommand(shared) { kind = "conv"; }
  Status prepare(const artifact::Conv &conv) {
    TESSERA_ASSIGN_OR_RETURN(plan, ConvPlan::make(conv, *shared.rank, shared.cudnn, shared.workspace));
    return Status::ok();
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override { return plan->start(iteration, handle); }

  std::unique_ptr<ConvPlan> plan;
};

class CollectiveCommand : public CudaCommand {
public:
  CollectiveCommand(const artifact::Collective &collective, CudaShared &shared, int channel)
      : CudaCommand(shared), input(*shared.rank, collective.input()), output(*shared.rank, collective.output()),
        call(shared.rank->callOf(collective, channel)) {
    kind = toString(collective.kind());
    communicates = true;
    if (collective.label())
      detail = collective.label()->string_view();
    bytes = static_cast<int64_t>(output.view.bytes());
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override {
    call.input = input.at(iteration);
    call.output = output.at(iteration);
    call.info = {shared.rank->step, detail, location};
    if (call.group->size() > 1)
      return shared.collectives->start(call, handle);
    if (call.input != call.output)
      TESSERA_CU(
          cuMemcpyAsync(deviceAddress(call.output), deviceAddress(call.input), static_cast<size_t>(bytes), handle));
    return Status::ok();
  }

  Operand input, output;
  CollectiveCall call;
};

class CopyCommand : public CudaCommand {
public:
  CopyCommand(const artifact::Copy &copy, CudaShared &shared)
      : CudaCommand(shared), source(*shared.rank, copy.source()), target(*shared.rank, copy.target()) {
    kind = "copy";
    bytes = static_cast<int64_t>(target.view.bytes());
  }
  Status prepare() {
    TESSERA_ASSIGN_OR_RETURN(layout, moveLayout(source.view, target.view));
    return Status::ok();
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override {
    return shared.mover.copy(target.at(iteration), source.at(iteration), layout, byteWidth(target.view.dtype), handle);
  }

  Operand source, target;
  MoveLayout layout;
};

class FillCommand : public CudaCommand {
public:
  FillCommand(uint32_t buffer, std::string_view name, CudaShared &shared)
      : CudaCommand(shared), target(*shared.rank, buffer) {
    kind = name;
  }
  Status prepare(double value) {
    TESSERA_ASSIGN_OR_RETURN(bits, encodeNumber(target.view.dtype, value));
    TESSERA_ASSIGN_OR_RETURN(layout, moveLayout(target.view, target.view));
    return Status::ok();
  }

private:
  Status start(const Iteration &iteration, CUstream handle) override {
    return shared.mover.fill(target.at(iteration), bits, layout, byteWidth(target.view.dtype), handle);
  }

  Operand target;
  uint64_t bits = 0;
  MoveLayout layout;
};

Result<std::unique_ptr<Command>> makeFill(uint32_t buffer, double value, std::string_view name, CudaShared &shared) {
  auto made = std::make_unique<FillCommand>(buffer, name, shared);
  TESSERA_RETURN_IF_ERROR(made->prepare(value));
  return std::unique_ptr<Command>(std::move(made));
}

} // namespace

Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CudaShared &shared) {
  std::string_view node = locationOf(shared.rank->artifact.package(), instruction);
  switch (instruction.operation_type()) {
  case Operation::Launch: {
    const artifact::Launch &launch = *instruction.operation_as_Launch();
    TESSERA_RETURN_IF_ERROR(checkNumBuffers(launch, *shared.rank->artifact.package().kernels()->Get(launch.kernel()),
                                            shared.kernels[launch.kernel()].numBuffers));
    return std::unique_ptr<Command>(std::make_unique<LaunchCommand>(launch, shared));
  }
  case Operation::Gemm: {
    auto made = std::make_unique<GemmCommand>(*instruction.operation_as_Gemm(), shared);
    TESSERA_RETURN_IF_ERROR(made->prepare(instruction, node));
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Attention: {
    auto made = std::make_unique<AttentionCommand>("attention", shared);
    TESSERA_RETURN_IF_ERROR(made->prepare({*instruction.operation_as_Attention(), *shared.rank}, node));
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::AttentionGrad: {
    auto made = std::make_unique<AttentionCommand>("attention_grad", shared);
    TESSERA_RETURN_IF_ERROR(made->prepare({*instruction.operation_as_AttentionGrad(), *shared.rank}, node));
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Conv: {
    auto made = std::make_unique<ConvCommand>(shared);
    TESSERA_RETURN_IF_ERROR(made->prepare(*instruction.operation_as_Conv()));
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Collective:
    return std::unique_ptr<Command>(
        std::make_unique<CollectiveCommand>(*instruction.operation_as_Collective(), shared, instruction.stream()));
  case Operation::Copy: {
    auto made = std::make_unique<CopyCommand>(*instruction.operation_as_Copy(), shared);
    TESSERA_RETURN_IF_ERROR(made->prepare());
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Fill: {
    const artifact::Fill &fill = *instruction.operation_as_Fill();
    return makeFill(fill.target(), fill.value(), "fill", shared);
  }
  case Operation::AxisIndex: {
    const artifact::AxisIndex &index = *instruction.operation_as_AxisIndex();
    int64_t position = shared.rank->artifact.positionInGroup(index.group(), shared.rank->communicator.rank());
    return makeFill(index.target(), static_cast<double>(position), "axis_index", shared);
  }
  default:
    return TESSERA_ERROR(Unsupported, std::string("the CUDA backend has no ") +
                                          artifact::EnumNameOperation(instruction.operation_type()) + " yet");
  }
}

} // namespace tessera::cuda
