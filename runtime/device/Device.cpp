//===- Device.cpp - what devices share -------------------------------------===//

#include "runtime/device/Device.h"

#include <set>

namespace tessera {

static void walk(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> *instructions,
                 const std::function<void(const artifact::Instruction &)> &body) {
  if (instructions)
    for (const artifact::Instruction *instruction : *instructions) {
      body(*instruction);
      if (const artifact::Repeat *repeat = instruction->operation_as_Repeat())
        walk(repeat->body(), body);
    }
}

void forEachInstruction(const artifact::Package &package,
                        const std::function<void(const artifact::Instruction &)> &body) {
  for (const artifact::Program *program : *package.programs())
    walk(program->instructions(), body);
}

std::vector<std::pair<uint32_t, int>> collectiveChannels(const artifact::Package &package) {
  std::set<std::pair<uint32_t, int>> channels;
  forEachInstruction(package, [&](const artifact::Instruction &instruction) {
    if (const artifact::Collective *collective = instruction.operation_as_Collective())
      channels.emplace(collective->group(), instruction.stream());
  });
  return {channels.begin(), channels.end()};
}

size_t numInstructions(const artifact::Package &package) {
  size_t count = 0;
  forEachInstruction(package, [&](const artifact::Instruction &) { ++count; });
  return count;
}

std::string asymmetricCollective(const artifact::Package &package) {
  std::string found;
  forEachInstruction(package, [&](const artifact::Instruction &instruction) {
    const artifact::Collective *collective = instruction.operation_as_Collective();
    if (!collective || !found.empty())
      return;
    auto isSymmetric = [&](uint32_t buffer) { return package.buffers()->Get(buffer)->rank_group() < 0; };
    bool isInput = isSymmetric(collective->input());
    if (!isInput || !isSymmetric(collective->output()))
      found = std::string(artifact::EnumNameCollectiveKind(collective->kind())) + " of node '" +
              std::string(locationOf(package, instruction)) + "' has its " + (isInput ? "output" : "input") +
              " elsewhere on each rank";
  });
  return found;
}

std::string_view locationOf(const artifact::Package &package, const artifact::Instruction &instruction) {
  const auto *locations = package.locations();
  if (!locations || instruction.location() >= locations->size())
    return {};
  return locations->Get(instruction.location())->string_view();
}

} // namespace tessera
