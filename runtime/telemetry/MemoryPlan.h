//===- MemoryPlan.h - what a program will need, by class ---------------------------===//
//
// Reads the planned slots of an artifact: bytes of each memory class at the moment of the highest demand, before
// anything is allocated.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_MEMORYPLAN_H
#define TESSERA_RUNTIME_TELEMETRY_MEMORYPLAN_H

#include "runtime/artifact/artifact_generated.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera {

inline constexpr size_t numMemoryClasses = static_cast<size_t>(artifact::MemoryClass::MAX) + 1;

/// "parameters", "gradients", ….
std::string_view toString(artifact::MemoryClass memoryClass);
std::string_view toString(artifact::ArenaKind kind);

struct MemoryPlan {
  std::array<uint64_t, numMemoryClasses> bytesAtPeak{}; ///< Live when the sum is highest.
  std::array<uint64_t, numMemoryClasses> bytesInAll{};  ///< Of all slots, as if none shared memory.
  uint64_t peakBytes = 0;
  uint32_t peakInstruction = 0;
  uint64_t arenaBytes = 0; ///< What is reserved on the device: peak, alignment and gaps.
  uint64_t hostBytes = 0;  ///< What is reserved on the host for offloaded classes, which the other numbers leave out.
};

/// Of one program of the package; what is reserved is for all.
MemoryPlan memoryPlan(const artifact::Package &package, const artifact::Program &program);

/// How the live bytes of the device's slots change in a program, by class: at the first instruction of a slot, and
/// after its last.
using MemoryChanges = std::map<uint64_t, std::array<int64_t, numMemoryClasses>>;
MemoryChanges memoryChanges(const artifact::Package &package, const artifact::Program &program);

/// "12.3 MiB".
std::string formatBytes(uint64_t bytes);

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_MEMORYPLAN_H
