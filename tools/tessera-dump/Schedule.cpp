//===- Schedule.cpp - the instruction list ------------------------------------------------===//

#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

namespace tessera::dump {

using artifact::Operation;

static std::string joinBuffers(const artifact::Package &package, std::initializer_list<int64_t> buffers) {
  std::string text;
  for (int64_t buffer : buffers) {
    if (buffer < 0)
      continue;
    if (!text.empty())
      text += ", ";
    text += bufferText(package, static_cast<uint32_t>(buffer));
  }
  return text;
}

/// What attention hides by position.
static std::string maskText(bool causal, int64_t window) {
  return std::string(causal ? " causal" : "") + (window > 0 ? fmt::format(" window {}", window) : "");
}

/// What an instruction does, without its kind.
static std::string operands(const Artifact &artifact, const artifact::Instruction &instruction) {
  const artifact::Package &package = artifact.package();
  switch (instruction.operation_type()) {
  case Operation::Launch: {
    const auto *launch = instruction.operation_as_Launch();
    std::string text = package.kernels()->Get(launch->kernel())->symbol()->str() +
                       fmt::format(" extent {} grain {} (", launch->extent(), launch->grain());
    if (launch->buffers())
      for (uint32_t i = 0; i < launch->buffers()->size(); ++i)
        text += (i ? ", " : "") + bufferText(package, launch->buffers()->Get(i));
    return text + ")";
  }
  case Operation::Gemm: {
    const auto *gemm = instruction.operation_as_Gemm();
    std::string text =
        joinBuffers(package, {gemm->a(), gemm->b(), gemm->epilogue_input(), gemm->a_scales(), gemm->b_scales()}) +
        " -> " + joinBuffers(package, {gemm->c(), gemm->epilogue_output()});
    if (gemm->epilogue() != artifact::Epilogue::None)
      text += fmt::format(" epilogue {}", artifact::EnumNameEpilogue(gemm->epilogue()));
    if (gemm->a_scale_mode() != artifact::ScaleMode::None)
      text += fmt::format(" scales {} x {}{}", artifact::EnumNameScaleMode(gemm->a_scale_mode()),
                          artifact::EnumNameScaleMode(gemm->b_scale_mode()),
                          gemm->fast_accumulation() ? ", fast accumulation" : "");
    if (gemm->alpha() != 1)
      text += fmt::format(" alpha {}", gemm->alpha());
    return gemm->beta() != 0 ? text + fmt::format(" beta {}", gemm->beta()) : text;
  }
  case Operation::Conv: {
    const auto *conv = instruction.operation_as_Conv();
    return fmt::format("{} x {}, w {}, y {}", artifact::EnumNameConvKind(conv->kind()), bufferText(package, conv->x()),
                       bufferText(package, conv->w()), bufferText(package, conv->y()));
  }
  case Operation::Attention: {
    const auto *attention = instruction.operation_as_Attention();
    return joinBuffers(package, {attention->q(), attention->k(), attention->v(), attention->mask(), attention->begin(),
                                 attention->end()}) +
           " -> " + joinBuffers(package, {attention->out(), attention->lse()}) +
           maskText(attention->causal(), attention->window());
  }
  case Operation::AttentionGrad: {
    const auto *grad = instruction.operation_as_AttentionGrad();
    return joinBuffers(package, {grad->q(), grad->k(), grad->v(), grad->mask(), grad->begin(), grad->end(), grad->out(),
                                 grad->lse(), grad->dout()}) +
           " -> " + joinBuffers(package, {grad->dq(), grad->dk(), grad->dv()}) +
           maskText(grad->causal(), grad->window()) + (grad->partial() ? " partial" : "");
  }
  case Operation::Collective: {
    const auto *collective = instruction.operation_as_Collective();
    const std::string reduction = reductionOf(*collective);
    return fmt::format("{}over {} {} -> {}{}", reduction.empty() || reduction == "sum" ? "" : reduction + " ",
                       groupText(artifact, collective->group()), bufferText(package, collective->input()),
                       bufferText(package, collective->output()),
                       collective->label() ? " \"" + collective->label()->str() + "\"" : "");
  }
  case Operation::Copy: {
    const auto *copy = instruction.operation_as_Copy();
    return bufferText(package, copy->source()) + " -> " + bufferText(package, copy->target());
  }
  case Operation::Fill: {
    const auto *fill = instruction.operation_as_Fill();
    return bufferText(package, fill->target()) + fmt::format(" = {}", fill->value());
  }
  case Operation::AxisIndex: {
    const auto *index = instruction.operation_as_AxisIndex();
    return bufferText(package, index->target()) + " = position in " + groupText(artifact, index->group());
  }
  case Operation::Record:
    return fmt::format("event {}", instruction.operation_as_Record()->event());
  case Operation::Wait:
    return fmt::format("event {}", instruction.operation_as_Wait()->event());
  case Operation::Repeat:
    return fmt::format("{} times", instruction.operation_as_Repeat()->count());
  default:
    return "";
  }
}

/// Why a collective starts and is waited for where it is; empty for other instructions.
static std::vector<std::string> reasonsOf(const artifact::Instruction &instruction) {
  std::vector<std::string> reasons;
  if (const auto *collective = instruction.operation_as_Collective()) {
    if (collective->reason() && collective->reason()->size() > 0)
      reasons.push_back("starts " + collective->reason()->str());
    if (collective->done_reason() && collective->done_reason()->size() > 0)
      reasons.push_back("ends " + collective->done_reason()->str());
  }
  return reasons;
}

std::string scheduleText(const Artifact &artifact, size_t program) {
  const artifact::Package &package = artifact.package();
  std::string text = sequenceText(artifact);
  text += text.empty() ? "" : "\n";
  text += "schedule (number, stream, instruction, source)\n";
  for (const FlatInstruction &entry : flatten(artifact.program(program))) {
    std::string location = locationOf(package, *entry.instruction);
    text += fmt::format("{:>6} {:<8} {}{} {}{}\n", entry.number, artifact.streamName(entry.instruction->stream()),
                        std::string(2 * entry.depth, ' '), kindOf(*entry.instruction),
                        operands(artifact, *entry.instruction), location.empty() ? "" : "  ; " + location);
    for (const std::string &reason : reasonsOf(*entry.instruction))
      text += fmt::format("{:>18}{}\n", "- ", reason);
  }
  return text;
}

Json scheduleJson(const Artifact &artifact, size_t program) {
  Json list = Json::array();
  for (const FlatInstruction &entry : flatten(artifact.program(program))) {
    list.push_back({{"number", entry.number},
                    {"stream", artifact.streamName(entry.instruction->stream())},
                    {"kind", kindOf(*entry.instruction)},
                    {"iterations", entry.iterations},
                    {"operands", operands(artifact, *entry.instruction)},
                    {"location", locationOf(artifact.package(), *entry.instruction)}});
    if (auto reasons = reasonsOf(*entry.instruction); !reasons.empty())
      list.back()["reasons"] = reasons;
  }
  return list;
}

} // namespace tessera::dump
