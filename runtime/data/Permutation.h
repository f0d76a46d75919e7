//===- Permutation.h - a shuffled order without a table -------------------------===//
//
// A bijection of [0, size) from a key: a Feistel network on the next even number of bits, walked until it lands inside.
// Any element is found directly, so that the order can be resumed anywhere and needs no memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_PERMUTATION_H
#define TESSERA_RUNTIME_DATA_PERMUTATION_H

#include "runtime/state/Philox.h"

#include <bit>
#include <cstdint>

namespace tessera {

class Permutation {
public:
  /// The order of epoch `epoch`; `size` is below 2^62.
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch) : size(size) {
    auto words = philox({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(epoch),
                         static_cast<uint32_t>(epoch >> 32)},
                        {0x64617461u, 0x6f726465u});
    key = {words[0], words[1]};
    int bits = size > 1 ? std::bit_width(size - 1) : 1;
    halfBits = (bits + 1) / 2;
  }

  uint64_t operator()(uint64_t index) const {
    do
      index = encrypt(index);
    while (index >= size);
    return index;
  }

private:
  uint64_t encrypt(uint64_t value) const {
    uint32_t mask = static_cast<uint32_t>((uint64_t{1} << halfBits) - 1);
    auto left = static_cast<uint32_t>(value >> halfBits), right = static_cast<uint32_t>(value) & mask;
    for (uint32_t round = 0; round < 6; ++round) {
      uint32_t mixed = left ^ (philox({right, round, 0, 0}, key)[0] & mask);
      left = right;
      right = mixed;
    }
    return static_cast<uint64_t>(left) << halfBits | right;
  }

  uint64_t size;
  PhiloxKey key;
  int halfBits;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_PERMUTATION_H
