//===- MemorySnapshot.cpp - memory over the time of a step -----------------===//

#include "runtime/telemetry/MemorySnapshot.h"

#include "runtime/base/File.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

void MemorySnapshot::record(const TraceEvent &event) {
  if (event.rank != rank)
    return;
  std::lock_guard lock(mutex);
  step = event.step;
  begins.emplace(event.instruction, event.beginNanoseconds);
  end = std::max(end, event.endNanoseconds);
}

Status MemorySnapshot::write(const std::string &path, const artifact::Package &package, uint64_t reservedBytes) const {
  std::lock_guard lock(mutex);
  using Json = nlohmann::ordered_json;
  const artifact::Program &program = *package.programs()->Get(0);
  MemoryPlan plan = memoryPlan(package, program);
  const MemoryChanges changes = memoryChanges(package, program);
  int64_t origin = end;
  for (auto [instruction, begin] : begins)
    origin = std::min(origin, begin);
  Json points = Json::array();
  std::array<int64_t, numMemoryClasses> live{};
  int64_t time = origin;
  auto addPoint = [&](uint32_t instruction) {
    Json classes = Json::object();
    int64_t sum = 0;
    for (size_t i = 0; i < numMemoryClasses; ++i) {
      classes[std::string(toString(static_cast<artifact::MemoryClass>(i)))] = live[i];
      sum += live[i];
    }
    points.push_back({{"instruction", instruction},
                      {"seconds", static_cast<double>(time - origin) / 1e9},
                      {"allocated", sum},
                      {"by_class", std::move(classes)}});
  };
  auto change = changes.begin();
  for (auto [instruction, begin] : begins) {
    // Streams run beside each other: memory is taken in program order, not before the instruction ahead.
    time = std::max(time, begin);
    bool hasChanged = false;
    for (; change != changes.end() && change->first <= instruction; ++change, hasChanged = true)
      for (size_t i = 0; i < numMemoryClasses; ++i)
        live[i] += change->second[i];
    if (hasChanged)
      addPoint(instruction);
  }
  if (!begins.empty()) {
    time = std::max(time, end);
    addPoint(begins.rbegin()->first);
  }
  Json arenas = Json::array(), slots = Json::array();
  for (const artifact::Arena *arena : *package.arenas())
    arenas.push_back({{"kind", std::string(toString(arena->kind()))}, {"bytes", arena->bytes()}});
  for (size_t i = 0; program.slots() && i < program.slots()->size(); ++i) {
    const artifact::Slot &slot = *program.slots()->Get(i);
    slots.push_back({{"name", slot.name() ? slot.name()->str() : ""},
                     {"class", std::string(toString(slot.memory_class()))},
                     {"arena", slot.arena()},
                     {"offset", slot.offset()},
                     {"bytes", slot.bytes()},
                     {"first_instruction", slot.first_instruction()},
                     {"last_instruction", slot.last_instruction()}});
  }
  Json json = {{"rank", rank},
               {"step", step},
               {"reserved", reservedBytes},
               {"planned", plan.arenaBytes},
               {"peak", plan.peakBytes},
               {"arenas", std::move(arenas)},
               {"slots", std::move(slots)},
               {"points", std::move(points)}};
  return writeFileAtomically(path, json.dump() + "\n");
}

} // namespace tessera
