//===- Random.h - the random numbers of the interpreter ---------*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERP_RANDOM_H
#define TESSERA_COMPILER_INTERP_RANDOM_H

#include <array>
#include <cstdint>

namespace tessera::interp {

/// The output words of Philox 4x32-10 (Salmon et al., SC'11).
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counterLow, uint64_t counterHigh) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counterLow), static_cast<uint32_t>(counterLow >> 32),
                               static_cast<uint32_t>(counterHigh), static_cast<uint32_t>(counterHigh >> 32)};
  uint32_t k[2] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{0xD2511F53} * c[0];
    uint64_t product1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(product0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_RANDOM_H
