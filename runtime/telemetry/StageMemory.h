//===- StageMemory.h - memory before, and after, the model is there --------===//
//
// Three lines of the metrics stream: "after data creation", "after model creation" and "after warm-up" (the first
// step), each with every rank's bytes. What the plan promised can be compared with what the process holds.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_STAGEMEMORY_H
#define TESSERA_RUNTIME_TELEMETRY_STAGEMEMORY_H

#include "runtime/telemetry/Metrics.h"

#include <string>
#include <vector>

namespace tessera {

/// Bytes of one rank.
struct StageMemory {
  uint64_t allocated = 0; ///< Live in the arenas now: parameters, optimizer and other state.
  uint64_t peak = 0;      ///< The most that was live so far.
  uint64_t reserved = 0;  ///< Arenas and workspace, as taken from the device.
  uint64_t host = 0;      ///< The arena on the host (--offload), which the others leave out.
  ProcessMemory process;  ///< Of the process that holds the rank.
};

/// One JSON object in one line, with one entry per rank.
std::string stageToJson(const std::string &stage, int64_t step, const std::vector<StageMemory> &ranks);

/// The same for people, a line for each rank: "[rank 0] memory after warm-up: allocated 1.20 MiB, …".
std::vector<std::string> stageLines(const std::string &stage, const std::vector<StageMemory> &ranks);

/// Bytes that are live between steps.
uint64_t stateBytes(const artifact::Package &package);

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_STAGEMEMORY_H
