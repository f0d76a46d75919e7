//===- Memory.cpp - planned memory by class, arena and slot -----------------------------===//

#include "runtime/telemetry/MemoryPlan.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::dump {

using artifact::MemoryClass;

static std::vector<const artifact::Slot *> sortedSlots(const artifact::Program &program) {
  std::vector<const artifact::Slot *> slots;
  if (program.slots())
    slots.assign(program.slots()->begin(), program.slots()->end());
  std::stable_sort(slots.begin(), slots.end(), [](const artifact::Slot *a, const artifact::Slot *b) {
    return std::tuple(a->arena(), a->offset(), a->first_instruction()) <
           std::tuple(b->arena(), b->offset(), b->first_instruction());
  });
  return slots;
}

static std::string slotName(const artifact::Slot &slot) { return slot.name() ? slot.name()->str() : ""; }

/// "···████···": when a slot is live, over the whole step.
static std::string timeline(const artifact::Slot &slot, size_t numInstructions, int columns) {
  std::string text;
  for (int column = 0; column < columns; ++column) {
    uint64_t begin = column * numInstructions / columns, end = (column + 1) * numInstructions / columns;
    bool live = slot.first_instruction() < std::max(end, begin + 1) && slot.last_instruction() >= begin;
    text += live ? '#' : '.';
  }
  return text;
}

std::string largestText(const Artifact &artifact, size_t number, int count) {
  const artifact::Package &package = artifact.package();
  const artifact::Program &program = artifact.program(number);
  const uint32_t moment = memoryPlan(package, program).peakInstruction;
  std::vector<const artifact::Slot *> slots;
  for (const artifact::Slot *slot : sortedSlots(program))
    if (slot->first_instruction() <= moment && moment <= slot->last_instruction())
      slots.push_back(slot);
  std::stable_sort(slots.begin(), slots.end(),
                   [](const artifact::Slot *a, const artifact::Slot *b) { return a->bytes() > b->bytes(); });
  const size_t shown = std::min<size_t>(slots.size(), count);
  std::string text =
      fmt::format("largest of {} slots that are live at the peak (instruction {})\n", slots.size(), moment);
  for (size_t i = 0; i < shown; ++i) {
    const bool isOnHost = package.arenas()->Get(slots[i]->arena())->kind() == artifact::ArenaKind::Host;
    text += fmt::format("  {:>10} {:<6} {:<13} {:>6}-{:<6} {}\n", formatBytes(slots[i]->bytes()),
                        isOnHost ? "host" : "device", toString(slots[i]->memory_class()), slots[i]->first_instruction(),
                        slots[i]->last_instruction(), slotName(*slots[i]));
  }
  return text;
}

std::string memoryText(const Artifact &artifact, size_t number, int columns) {
  const artifact::Package &package = artifact.package();
  const artifact::Program &program = artifact.program(number);
  MemoryPlan plan = memoryPlan(package, program);
  size_t numInstructions = flatten(program).size();
  std::string text = fmt::format("memory per rank ({} ranks)\n  {:<14} {:>14} {:>14}\n", artifact.numRanks(), "class",
                                 "at the peak", "all slots");
  uint64_t all = 0;
  for (size_t i = 0; i < numMemoryClasses; ++i) {
    text += fmt::format("  {:<14} {:>14} {:>14}\n", toString(static_cast<MemoryClass>(i)),
                        formatBytes(plan.bytesAtPeak[i]), formatBytes(plan.bytesInAll[i]));
    all += plan.bytesInAll[i];
  }
  text += fmt::format("  {:<14} {:>14} {:>14}\n", "sum", formatBytes(plan.peakBytes), formatBytes(all));
  text += fmt::format("  reserved {} ({} bytes), peak at instruction {}", formatBytes(plan.arenaBytes), plan.arenaBytes,
                      plan.peakInstruction);
  if (plan.arenaBytes > 0)
    text += fmt::format("; {:.1f} % of the reserved bytes are in use then",
                        100.0 * static_cast<double>(plan.peakBytes) / static_cast<double>(plan.arenaBytes));
  if (plan.hostBytes > 0)
    text += fmt::format("\n  on the host {} ({} bytes)", formatBytes(plan.hostBytes), plan.hostBytes);
  text += "\n\narenas\n";
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      text += fmt::format("  {:<20} {:<6} {:<12} {:>10} ({} bytes)\n", arena->name()->str(),
                          arena->kind() == artifact::ArenaKind::Host ? "host" : "device", toString(arena->kind()),
                          formatBytes(arena->bytes()), arena->bytes());
  if (columns == 0)
    return text;
  text += fmt::format("\nslots (live from instruction to instruction, of {})\n", numInstructions);
  uint32_t arena = UINT32_MAX;
  for (const artifact::Slot *slot : sortedSlots(program)) {
    if (slot->arena() != arena) {
      arena = slot->arena();
      text += fmt::format("  {}:\n", package.arenas()->Get(arena)->name()->str());
    }
    text += fmt::format("  {:>12} {:>12} {:<13} {:>6}-{:<6} {} {}\n", slot->offset(), slot->bytes(),
                        toString(slot->memory_class()), slot->first_instruction(), slot->last_instruction(),
                        timeline(*slot, numInstructions, columns), slotName(*slot));
  }
  return text;
}

Json memoryJson(const Artifact &artifact, size_t number) {
  const artifact::Package &package = artifact.package();
  const artifact::Program &program = artifact.program(number);
  MemoryPlan plan = memoryPlan(package, program);
  Json classes = Json::object(), arenas = Json::array(), slots = Json::array();
  for (size_t i = 0; i < numMemoryClasses; ++i)
    classes[std::string(toString(static_cast<MemoryClass>(i)))] = {{"at_peak", plan.bytesAtPeak[i]},
                                                                   {"all_slots", plan.bytesInAll[i]}};
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      arenas.push_back({{"name", arena->name()->str()}, {"kind", toString(arena->kind())}, {"bytes", arena->bytes()}});
  for (const artifact::Slot *slot : sortedSlots(program))
    slots.push_back({{"name", slotName(*slot)},
                     {"arena", slot->arena()},
                     {"offset", slot->offset()},
                     {"bytes", slot->bytes()},
                     {"class", toString(slot->memory_class())},
                     {"first_instruction", slot->first_instruction()},
                     {"last_instruction", slot->last_instruction()}});
  return {{"reserved", plan.arenaBytes},   {"host", plan.hostBytes},
          {"peak", plan.peakBytes},        {"peak_instruction", plan.peakInstruction},
          {"classes", std::move(classes)}, {"arenas", std::move(arenas)},
          {"slots", std::move(slots)}};
}

} // namespace tessera::dump
