//===- CpuCommands.cpp - instructions as calls on the CPU -------------------===//

#include "runtime/device/LaunchBuffers.h"
#include "runtime/device/cpu/Attention.h"
#include "runtime/device/cpu/Copy.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/Epilogue.h"

#include <cstring>

namespace tessera::cpu {

using artifact::Operation;

namespace {

class LaunchCommand : public Command {
public:
  static Result<std::unique_ptr<Command>> make(const artifact::Launch &launch, CpuShared &shared) {
    const artifact::Kernel &kernel = *shared.rank->artifact.package().kernels()->Get(launch.kernel());
    TESSERA_RETURN_IF_ERROR(checkNumBuffers(launch, kernel, shared.kernels[launch.kernel()].numBuffers));
    auto made = std::make_unique<LaunchCommand>(shared);
    made->kind = "launch";
    made->detail = kernel.symbol()->string_view();
    made->function = shared.kernels[launch.kernel()].function;
    made->extent = launch.extent();
    made->grain = launch.grain();
    if (launch.buffers())
      for (uint32_t buffer : *launch.buffers())
        made->operands.emplace_back(*shared.rank, buffer);
    made->addresses.resize(made->operands.size());
    return std::unique_ptr<Command>(std::move(made));
  }
  explicit LaunchCommand(CpuShared &shared) : team(shared.team) {}

  Status run(const Iteration &iteration) override {
    for (size_t index = 0; index < operands.size(); ++index)
      addresses[index] = operands[index].at(iteration);
    team.run(extent, grain, [this](int64_t begin, int64_t end) { function(addresses.data(), begin, end); });
    return Status::ok();
  }

private:
  Team team;
  KernelFunction function = nullptr;
  int64_t extent = 0, grain = 1;
  std::vector<Operand> operands;
  std::vector<void *> addresses;
};

/// Runs a library's plan on three operands.
template <typename Plan> class PlanCommand : public Command {
public:
  PlanCommand(std::string_view name, const CpuShared &shared, uint32_t a, uint32_t b, uint32_t c)
      : a(*shared.rank, a), b(*shared.rank, b), c(*shared.rank, c) {
    kind = name;
  }
  Status run(const Iteration &iteration) override {
    return plan->run(a.at(iteration), b.at(iteration), c.at(iteration));
  }

  Operand a, b, c;
  std::shared_ptr<Plan> plan;
};

class EpilogueCommand : public Command {
public:
  static Result<std::unique_ptr<Command>> make(const artifact::Gemm &gemm, CpuShared &shared) {
    auto made = std::make_unique<EpilogueCommand>();
    made->kind = "gemm";
    made->detail = artifact::EnumNameEpilogue(gemm.epilogue());
    made->a = {*shared.rank, gemm.a()};
    made->b = {*shared.rank, gemm.b()};
    made->c = {*shared.rank, gemm.c()};
    if (gemm.epilogue_input() >= 0)
      made->input = {*shared.rank, static_cast<uint32_t>(gemm.epilogue_input())};
    if (gemm.epilogue_output() >= 0)
      made->output = {*shared.rank, static_cast<uint32_t>(gemm.epilogue_output())};
    TESSERA_ASSIGN_OR_RETURN(made->plan, EpiloguePlan::make(gemm.epilogue(), made->a.view, made->b.view, made->c.view,
                                                            gemm.alpha(), gemm.beta(), shared.gemms));
    return std::unique_ptr<Command>(std::move(made));
  }
  Status run(const Iteration &iteration) override {
    return plan->run({a.at(iteration), b.at(iteration), c.at(iteration), input.at(iteration), output.at(iteration)});
  }

private:
  Operand a, b, c, input, output;
  std::unique_ptr<EpiloguePlan> plan;
};

Result<std::unique_ptr<Command>> makeGemm(const artifact::Gemm &gemm, CpuShared &shared) {
  if (gemm.a_scale_mode() != artifact::ScaleMode::None)
    return TESSERA_ERROR(Unsupported, "a product of 8-bit floats, which only GPUs have");
  auto made = std::make_unique<PlanCommand<GemmPlan>>("gemm", shared, gemm.a(), gemm.b(), gemm.c());
  TESSERA_ASSIGN_OR_RETURN(made->plan,
                           shared.gemms.plan(made->a.view, made->b.view, made->c.view, gemm.alpha(), gemm.beta()));
  return std::unique_ptr<Command>(std::move(made));
}

Result<std::unique_ptr<Command>> makeConv(const artifact::Conv &conv, CpuShared &shared) {
  auto made = std::make_unique<PlanCommand<ConvPlan>>("conv", shared, conv.x(), conv.w(), conv.y());
  made->detail = artifact::EnumNameConvKind(conv.kind());
  ConvShape shape;
  shape.kind = conv.kind();
  shape.strides.assign(conv.strides()->begin(), conv.strides()->end());
  shape.padding.assign(conv.padding()->begin(), conv.padding()->end());
  shape.dilations.assign(conv.dilations()->begin(), conv.dilations()->end());
  shape.groups = conv.groups();
  TESSERA_ASSIGN_OR_RETURN(made->plan, shared.convolutions.plan(shape, made->a.view, made->b.view, made->c.view));
  return std::unique_ptr<Command>(std::move(made));
}

class AttentionCommand : public Command {
public:
  template <typename Table> AttentionCommand(const Table &table, CpuShared &shared) : shared(shared) {
    q = {*shared.rank, table.q()};
    k = {*shared.rank, table.k()};
    v = {*shared.rank, table.v()};
    out = {*shared.rank, table.out()};
    lse = {*shared.rank, table.lse()};
    if (table.mask() >= 0)
      mask = {*shared.rank, static_cast<uint32_t>(table.mask())};
    hasMask = table.mask() >= 0;
    hasBounds = table.begin() >= 0;
    if (hasBounds) {
      begin = {*shared.rank, static_cast<uint32_t>(table.begin())};
      end = {*shared.rank, static_cast<uint32_t>(table.end())};
    }
    scale = table.scale();
    causal = table.causal();
    window = table.window();
  }
  Status run(const Iteration &iteration) override {
    Optionals views;
    AttentionArguments arguments;
    fill(arguments, views, iteration);
    attention(arguments, shared.attentionScratch, shared.team);
    return Status::ok();
  }

