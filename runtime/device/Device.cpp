//===- Device.cpp - what devices share -------------------------------------===//

#include "runtime/device/Device.h"

#include <set>

namespace tessera {

static void collectChannels(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &instructions,
                            std::set<std::pair<uint32_t, int>> &found) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective())
      found.emplace(collective->group(), instruction->stream());
    else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body())
      collectChannels(*repeat->body(), found);
  }
}

std::vector<std::pair<uint32_t, int>> collectiveChannels(const artifact::Program &program) {
  std::set<std::pair<uint32_t, int>> channels;
  if (program.instructions())
    collectChannels(*program.instructions(), channels);
  return {channels.begin(), channels.end()};
}

std::string_view locationOf(const artifact::Program &program, const artifact::Instruction &instruction) {
  const auto *locations = program.locations();
  if (!locations || instruction.location() >= locations->size())
    return {};
  return locations->Get(instruction.location())->string_view();
}

} // namespace tessera
