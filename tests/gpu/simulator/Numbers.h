//===- Numbers.h - the narrow floating-point types of a GPU -----------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H
#define TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H

#include <algorithm>
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

/// 8-bit floats as the conversions of a GPU make and read them. What is beyond the largest number becomes that number,
/// infinities too (`.satfinite`); NaN is 0x7f.
template <int Mantissa, int LeastExponent, int GreatestExponent, uint8_t Largest> struct Float8 {
  static double value(uint8_t magnitude) {
    int exponent = magnitude >> Mantissa, digits = magnitude & ((1 << Mantissa) - 1);
    if (exponent == 0)
      return std::ldexp(digits, LeastExponent - Mantissa);
    return std::ldexp(digits + (1 << Mantissa), exponent - 1 + LeastExponent - Mantissa);
  }
  static uint8_t narrow(float number) {
    if (std::isnan(number))
      return 0x7f;
    uint8_t sign = std::signbit(number) ? 0x80 : 0;
    double rounded = std::fabs(roundTo<Mantissa, LeastExponent, GreatestExponent>(number));
    if (rounded >= value(Largest))
      return sign | Largest;
    if (rounded < std::ldexp(1.0, LeastExponent))
      return sign | static_cast<uint8_t>(std::ldexp(rounded, Mantissa - LeastExponent));
    int exponent = 0;
    double fraction = std::frexp(rounded, &exponent);
    return sign | static_cast<uint8_t>((exponent - LeastExponent) << Mantissa) |
           static_cast<uint8_t>(std::ldexp(fraction, Mantissa + 1) - (1 << Mantissa));
  }
  /// As an f16, which holds all of them.
  static uint16_t widen(uint8_t bits) {
    uint8_t magnitude = bits & 0x7f;
    constexpr bool hasInfinity = Mantissa == 2;
    if (hasInfinity && magnitude == Largest + 1)
      return static_cast<uint16_t>((bits & 0x80) << 8 | 0x7c00);
    if (magnitude > Largest)
      return 0x7fff;
    return F16::narrow(bits & 0x80 ? -value(magnitude) : value(magnitude));
  }
};
using E4M3 = Float8<3, -6, 8, 0x7e>;
using E5M2 = Float8<2, -14, 15, 0x7b>;

/// Two of them in one register, the first operand above.
template <typename Format> inline uint16_t narrowPair(float high, float low) {
  return static_cast<uint16_t>(Format::narrow(high) << 8 | Format::narrow(low));
}
template <typename Format> inline uint32_t widenPair(uint16_t bits) {
  return static_cast<uint32_t>(Format::widen(bits >> 8)) << 16 | Format::widen(bits & 255);
}

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_NUMBERS_H
