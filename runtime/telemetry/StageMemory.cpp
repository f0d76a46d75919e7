//===- StageMemory.cpp - memory before, and after, the model is there ------===//

#include "runtime/telemetry/StageMemory.h"

#include "runtime/telemetry/MemoryPlan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera {

std::string stageToJson(const std::string &stage, int64_t step, const std::vector<StageMemory> &ranks) {
  nlohmann::ordered_json json = {{"stage", stage}, {"step", step}};
  auto &list = json["ranks"] = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    list.push_back({{"rank", rank},
                    {"allocated", ranks[rank].allocated},
                    {"peak", ranks[rank].peak},
                    {"reserved", ranks[rank].reserved},
                    {"host", ranks[rank].host},
                    {"rss", ranks[rank].process.resident},
                    {"rss_peak", ranks[rank].process.peakResident}});
  return json.dump();
}

std::vector<std::string> stageLines(const std::string &stage, const std::vector<StageMemory> &ranks) {
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const StageMemory &memory = ranks[rank];
    lines.push_back(fmt::format("[rank {}] memory {}: allocated {}, max allocated {}, reserved {}, rss {}", rank, stage,
                                formatBytes(memory.allocated), formatBytes(memory.peak), formatBytes(memory.reserved),
                                formatBytes(memory.process.resident)));
    if (memory.host > 0)
      lines.back() += ", on the host " + formatBytes(memory.host);
  }
  return lines;
}

uint64_t stateBytes(const artifact::Package &package) {
  uint64_t bytes = 0;
  if (const auto *slots = package.programs()->Get(0)->slots())
    for (const artifact::Slot *slot : *slots)
      if (package.arenas()->Get(slot->arena())->kind() == artifact::ArenaKind::State)
        bytes += slot->bytes();
  return bytes;
}

} // namespace tessera
