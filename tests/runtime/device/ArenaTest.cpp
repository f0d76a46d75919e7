//===- ArenaTest.cpp - memory is zero, present, and no more than asked for --===//

#include "runtime/device/cpu/Arena.h"
#include "tests/runtime/TestSupport.h"

#include <algorithm>
#include <sys/mman.h>
#include <vector>

namespace tessera::cpu {
namespace {

constexpr size_t page = 4096, hugePage = size_t{2} << 20;

TEST(Arena, HasThePagesItNeedsAndNoMore) {
  for (size_t bytes :
       {size_t{1}, page, page + 1, 4 * hugePage - 1, 4 * hugePage, 4 * hugePage + 1, 14 * hugePage - page})
    for (int threads : {1, 3}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, " + std::to_string(threads) + " threads");
      auto arena = Arena::create(bytes, Team(threads));
      ASSERT_STATUS_OK(arena);
      EXPECT_EQ(arena->allocatedBytes(), (bytes + page - 1) / page * page);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->data()) % (bytes >= 4 * hugePage ? hugePage : page), 0u);
      std::vector<unsigned char> isResident(arena->allocatedBytes() / page);
      ASSERT_EQ(::mincore(arena->data(), arena->allocatedBytes(), isResident.data()), 0);
      EXPECT_TRUE(std::all_of(isResident.begin(), isResident.end(), [](unsigned char each) { return each & 1; }));
      std::byte *end = arena->data() + arena->allocatedBytes();
      EXPECT_TRUE(std::all_of(arena->data(), end, [](std::byte each) { return each == std::byte{0}; }));
      end[-1] = std::byte{1};
    }
}

TEST(Arena, OfNoBytesIsNone) {
  auto arena = Arena::create(0, Team(1));
  ASSERT_STATUS_OK(arena);
  EXPECT_EQ(arena->data(), nullptr);
  EXPECT_EQ(arena->allocatedBytes(), 0u);
}

TEST(Arena, MoreThanThereCanBeIsAnError) {
  for (uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX - hugePage, UINT64_MAX})
    EXPECT_ERROR(Arena::create(bytes, Team(1)), "cannot allocate " + std::to_string(bytes) + " bytes");
}

} // namespace
} // namespace tessera::cpu
