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

static size_t roundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/// Takes the pages of a range, which begins at a page, by one call; where the kernel has none (before Linux 5.14), by
/// touching each.
static void populate(std::byte *begin, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(begin, bytes, MADV_POPULATE_WRITE) == 0)
    return;
#endif
  for (size_t offset = 0; offset < bytes; offset += pageBytes)
    begin[offset] = std::byte{0};
}

Result<Arena> Arena::create(uint64_t bytes, const Team &team) {
  Arena arena;
  if (bytes == 0)
    return arena;
  const bool isLarge = bytes >= 4 * hugePageBytes;
  // Room to begin at the border of a huge page; what is not used of it goes back at once.
  const size_t room = isLarge ? hugePageBytes : 0;
  if (bytes > SIZE_MAX - room - pageBytes)
    return TESSERA_ERROR(Exhausted, "cannot allocate " + std::to_string(bytes) + " bytes");
  const size_t size = roundUp(bytes, pageBytes);
  void *mapped =
      ::mmap(nullptr, size + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return TESSERA_ERROR(Exhausted, "cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  arena.base = static_cast<std::byte *>(mapped);
  arena.size = size;
  if (isLarge) {
    const size_t before =
        roundUp(reinterpret_cast<uintptr_t>(mapped), hugePageBytes) - reinterpret_cast<uintptr_t>(mapped);
    arena.base += before;
    if (before > 0)
      ::munmap(mapped, before);
    if (before < room)
      ::munmap(arena.base + size, room - before);
    ::madvise(arena.base, size, MADV_HUGEPAGE); // only advice: without huge pages everything works, slower
  }
  team.run(static_cast<int64_t>(size), hugePageBytes,
           [&](int64_t begin, int64_t end) { populate(arena.base + begin, static_cast<size_t>(end - begin)); });
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
