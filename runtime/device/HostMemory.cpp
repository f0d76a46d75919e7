//===- HostMemory.cpp - how much memory a process may use ------------------===//

#include "runtime/device/HostMemory.h"

#include <algorithm>
#include <fstream>
#include <unistd.h>

namespace tessera {

/// The number in a file; "max" and what is no number are no limit.
static uint64_t limitIn(const std::string &path) {
  uint64_t bytes = 0;
  return std::ifstream(path) >> bytes ? bytes : UINT64_MAX;
}

/// The least limit of a group and those around it. In a container the path may begin outside of what is mounted: the
/// folder itself is then the group.
static uint64_t leastLimit(const std::string &mount, std::string group, const std::string &file) {
  uint64_t least = limitIn(mount + "/" + file);
  for (; group.size() > 1; group.resize(std::min(group.find_last_of('/'), group.size() - 1)))
    least = std::min(least, limitIn(std::string(mount).append(group).append("/").append(file)));
  return least;
}

uint64_t hostMemoryPerRank(uint64_t ranksOnHost, const std::string &root) {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) /
                   std::max<uint64_t>(ranksOnHost, 1);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) { // "<number>:<controllers>:<path>"
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty())
      bytes = std::min(bytes, leastLimit(root + "/sys/fs/cgroup", path, "memory.max"));
    else if (controllers == "memory")
      bytes = std::min(bytes, leastLimit(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return bytes;
}

} // namespace tessera
