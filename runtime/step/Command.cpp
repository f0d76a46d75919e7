//===- Command.cpp - instructions, ready to run ----------------------------===//

#include "runtime/step/Command.h"

#include "runtime/device/cpu/Copy.h"

#include <cstring>

namespace tessera {

using artifact::CollectiveKind;
using artifact::Operation;

TensorView BufferMap::view(uint32_t index) const {
  const artifact::Buffer &buffer = *artifact.program().buffers()->Get(index);
  TensorView view;
  int64_t offset = static_cast<int64_t>(buffer.offset());
  if (buffer.rank_group() >= 0)
    offset += artifact.positionInGroup(buffer.rank_group(), rank) * buffer.rank_stride();
  std::byte *base = arenas[buffer.arena()];
  view.data = base ? base + offset : nullptr;
  view.dtype = buffer.dtype();
  if (buffer.shape())
    view.shape.assign(buffer.shape()->begin(), buffer.shape()->end());
  if (buffer.strides())
    view.strides.assign(buffer.strides()->begin(), buffer.strides()->end());
  return view;
}

int64_t BufferMap::iterationStride(uint32_t index) const {
  return artifact.program().buffers()->Get(index)->iteration_stride();
}

Status CommandContext::loadKernels() {
  const artifact::Program &program = artifact.program();
  if (const auto *objects = program.code_objects())
    for (const artifact::CodeObject *object : *objects) {
      TESSERA_ASSIGN_OR_RETURN(
          cpu::CodeObject loaded,
          cpu::CodeObject::load(object->data()->data(), object->data()->size(), "tessera-kernels"));
      code.push_back(std::move(loaded));
    }
  if (const auto *table = program.kernels())
    for (const artifact::Kernel *kernel : *table) {
      TESSERA_ASSIGN_OR_RETURN(cpu::KernelFunction function, code[kernel->code_object()].find(kernel->symbol()->str()));
      kernels.push_back(function);
    }
  return Status::ok();
}

size_t CommandContext::workspaceBytes() const {
  return gemms.workspaceBytes() + convolutions.workspaceBytes() + attentionScratch.bytes();
}

namespace {

/// An operand whose address moves with the iteration.
struct Operand {
  Operand() = default;
  Operand(const CommandContext &context, uint32_t buffer)
      : view(context.buffers.view(buffer)), stride(context.buffers.iterationStride(buffer)) {}
  void *at(int64_t iteration) const { return view.as<std::byte>() + iteration * stride; }
  TensorView viewAt(int64_t iteration) const {
    TensorView moved = view;
    moved.data = at(iteration);
    return moved;
  }

  TensorView view;
  int64_t stride = 0;
};

class LaunchCommand : public Command {
public:
  static Result<std::unique_ptr<Command>> make(const artifact::Launch &launch, CommandContext &context) {
    auto made = std::make_unique<LaunchCommand>(context);
    made->kind = "launch";
    made->detail = context.artifact.program().kernels()->Get(launch.kernel())->symbol()->string_view();
    made->function = context.kernels[launch.kernel()];
    made->extent = launch.extent();
    made->grain = launch.grain();
    if (launch.buffers())
      for (uint32_t buffer : *launch.buffers())
        made->operands.emplace_back(context, buffer);
    made->addresses.resize(made->operands.size());
    return std::unique_ptr<Command>(std::move(made));
  }
  explicit LaunchCommand(CommandContext &context) : team(context.team) {}

