//===- Numbers.h - the narrow floating-point types of a GPU -----------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H
#define TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::sim {

/// The sum, in which a result that is not exact has an odd last bit: rounding it again to fewer bits rounds once.
inline double addToOdd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum))
    return sum;
  double other = sum - a, error = (a - (sum - other)) + (b - other);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error != 0 && (bits & 1) == 0)
    bits += (error > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

/// Rounds to nearest, ties to even, into `Mantissa` bits behind the point.
template <int Mantissa, int LeastExponent, int GreatestExponent> inline double roundTo(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  int unit = std::max(exponent - 1, LeastExponent) - Mantissa;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) >= std::ldexp(1.0, GreatestExponent + 1) ? std::copysign(HUGE_VAL, value) : rounded;
}

struct Bf16 {
  uint16_t bits = 0;
  static float widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static uint16_t narrow(float value) {
    auto bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value))
      return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  static uint16_t narrow(double value) {
    return std::isnan(value) ? 0x7fff : narrow(static_cast<float>(roundTo<7, -126, 127>(value)));
  }
};

struct F16 {
  static float widen(uint16_t bits) {
    int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double size = exponent == 31  ? (mantissa ? NAN : HUGE_VAL)
                  : exponent == 0 ? std::ldexp(mantissa, -24)
                                  : std::ldexp(1024 + mantissa, exponent - 25);
    return static_cast<float>(bits & 0x8000 ? -size : size);
  }
  static uint16_t narrow(double value) {
    if (std::isnan(value))
      return 0x7fff;
    double rounded = std::fabs(roundTo<10, -14, 15>(value));
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isinf(rounded))
      return sign | 0x7c00;
    if (rounded < std::ldexp(1.0, -14))
      return sign | static_cast<uint16_t>(std::ldexp(rounded, 24));
    int exponent = 0;
    double fraction = std::frexp(rounded, &exponent);
    return sign | static_cast<uint16_t>((exponent + 14) << 10) | static_cast<uint16_t>(std::ldexp(fraction, 11) - 1024);
  }
};

struct F8E4M3 {
  static float widen(uint8_t bits) {
    int exponent = (bits >> 3) & 15, mantissa = bits & 7;
    double size = exponent == 15 && mantissa == 7 ? NAN
                  : exponent == 0                 ? std::ldexp(mantissa, -9)
                                                  : std::ldexp(8 + mantissa, exponent - 10);
    return static_cast<float>(bits & 0x80 ? -size : size);
  }
};

struct F8E5M2 {
  static float widen(uint8_t bits) { return F16::widen(static_cast<uint16_t>(bits << 8)); }
};

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H
