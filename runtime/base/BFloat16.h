//===- BFloat16.h - bf16 numbers as bits -----------------------*- C++ -*-===//
//
// The upper half of an f32; rounding is to nearest, ties to even.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_BFLOAT16_H
#define TESSERA_RUNTIME_BASE_BFLOAT16_H

#include <bit>
#include <cstdint>

namespace tessera {

inline float widenBFloat16(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

inline uint16_t toBFloat16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(value == value ? rounded : bits >> 16 | 0x40);
}

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_BFLOAT16_H
