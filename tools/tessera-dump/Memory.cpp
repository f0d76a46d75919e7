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

/// Instructions [begin, end) of a step between which the most live bytes are shown.
struct Part {
  const char *name;
  uint64_t begin, end;
};

/// By the sources of the instructions: what is before the first gradient, from there to the last one, and behind it.
static std::vector<Part> partsOf(const artifact::Package &package, const artifact::Program &program) {
  const std::vector<FlatInstruction> instructions = flatten(program);
  const uint64_t end = instructions.size();
  uint64_t first = end, behind = end;
  for (uint64_t index = 0; index < end; ++index)
    if (locationOf(package, *instructions[index].instruction).starts_with("grad(")) {
      first = std::min(first, index);
      behind = index + 1;
    }
  if (first == end)
    return {{"forward", 0, end}};
  return {{"forward", 0, first}, {"backward", first, behind}, {"update", behind, end}};
}

/// The most live bytes of each class, and of all together (the last one), in each part.
static std::vector<std::array<uint64_t, numMemoryClasses + 1>>
mostOf(const std::vector<Part> &parts, const artifact::Package &package, const artifact::Program &program) {
  std::vector<std::array<uint64_t, numMemoryClasses + 1>> most(parts.size());
  std::array<uint64_t, numMemoryClasses + 1> live{};
  const MemoryChanges changes = memoryChanges(package, program);
  auto next = changes.begin();
  for (size_t part = 0; part < parts.size(); ++part) {
    // What lives on from the part before, once what is new at its first instruction is there.
    for (uint64_t at = parts[part].begin; at < parts[part].end;) {
      for (; next != changes.end() && next->first <= at; ++next)
        for (size_t i = 0; i < numMemoryClasses; ++i) {
          live[i] += static_cast<uint64_t>(next->second[i]);
          live[numMemoryClasses] += static_cast<uint64_t>(next->second[i]);
        }
      for (size_t i = 0; i <= numMemoryClasses; ++i)
        most[part][i] = std::max(most[part][i], live[i]);
      at = next == changes.end() ? parts[part].end : std::min(next->first, parts[part].end);
    }
  }
  return most;
}

static std::string partsText(const artifact::Package &package, const artifact::Program &program) {
  const std::vector<Part> parts = partsOf(package, program);
  const auto most = mostOf(parts, package, program);
  std::string text = "most of each class by part of the step (instructions)\n  " + std::string(14, ' ');
  for (const Part &part : parts)
    text +=
        fmt::format(" {:>21}", fmt::format("{} {}-{}", part.name, part.begin, std::max(part.end, part.begin + 1) - 1));
  for (size_t i = 0; i <= numMemoryClasses; ++i) {
    text += fmt::format("\n  {:<14}", i < numMemoryClasses ? toString(static_cast<MemoryClass>(i)) : "together");
    for (const auto &bytes : most)
      text += fmt::format(" {:>21}", formatBytes(bytes[i]));
  }
  return text + "\n";
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
  text += "\n\n" + partsText(package, program) + "\narenas\n";
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
  Json classes = Json::object(), parts = Json::array(), arenas = Json::array(), slots = Json::array();
  const std::vector<Part> partsOfStep = partsOf(package, program);
  const auto most = mostOf(partsOfStep, package, program);
  for (size_t part = 0; part < partsOfStep.size(); ++part) {
    Json bytes = Json::object();
    for (size_t i = 0; i < numMemoryClasses; ++i)
      bytes[std::string(toString(static_cast<MemoryClass>(i)))] = most[part][i];
    parts.push_back({{"name", partsOfStep[part].name},
                     {"first_instruction", partsOfStep[part].begin},
                     {"end", partsOfStep[part].end},
                     {"most", most[part].back()},
                     {"most_by_class", std::move(bytes)}});
  }
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
          {"classes", std::move(classes)}, {"parts", std::move(parts)},
          {"arenas", std::move(arenas)},   {"slots", std::move(slots)}};
}

} // namespace tessera::dump
