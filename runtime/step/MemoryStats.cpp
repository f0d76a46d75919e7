//===- MemoryStats.cpp - bytes by class from the plan ----------------------===//

#include "runtime/step/Session.h"

#include <algorithm>

namespace tessera {

std::vector<uint64_t> peakBytesByClass(const artifact::Program &program) {
  std::vector<uint64_t> atPeak(static_cast<size_t>(artifact::MemoryClass::MAX) + 1, 0);
  const auto *slots = program.slots();
  if (!slots)
    return atPeak;
  // Sweep over the flattened list: what begins at an instruction is live with what ends there.
  struct Change {
    uint64_t position;
    bool begins;
    uint32_t slot;
  };
  std::vector<Change> changes;
  for (uint32_t slot = 0; slot < slots->size(); ++slot) {
    changes.push_back({slots->Get(slot)->first_instruction(), true, slot});
    changes.push_back({uint64_t{slots->Get(slot)->last_instruction()} + 1, false, slot});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
    return a.position != b.position ? a.position < b.position : !a.begins && b.begins;
  });
  std::vector<uint64_t> live(atPeak.size(), 0);
  uint64_t total = 0, peak = 0;
  for (const Change &change : changes) {
    const artifact::Slot &slot = *slots->Get(change.slot);
    uint64_t &bytes = live[static_cast<size_t>(slot.memory_class())];
    bytes = change.begins ? bytes + slot.bytes() : bytes - slot.bytes();
    total = change.begins ? total + slot.bytes() : total - slot.bytes();
    if (total > peak) {
      peak = total;
      atPeak = live;
    }
  }
  return atPeak;
}

} // namespace tessera
