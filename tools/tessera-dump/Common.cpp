//===- Common.cpp - instructions and buffers as text ----------------------------------===//

#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

namespace tessera::dump {

using artifact::Operation;

std::vector<FlatInstruction> flatten(const artifact::Program &program) {
  std::vector<FlatInstruction> list;
  if (!program.instructions())
    return list;
  uint32_t number = 0;
  for (const artifact::Instruction *instruction : *program.instructions()) {
    list.push_back({number++, 1, false, instruction});
    const artifact::Repeat *repeat = instruction->operation_as_Repeat();
    if (!repeat || !repeat->body())
      continue;
    for (const artifact::Instruction *inner : *repeat->body())
      list.push_back({number++, repeat->count(), true, inner});
  }
  return list;
}

std::string reductionOf(const artifact::Collective &collective) {
  if (collective.kind() != artifact::CollectiveKind::AllReduce &&
      collective.kind() != artifact::CollectiveKind::ReduceScatter)
    return "";
  switch (collective.reduction()) {
  case artifact::ReductionKind::Sum:
    return "sum";
  case artifact::ReductionKind::Max:
    return "max";
  case artifact::ReductionKind::Min:
    return "min";
  }
  return "reduction";
}

std::string kindOf(const artifact::Instruction &instruction) {
  switch (instruction.operation_type()) {
  case Operation::Launch:
    return "launch";
  case Operation::Gemm:
    return "gemm";
  case Operation::Conv:
    return "conv";
  case Operation::Attention:
    return "attention";
  case Operation::AttentionGrad:
    return "attention_grad";
  case Operation::Collective:
    switch (instruction.operation_as_Collective()->kind()) {
    case artifact::CollectiveKind::AllGather:
      return "all_gather";
    case artifact::CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case artifact::CollectiveKind::AllReduce:
      return "all_reduce";
    case artifact::CollectiveKind::AllToAll:
      return "all_to_all";
    case artifact::CollectiveKind::Permute:
      return "permute";
    }
    return "collective";
  case Operation::Copy:
    return "copy";
  case Operation::Fill:
    return "fill";
  case Operation::AxisIndex:
    return "axis_index";
  case Operation::Record:
    return "record";
  case Operation::Wait:
    return "wait";
  case Operation::Repeat:
    return "repeat";
  default:
    return "unknown";
  }
}

std::string streamName(int stream) {
  static constexpr const char *names[] = {"compute", "gather", "reduce", "copies"};
  return stream < 4 ? names[stream] : "stream " + std::to_string(stream);
}

std::string locationOf(const artifact::Program &program, const artifact::Instruction &instruction) {
  if (!program.locations() || instruction.location() >= program.locations()->size())
    return "";
  return program.locations()->Get(instruction.location())->str();
}

std::string dtypeName(artifact::DataType dtype) {
  std::string name = artifact::EnumNameDataType(dtype);
  for (char &c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string bufferText(const artifact::Program &program, uint32_t index) {
  const artifact::Buffer *buffer = program.buffers()->Get(index);
  std::string text = fmt::format("b{} {}[", index, dtypeName(buffer->dtype()));
  if (buffer->shape())
    for (uint32_t i = 0; i < buffer->shape()->size(); ++i) {
      if (i)
        text += ',';
      text += std::to_string(buffer->shape()->Get(i));
    }
  return text + "]";
}

uint64_t bufferBytes(const artifact::Program &program, uint32_t index) {
  const artifact::Buffer *buffer = program.buffers()->Get(index);
  uint64_t bytes = byteWidth(buffer->dtype());
  if (buffer->shape())
    for (int64_t size : *buffer->shape())
      bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::string groupText(const Artifact &artifact, int64_t group) {
  std::string text;
  for (const std::string &axis : artifact.groupAxes(group)) {
    if (!text.empty())
      text += ',';
    text += axis;
  }
  return fmt::format("{}({})", text, artifact.groupSize(group));
}

} // namespace tessera::dump