  /// Takes the scratch before the first step.
  void reserve() {
    Optionals views;
    AttentionArguments arguments;
    fill(arguments, views, {});
    shared.attentionScratch.require(attentionScratchBytes(arguments, shared.team));
  }

protected:
  /// What the arguments point to.
  struct Optionals {
    TensorView mask, begin, end;
  };

  void fill(AttentionArguments &arguments, Optionals &views, const Iteration &iteration) const {
    arguments.q = q.viewAt(iteration);
    arguments.k = k.viewAt(iteration);
    arguments.v = v.viewAt(iteration);
    arguments.out = out.viewAt(iteration);
    arguments.lse = lse.viewAt(iteration);
    if (hasMask) {
      views.mask = mask.viewAt(iteration);
      arguments.mask = &views.mask;
    }
    if (hasBounds) {
      views.begin = begin.viewAt(iteration);
      views.end = end.viewAt(iteration);
      arguments.begin = &views.begin;
      arguments.end = &views.end;
    }
    arguments.scale = scale;
    arguments.causal = causal;
    arguments.window = window;
  }

  CpuShared &shared;
  Operand q, k, v, out, lse, mask, begin, end;
  bool hasMask, hasBounds, causal;
  float scale;
  int64_t window;
};

class AttentionGradCommand : public AttentionCommand {
public:
  AttentionGradCommand(const artifact::AttentionGrad &table, CpuShared &shared)
      : AttentionCommand(table, shared), dout(*shared.rank, table.dout()), dq(*shared.rank, table.dq()),
        dk(*shared.rank, table.dk()), dv(*shared.rank, table.dv()), isPartial(table.partial()) {}
  Status run(const Iteration &iteration) override {
    Optionals views;
    AttentionGradArguments arguments;
    fillGrad(arguments, views, iteration);
    attentionGrad(arguments, shared.attentionScratch, shared.team);
    return Status::ok();
  }

  /// Takes the scratch before the first step.
  void reserve() {
    Optionals views;
    AttentionGradArguments arguments;
    fillGrad(arguments, views, {});
    shared.attentionScratch.require(attentionGradScratchBytes(arguments, shared.team));
  }

private:
  void fillGrad(AttentionGradArguments &arguments, Optionals &views, const Iteration &iteration) const {
    fill(arguments, views, iteration);
    arguments.isPartial = isPartial;
    arguments.dout = dout.viewAt(iteration);
    arguments.dq = dq.viewAt(iteration);
    arguments.dk = dk.viewAt(iteration);
    arguments.dv = dv.viewAt(iteration);
  }

