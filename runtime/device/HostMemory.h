//===- HostMemory.h - how much memory a process may use --------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_HOSTMEMORY_H
#define TESSERA_RUNTIME_DEVICE_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace tessera {

/// In bytes: a rank's part of what the machine has, or less where a control group (a container, a job) limits this
/// process. Beyond that the system kills without a word. `root` stands before /proc and /sys, for tests.
uint64_t hostMemoryPerRank(uint64_t ranksOnHost, const std::string &root = "");

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_HOSTMEMORY_H
