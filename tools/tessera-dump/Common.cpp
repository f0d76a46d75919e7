//===- Common.cpp - instructions and buffers as text ----------------------------------===//

#include "runtime/artifact/CollectiveNames.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

namespace tessera::dump {

using artifact::Operation;

using Instructions = flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>>;

static void flatten(const Instructions &instructions, int64_t iterations, int depth,
                    std::vector<FlatInstruction> &list) {
  for (const artifact::Instruction *instruction : instructions) {
    list.push_back({static_cast<uint32_t>(list.size()), iterations, depth, instruction});
    const artifact::Repeat *repeat = instruction->operation_as_Repeat();
    if (repeat && repeat->body())
      flatten(*repeat->body(), iterations * repeat->count(), depth + 1, list);
  }
}

std::vector<FlatInstruction> flatten(const artifact::Program &program) {
  std::vector<FlatInstruction> list;
  if (program.instructions())
    flatten(*program.instructions(), 1, 0, list);
  return list;
}

std::string reductionOf(const artifact::Collective &collective) {
  if (collective.kind() != artifact::CollectiveKind::AllReduce &&
      collective.kind() != artifact::CollectiveKind::ReduceScatter)
    return "";
  return std::string(toString(collective.reduction()));
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
    return std::string(toString(instruction.operation_as_Collective()->kind()));
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

std::string locationOf(const artifact::Package &package, const artifact::Instruction &instruction) {
  if (!package.locations() || instruction.location() >= package.locations()->size())
    return "";
  return package.locations()->Get(instruction.location())->str();
}

std::string dtypeName(artifact::DataType dtype) {
  std::string name = artifact::EnumNameDataType(dtype);
  for (char &c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string bufferText(const artifact::Package &package, uint32_t index) {
  const artifact::Buffer *buffer = package.buffers()->Get(index);
  std::string text = fmt::format("b{} {}[", index, dtypeName(buffer->dtype()));
  if (buffer->shape())
    for (uint32_t i = 0; i < buffer->shape()->size(); ++i) {
      if (i)
        text += ',';
      text += std::to_string(buffer->shape()->Get(i));
    }
  return text + "]";
}

uint64_t bufferBytes(const artifact::Package &package, uint32_t index) {
  const artifact::Buffer *buffer = package.buffers()->Get(index);
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
