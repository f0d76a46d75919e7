//===- PtxLanes.h - the same for all threads of a warp ------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_PTXLANES_H
#define TESSERA_TESTS_GPU_SIMULATOR_PTXLANES_H

#include "Numbers.h"
#include "Ptx.h"

#include <algorithm>

namespace tessera::sim {

/// Calls `body` for each lane; all of them in a loop that the compiler can make vectors of.
template <typename Body> inline void forLanes(uint32_t lanes, Body body) {
  if (lanes == everyLane) {
#pragma GCC ivdep
    for (int lane = 0; lane < warpSize; ++lane)
      body(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    body(std::countr_zero(lanes));
}

template <typename D, typename A, auto F> void unary(Warp &warp, const Instruction &i, uint32_t lanes) {
  D *d = warp.at<D>(i.d);
  const A *a = warp.at<A>(i.a);
  forLanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F(a[lane])); });
}
template <typename D, typename A, typename B, auto F> void binary(Warp &warp, const Instruction &i, uint32_t lanes) {
  D *d = warp.at<D>(i.d);
  const A *a = warp.at<A>(i.a);
  const B *b = warp.at<B>(i.b);
  forLanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F(a[lane], b[lane])); });
}
template <typename D, typename A, typename C, auto F> void ternary(Warp &warp, const Instruction &i, uint32_t lanes) {
  D *d = warp.at<D>(i.d);
  const A *a = warp.at<A>(i.a), *b = warp.at<A>(i.b);
  const C *c = warp.at<C>(i.c);
  forLanes(lanes, [&](int lane) { d[lane] = static_cast<D>(F(a[lane], b[lane], c[lane])); });
}

// --- By type ----------------------------------------------------------------------

/// `U` and `S`: what is computed where the sign does not and does matter.
template <auto F> Execute signedBinary(const std::string &type) {
  static const std::map<std::string, Execute> table = {
      {"u16", binary<uint16_t, uint16_t, uint16_t, F>}, {"s16", binary<int16_t, int16_t, int16_t, F>},
      {"b16", binary<uint16_t, uint16_t, uint16_t, F>}, {"u32", binary<uint32_t, uint32_t, uint32_t, F>},
      {"s32", binary<int32_t, int32_t, int32_t, F>},    {"b32", binary<uint32_t, uint32_t, uint32_t, F>},
      {"u64", binary<uint64_t, uint64_t, uint64_t, F>}, {"s64", binary<int64_t, int64_t, int64_t, F>},
      {"b64", binary<uint64_t, uint64_t, uint64_t, F>}};
  auto found = table.find(type);
  return found == table.end() ? nullptr : found->second;
}
template <auto F> Execute wrappingBinary(const std::string &type) {
  return type.size() < 3 ? nullptr : signedBinary<F>("u" + type.substr(1));
}
template <auto F> Execute floatBinary(const std::string &type) {
  constexpr auto asBf16 = [](uint16_t a, uint16_t b) {
    return Bf16::narrow(F(static_cast<double>(Bf16::widen(a)), static_cast<double>(Bf16::widen(b))));
  };
  constexpr auto asF16 = [](uint16_t a, uint16_t b) {
    return F16::narrow(F(static_cast<double>(F16::widen(a)), static_cast<double>(F16::widen(b))));
  };
  static const std::map<std::string, Execute> table = {{"f32", binary<float, float, float, F>},
                                                       {"f64", binary<double, double, double, F>},
                                                       {"bf16", binary<uint16_t, uint16_t, uint16_t, asBf16>},
                                                       {"f16", binary<uint16_t, uint16_t, uint16_t, asF16>}};
  auto found = table.find(type);
  return found == table.end() ? nullptr : found->second;
}
template <auto F> Execute floatUnary(const std::string &type) {
  return type == "f32" ? unary<float, float, F> : type == "f64" ? unary<double, double, F> : nullptr;
}

constexpr auto same = [](auto value) { return value; };

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_PTXLANES_H
