//===- Philox.h - counter-based random numbers --------------------------------===//
//
// Philox 4x32-10 (Salmon et al. 2011): four random words are a pure function of a key and a counter, so that any
// element of any tensor can be made anywhere, in any order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_PHILOX_H
#define TESSERA_RUNTIME_STATE_PHILOX_H

#include <array>
#include <cstdint>

namespace tessera {

struct PhiloxKey {
  uint32_t low = 0, high = 0;
};

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, PhiloxKey key) {
  auto [x0, x1, x2, x3] = counter;
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53u} * x0, b = uint64_t{0xCD9E8D57u} * x2;
    uint32_t y0 = static_cast<uint32_t>(b >> 32) ^ x1 ^ key.low, y2 = static_cast<uint32_t>(a >> 32) ^ x3 ^ key.high;
    x0 = y0;
    x1 = static_cast<uint32_t>(b);
    x2 = y2;
    x3 = static_cast<uint32_t>(a);
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}

inline std::array<uint32_t, 4> philox(uint64_t counter, PhiloxKey key) {
  return philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}, key);
}

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_PHILOX_H
