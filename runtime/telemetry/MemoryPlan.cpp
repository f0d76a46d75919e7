//===- MemoryPlan.cpp - what a program will need, by class --------------------------===//

#include "runtime/telemetry/MemoryPlan.h"

#include <fmt/format.h>

namespace tessera {

std::string_view toString(artifact::MemoryClass memoryClass) {
  static constexpr std::string_view names[numMemoryClasses] = {"parameters",    "gradients", "optimizer", "activations",
                                                               "communication", "workspace", "inputs"};
  return names[static_cast<size_t>(memoryClass)];
}

std::string_view toString(artifact::ArenaKind kind) {
  static constexpr std::string_view names[] = {"state", "activations", "host"};
  return names[static_cast<size_t>(kind)];
}

static bool isOnHost(const artifact::Package &package, const artifact::Slot &slot) {
  return package.arenas()->Get(slot.arena())->kind() == artifact::ArenaKind::Host;
}

MemoryChanges memoryChanges(const artifact::Package &package, const artifact::Program &program) {
  MemoryChanges changes;
  if (!program.slots())
    return changes;
  for (const artifact::Slot *slot : *program.slots()) {
    if (isOnHost(package, *slot))
      continue;
    auto index = static_cast<size_t>(slot->memory_class());
    changes[slot->first_instruction()][index] += static_cast<int64_t>(slot->bytes());
    changes[uint64_t{slot->last_instruction()} + 1][index] -= static_cast<int64_t>(slot->bytes());
  }
  return changes;
}

MemoryPlan memoryPlan(const artifact::Package &package, const artifact::Program &program) {
  MemoryPlan plan;
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      (arena->kind() == artifact::ArenaKind::Host ? plan.hostBytes : plan.arenaBytes) += arena->bytes();
  if (!program.slots())
    return plan;
  for (const artifact::Slot *slot : *program.slots())
    if (!isOnHost(package, *slot))
      plan.bytesInAll[static_cast<size_t>(slot->memory_class())] += slot->bytes();
  std::array<uint64_t, numMemoryClasses> live{};
  for (const auto &[instruction, change] : memoryChanges(package, program)) {
    uint64_t sum = 0;
    for (size_t i = 0; i < numMemoryClasses; ++i)
      sum += live[i] += static_cast<uint64_t>(change[i]);
    if (sum > plan.peakBytes) {
      plan.peakBytes = sum;
      plan.peakInstruction = static_cast<uint32_t>(instruction);
      plan.bytesAtPeak = live;
    }
  }
  return plan;
}

std::string formatBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 6; ++unit)
    value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, units[unit]);
}

} // namespace tessera
