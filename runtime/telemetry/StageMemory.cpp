//===- StageMemory.cpp - memory before, and after, the model is there ------===//

#include "runtime/telemetry/StageMemory.h"

#include "runtime/telemetry/MemoryPlan.h"

#include <nlohmann/json.hpp>

#include <algorithm>

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

std::string stageLine(const std::string &stage, const std::vector<StageMemory> &ranks) {
  auto most = [&](auto bytesOf) {
    uint64_t found = 0;
    for (const StageMemory &rank : ranks)
      found = std::max(found, bytesOf(rank));
    return formatBytes(found);
  };
  std::string line = "memory " + stage + ": " + most([](const StageMemory &rank) { return rank.allocated; }) +
                     " live, " + most([](const StageMemory &rank) { return rank.peak; }) + " at the peak, " +
                     most([](const StageMemory &rank) { return rank.reserved; }) + " reserved";
  if (std::any_of(ranks.begin(), ranks.end(), [](const StageMemory &rank) { return rank.host > 0; }))
    line += ", " + most([](const StageMemory &rank) { return rank.host; }) + " on the host";
  line += ", rss " + most([](const StageMemory &rank) { return rank.process.resident; });
  return ranks.size() > 1 ? line + " (the most of any rank)" : line;
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
