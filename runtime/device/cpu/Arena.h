//===- Arena.h - one allocation that lives as long as a session ------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ARENA_H
#define TESSERA_RUNTIME_DEVICE_CPU_ARENA_H

#include "runtime/base/Status.h"
#include "runtime/device/cpu/Team.h"

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

/// Page-aligned zeroed memory, on huge pages where the system has them. Its pages are touched first by the threads that
/// will use it, so that on a NUMA machine they are theirs.
class Arena {
public:
  Arena() = default;
  static Result<Arena> create(uint64_t bytes, const Team &team);
  Arena(Arena &&other) noexcept { *this = std::move(other); }
  Arena &operator=(Arena &&other) noexcept;
  ~Arena();

  std::byte *data() const { return base; }
  size_t allocatedBytes() const { return size; }

private:
  std::byte *base = nullptr;
  size_t size = 0;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ARENA_H
