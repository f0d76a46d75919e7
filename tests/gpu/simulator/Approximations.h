//===- Approximations.h - a GPU's inexact units at their worst ----------------===//
//
// What NVIDIA documents of ex2, lg2, rcp, rsqrt, sqrt, sin, cos and tanh of f32 is an error at most (PTX ISA 9.1,
// section 9.7.3). Here each result has that error, upwards or downwards by its argument and a seed: what holds here
// holds for any hardware that keeps its promise. Arguments and results that the tables there name are exact.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_APPROXIMATIONS_H
#define TESSERA_TESTS_GPU_SIMULATOR_APPROXIMATIONS_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::sim {

enum class Unit : uint32_t { Exp2, Log2, Reciprocal, RootReciprocal, Root, Sine, Cosine, Tanh };

/// Of f32: 0 with its sign for a subnormal number.
inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

/// Whether the unit errs upwards.
inline bool errsUpwards(Unit unit, float x, uint32_t seed) {
  uint32_t mixed = std::bit_cast<uint32_t>(x) ^ (static_cast<uint32_t>(unit) + 1) * 0x9E3779B9U ^ seed * 0x85EBCA6BU;
  mixed = (mixed ^ mixed >> 16) * 0x7FEB352DU;
  mixed = (mixed ^ mixed >> 15) * 0x846CA68BU;
  return (mixed >> 16 & 1) != 0;
}

/// `units` f32 further from or nearer to zero; what is no normal number stays, and none becomes infinite or subnormal.
inline float moved(float value, int units, bool upwards) {
  if (!std::isnormal(value))
    return value;
  float result = std::bit_cast<float>(std::bit_cast<uint32_t>(value) + static_cast<uint32_t>(upwards ? units : -units));
  return std::isnormal(result) ? result : value;
}

/// Relative or absolute errors, as those of f64 before the result is rounded.
inline float erring(double exact, double error, bool upwards) {
  return static_cast<float>(exact + (upwards ? error : -error));
}

/// The unit's result at its documented worst. `flushes`: `.ftz`.
inline float approximation(Unit unit, float x, bool flushes, uint32_t seed) {
  if (flushes)
    x = flushed(x);
  const bool upwards = errsUpwards(unit, x, seed);
  auto result = [&]() -> float {
    const double a = x;
    switch (unit) {
    case Unit::Exp2: // 2 units from the correctly rounded result
      return x == 0 || std::fpclassify(x) == FP_SUBNORMAL ? 1.0F : moved(static_cast<float>(std::exp2(a)), 2, upwards);
    case Unit::Log2: { // 2^-22 absolute in (0.5, 2), relative elsewhere
      const double exact = std::log2(a);
      return std::isfinite(exact) ? erring(exact, x > 0.5F && x < 2 ? 0x1p-22 : std::abs(exact) * 0x1p-22, upwards)
                                  : static_cast<float>(exact);
    }
    case Unit::Reciprocal: // 1 unit
      return moved(static_cast<float>(1 / a), 1, upwards);
    case Unit::RootReciprocal: // relative 2^-22.9
      return x > 0 && std::isfinite(x) ? erring(1 / std::sqrt(a), std::exp2(-22.9) / std::sqrt(a), upwards)
                                       : static_cast<float>(1 / std::sqrt(a));
    case Unit::Root: // relative 2^-23
      return x > 0 && std::isfinite(x) ? erring(std::sqrt(a), 0x1p-23 * std::sqrt(a), upwards)
                                       : static_cast<float>(std::sqrt(a));
    case Unit::Sine: // absolute 2^-20.5 in [-2 pi, 2 pi]
      return x == 0 ? x : erring(std::sin(a), std::exp2(-20.5), upwards);
    case Unit::Cosine:
      return x == 0 ? 1.0F : erring(std::cos(a), std::exp2(-20.5), upwards);
    case Unit::Tanh: // relative 2^-11
      return std::isinf(x) ? std::copysign(1.0F, x) : erring(std::tanh(a), 0x1p-11 * std::abs(std::tanh(a)), upwards);
    }
    return 0;
  }();
  return flushes ? flushed(result) : result;
}

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_APPROXIMATIONS_H