  Status run(int64_t iteration) override {
    for (size_t index = 0; index < operands.size(); ++index)
      addresses[index] = operands[index].at(iteration);
    team.run(extent, grain, [this](int64_t begin, int64_t end) { function(addresses.data(), begin, end); });
    return Status::ok();
  }

private:
  cpu::Team team;
  cpu::KernelFunction function = nullptr;
  int64_t extent = 0, grain = 1;
  std::vector<Operand> operands;
  std::vector<void *> addresses;
};

class GemmCommand : public Command {
public:
  static Result<std::unique_ptr<Command>> make(const artifact::Gemm &gemm, CommandContext &context) {
    auto made = std::make_unique<GemmCommand>();
    made->kind = "gemm";
    made->a = {context, gemm.a()};
    made->b = {context, gemm.b()};
    made->c = {context, gemm.c()};
    TESSERA_ASSIGN_OR_RETURN(made->plan,
                             context.gemms.plan(made->a.view, made->b.view, made->c.view, gemm.alpha(), gemm.beta()));
    return std::unique_ptr<Command>(std::move(made));
  }
  Status run(int64_t iteration) override { return plan->run(a.at(iteration), b.at(iteration), c.at(iteration)); }

private:
  Operand a, b, c;
  std::shared_ptr<cpu::GemmPlan> plan;
};

class ConvCommand : public Command {
public:
  static Result<std::unique_ptr<Command>> make(const artifact::Conv &conv, CommandContext &context) {
    auto made = std::make_unique<ConvCommand>();
    made->kind = "conv";
    made->detail = artifact::EnumNameConvKind(conv.kind());
    made->x = {context, conv.x()};
    made->w = {context, conv.w()};
    made->y = {context, conv.y()};
    cpu::ConvShape shape;
    shape.kind = conv.kind();
    shape.strides.assign(conv.strides()->begin(), conv.strides()->end());
    shape.padding.assign(conv.padding()->begin(), conv.padding()->end());
    shape.dilations.assign(conv.dilations()->begin(), conv.dilations()->end());
    shape.groups = conv.groups();
    TESSERA_ASSIGN_OR_RETURN(made->plan, context.convolutions.plan(shape, made->x.view, made->w.view, made->y.view));
    return std::unique_ptr<Command>(std::move(made));
  }
  Status run(int64_t iteration) override { return plan->run(x.at(iteration), w.at(iteration), y.at(iteration)); }

private:
  Operand x, w, y;
  std::shared_ptr<cpu::ConvPlan> plan;
};

class AttentionCommand : public Command {
public:
  template <typename Table> AttentionCommand(const Table &table, CommandContext &context) : context(context) {
    q = {context, table.q()};
    k = {context, table.k()};
    v = {context, table.v()};
    out = {context, table.out()};
    lse = {context, table.lse()};
    if (table.mask() >= 0)
      mask = {context, static_cast<uint32_t>(table.mask())};
    hasMask = table.mask() >= 0;
    scale = table.scale();
    causal = table.causal();
  }
  Status run(int64_t iteration) override {
    TensorView maskView;
    cpu::AttentionArguments arguments;
    fill(arguments, maskView, iteration);
    cpu::attention(arguments, context.attentionScratch, context.team);
    return Status::ok();
  }

  /// Takes the scratch before the first step.
  void reserve(bool backward) {
    TensorView maskView;
    cpu::AttentionArguments arguments;
    fill(arguments, maskView, 0);
    context.attentionScratch.require(cpu::attentionScratchBytes(arguments, backward, context.team));
  }

protected:
  void fill(cpu::AttentionArguments &arguments, TensorView &maskView, int64_t iteration) const {
    arguments.q = q.viewAt(iteration);
    arguments.k = k.viewAt(iteration);
    arguments.v = v.viewAt(iteration);
    arguments.out = out.viewAt(iteration);
    arguments.lse = lse.viewAt(iteration);
    maskView = mask.view.data ? mask.viewAt(iteration) : TensorView();
    arguments.mask = hasMask ? &maskView : nullptr;
    arguments.scale = scale;
    arguments.causal = causal;
  }

