//===- Arena.cpp - one allocation that lives as long as a session ----------===//

#include "runtime/device/cpu/Arena.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace tessera::cpu {

static constexpr size_t pageBytes = 4096;
static constexpr size_t hugePageBytes = size_t{2} << 20;

Result<Arena> Arena::create(uint64_t bytes, const Team &team) {
  Arena arena;
  if (bytes == 0)
    return arena;
  size_t unit = bytes >= 4 * hugePageBytes ? hugePageBytes : pageBytes;
  if (bytes > SIZE_MAX - unit)
    return TESSERA_ERROR(Exhausted, "cannot allocate an arena of " + std::to_string(bytes) + " bytes");
  size_t size = (bytes + unit - 1) / unit * unit;
  void *base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return TESSERA_ERROR(Exhausted,
                         "cannot allocate an arena of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  if (unit == hugePageBytes)
    ::madvise(base, size, MADV_HUGEPAGE); // only advice: without huge pages everything works, slower
  arena.base = static_cast<std::byte *>(base);
  arena.size = size;
  team.run(static_cast<int64_t>(size / pageBytes), 1, [&](int64_t begin, int64_t end) {
    for (int64_t page = begin; page < end; ++page)
      arena.base[page * pageBytes] = std::byte{0};
  });
  return arena;
}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(base, other.base);
  std::swap(size, other.size);
  return *this;
}

Arena::~Arena() {
  if (base)
    ::munmap(base, size);
}

} // namespace tessera::cpu
