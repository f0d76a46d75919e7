//===- Half.h - f16 numbers as bits ----------------------------*- C++ -*-===//
//
// Rounding is to nearest, ties to even. Written on the bits: not every compiler has a type for f16.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_HALF_H
#define TESSERA_RUNTIME_BASE_HALF_H

#include <bit>
#include <cstdint>

namespace tessera {

inline float widenHalf(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
  if (exponent == 0) { // zero or subnormal: mantissa * 2^-24 is exact in f32
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

inline uint16_t toHalf(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff, half;
  if (magnitude > 0x7f800000) // not a number: it stays quiet, with the upper bits of its payload
    half = 0x7e00 | (magnitude >> 13 & 0x1ff);
  else if (magnitude >= 0x47800000) // at least 2^16
    half = 0x7c00;
  else if (magnitude < 0x38800000) // below 2^-14: the unit in the last place of numbers from 0.5 to 1 is 2^-24, too
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  else // the exponent's bias goes from 127 to 15; what rounds up to 2^16 becomes infinite
    half = ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112 << 10);
  return static_cast<uint16_t>(sign | half);
}

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_HALF_H