  Operand dout, dq, dk, dv;
  bool isPartial;
};

class CollectiveCommand : public Command {
public:
  CollectiveCommand(const artifact::Collective &collective, CpuShared &shared, int channel)
      : shared(shared), input(*shared.rank, collective.input()), output(*shared.rank, collective.output()),
        call(shared.rank->callOf(collective, channel)) {
    kind = toString(collective.kind());
    if (collective.label())
      detail = collective.label()->string_view();
    bytes = static_cast<int64_t>(output.view.bytes());
  }
  Status run(const Iteration &iteration) override {
    call.input = input.at(iteration);
    call.output = output.at(iteration);
    call.info = {shared.rank->step, detail, location};
    if (call.group->size() > 1)
      return shared.rank->communicator.run(call);
    if (call.input != call.output)
      std::memcpy(call.output, call.input, static_cast<size_t>(bytes));
    return Status::ok();
  }

private:
  CpuShared &shared;
  Operand input, output;
  CollectiveCall call;
};

class CopyCommand : public Command {
public:
  CopyCommand(const artifact::Copy &copy, CpuShared &shared, const Team &team)
      : team(team), source(*shared.rank, copy.source()), target(*shared.rank, copy.target()),
        plan(source.view, target.view) {
    kind = "copy";
    bytes = static_cast<int64_t>(plan.bytes());
  }
  Status run(const Iteration &iteration) override {
    plan.run(source.at(iteration), target.at(iteration), team);
    return Status::ok();
  }

private:
  Team team;
  Operand source, target;
  CopyPlan plan;
};

class FillCommand : public Command {
public:
  FillCommand(uint32_t buffer, double value, CpuShared &shared, const Team &team, std::string_view name)
      : team(team), target(*shared.rank, buffer), value(value) {
    kind = name;
  }
  Status run(const Iteration &iteration) override {
    fill(target.viewAt(iteration), value, team);
    return Status::ok();
  }

private:
  Team team;
  Operand target;
  double value;
};

} // namespace

Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CpuShared &shared) {
  // The team belongs to the compute stream; other streams work with their own thread.
  Team team = instruction.stream() == 0 ? shared.team : Team(1);
  switch (instruction.operation_type()) {
  case Operation::Launch:
    return LaunchCommand::make(*instruction.operation_as_Launch(), shared);
  case Operation::Gemm:
    if (instruction.operation_as_Gemm()->epilogue() != artifact::Epilogue::None)
      return EpilogueCommand::make(*instruction.operation_as_Gemm(), shared);
    return makeGemm(*instruction.operation_as_Gemm(), shared);
  case Operation::Conv:
    return makeConv(*instruction.operation_as_Conv(), shared);
  case Operation::Attention: {
    auto made = std::make_unique<AttentionCommand>(*instruction.operation_as_Attention(), shared);
    made->kind = "attention";
    made->reserve();
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::AttentionGrad: {
    auto made = std::make_unique<AttentionGradCommand>(*instruction.operation_as_AttentionGrad(), shared);
    made->kind = "attention_grad";
    made->reserve();
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Collective:
    return std::unique_ptr<Command>(
        std::make_unique<CollectiveCommand>(*instruction.operation_as_Collective(), shared, instruction.stream()));
  case Operation::Copy:
    return std::unique_ptr<Command>(std::make_unique<CopyCommand>(*instruction.operation_as_Copy(), shared, team));
  case Operation::Fill: {
    const artifact::Fill &fill = *instruction.operation_as_Fill();
    return std::unique_ptr<Command>(std::make_unique<FillCommand>(fill.target(), fill.value(), shared, team, "fill"));
  }
  case Operation::AxisIndex: {
    const artifact::AxisIndex &index = *instruction.operation_as_AxisIndex();
    double position =
        static_cast<double>(shared.rank->artifact.positionInGroup(index.group(), shared.rank->communicator.rank()));
    return std::unique_ptr<Command>(
        std::make_unique<FillCommand>(index.target(), position, shared, team, "axis_index"));
  }
  default:
    return TESSERA_ERROR(Internal, "an instruction that is not a command");
  }
}

} // namespace tessera::cpu