  CommandContext &context;
  Operand q, k, v, out, lse, mask;
  bool hasMask, causal;
  float scale;
};

class AttentionGradCommand : public AttentionCommand {
public:
  AttentionGradCommand(const artifact::AttentionGrad &table, CommandContext &context)
      : AttentionCommand(table, context), dout(context, table.dout()), dq(context, table.dq()), dk(context, table.dk()),
        dv(context, table.dv()) {}
  Status run(int64_t iteration) override {
    TensorView maskView;
    cpu::AttentionGradArguments arguments;
    fill(arguments, maskView, iteration);
    arguments.dout = dout.viewAt(iteration);
    arguments.dq = dq.viewAt(iteration);
    arguments.dk = dk.viewAt(iteration);
    arguments.dv = dv.viewAt(iteration);
    cpu::attentionGrad(arguments, context.attentionScratch, context.team);
    return Status::ok();
  }

private:
  Operand dout, dq, dk, dv;
};

class CollectiveCommand : public Command {
public:
  CollectiveCommand(const artifact::Collective &collective, CommandContext &context, int channel) : context(context) {
    kind = toString(collective.kind());
    if (collective.label())
      detail = collective.label()->string_view();
    input = {context, collective.input()};
    output = {context, collective.output()};
    bytes = static_cast<int64_t>(output.view.bytes());
    call.kind = collective.kind();
    call.dtype = input.view.dtype;
    call.group = &context.groups[collective.group()];
    call.elements = input.view.numElements();
    call.shift = collective.shift();
    call.channel = channel;
  }
  Status run(int64_t iteration) override {
    call.input = input.at(iteration);
    call.output = output.at(iteration);
    call.info = {context.step, detail, location};
    if (call.group->size() > 1)
      return context.communicator.run(call);
    if (call.input != call.output)
      std::memcpy(call.output, call.input, static_cast<size_t>(bytes));
    return Status::ok();
  }

private:
  CommandContext &context;
  Operand input, output;
  CollectiveCall call;
};

class CopyCommand : public Command {
public:
  CopyCommand(const artifact::Copy &copy, CommandContext &context, const cpu::Team &team)
      : team(team), source(context, copy.source()), target(context, copy.target()), plan(source.view, target.view) {
    kind = "copy";
    bytes = static_cast<int64_t>(plan.bytes());
  }
  Status run(int64_t iteration) override {
    plan.run(source.at(iteration), target.at(iteration), team);
    return Status::ok();
  }

private:
  cpu::Team team;
  Operand source, target;
  cpu::CopyPlan plan;
};

class FillCommand : public Command {
public:
  FillCommand(uint32_t buffer, double value, CommandContext &context, const cpu::Team &team, std::string_view name)
      : team(team), target(context, buffer), value(value) {
    kind = name;
  }
  Status run(int64_t iteration) override {
    cpu::fill(target.viewAt(iteration), value, team);
    return Status::ok();
  }

private:
  cpu::Team team;
  Operand target;
  double value;
};

Result<std::unique_ptr<Command>> makeByKind(const artifact::Instruction &instruction, CommandContext &context) {
  // The team belongs to the compute stream; other streams work with their own thread.
  cpu::Team team = instruction.stream() == 0 ? context.team : cpu::Team(1);
  switch (instruction.operation_type()) {
  case Operation::Launch:
    return LaunchCommand::make(*instruction.operation_as_Launch(), context);
  case Operation::Gemm:
    return GemmCommand::make(*instruction.operation_as_Gemm(), context);
  case Operation::Conv:
    return ConvCommand::make(*instruction.operation_as_Conv(), context);
  case Operation::Attention: {
    auto made = std::make_unique<AttentionCommand>(*instruction.operation_as_Attention(), context);
    made->kind = "attention";
    made->reserve(/*backward=*/false);
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::AttentionGrad: {
    auto made = std::make_unique<AttentionGradCommand>(*instruction.operation_as_AttentionGrad(), context);
    made->kind = "attention_grad";
    made->reserve(/*backward=*/true);
    return std::unique_ptr<Command>(std::move(made));
  }
  case Operation::Collective:
    return std::unique_ptr<Command>(
        std::make_unique<CollectiveCommand>(*instruction.operation_as_Collective(), context, instruction.stream()));
  case Operation::Copy:
    return std::unique_ptr<Command>(std::make_unique<CopyCommand>(*instruction.operation_as_Copy(), context, team));
  case Operation::Fill: {
    const artifact::Fill &fill = *instruction.operation_as_Fill();
    return std::unique_ptr<Command>(std::make_unique<FillCommand>(fill.target(), fill.value(), context, team, "fill"));
  }
  case Operation::AxisIndex: {
    const artifact::AxisIndex &index = *instruction.operation_as_AxisIndex();
    double position = static_cast<double>(context.artifact.positionInGroup(index.group(), context.communicator.rank()));
    return std::unique_ptr<Command>(
        std::make_unique<FillCommand>(index.target(), position, context, team, "axis_index"));
  }
  default:
    return TESSERA_ERROR(Internal, "an instruction that is not a command");
  }
}

} // namespace

Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CommandContext &context) {
  Result<std::unique_ptr<Command>> made = makeByKind(instruction, context);
  const auto *locations = context.artifact.program().locations();
  std::string_view location;
  if (locations && instruction.location() < locations->size())
    location = locations->Get(instruction.location())->string_view();
  if (!made.isOk())
    return location.empty() ? made.status() : made.status().withContext("node " + std::string(location));
  (*made)->stream = instruction.stream();
  (*made)->location = location;
  return made;
}

} // namespace tessera
