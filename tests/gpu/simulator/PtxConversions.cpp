//===- PtxConversions.cpp - conversions of PTX, and moving bits ---------------===//

#include "PtxLanes.h"

#include <algorithm>
#include <limits>

namespace tessera::sim {
namespace {

// --- Moving bits ------------------------------------------------------------------

template <typename Part, typename Whole> void unpack(Warp &warp, const Instruction &i, uint32_t lanes) {
  const Whole *a = warp.at<Whole>(i.a);
  for (int part = 0; part < i.count; ++part) {
    Part *d = warp.at<Part>(i.vector[part]);
    if (i.vector[part] != 0)
      forLanes(lanes, [&](int lane) { d[lane] = static_cast<Part>(a[lane] >> (8 * sizeof(Part) * part)); });
  }
}
template <typename Part, typename Whole> void pack(Warp &warp, const Instruction &i, uint32_t lanes) {
  Whole *d = warp.at<Whole>(i.d);
  forLanes(lanes, [&](int lane) {
    Whole made = 0;
    for (int part = 0; part < i.count; ++part)
      made |= static_cast<Whole>(warp.at<Part>(i.vector[part])[lane]) << (8 * sizeof(Part) * part);
    d[lane] = made;
  });
}

void permute(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t *d = warp.at<uint32_t>(i.d);
  const uint32_t *a = warp.at<uint32_t>(i.a), *b = warp.at<uint32_t>(i.b), *c = warp.at<uint32_t>(i.c);
  forLanes(lanes, [&](int lane) {
    uint64_t bytes = static_cast<uint64_t>(b[lane]) << 32 | a[lane];
    uint32_t made = 0;
    for (int byte = 0; byte < 4; ++byte) {
      uint32_t choice = c[lane] >> (4 * byte) & 15;
      auto value = static_cast<uint32_t>(bytes >> (8 * (choice & 7)) & 255);
      if (choice & 8)
        value = value & 128 ? 255 : 0;
      made |= value << (8 * byte);
    }
    d[lane] = made;
  });
}

/// A signed field is extended by its last bit, or by the number's last one where it goes beyond that.
template <typename T> void extractBits(Warp &warp, const Instruction &i, uint32_t lanes) {
  constexpr uint32_t width = 8 * sizeof(T);
  using Unsigned = std::make_unsigned_t<T>;
  auto *d = warp.at<Unsigned>(i.d);
  const T *a = warp.at<T>(i.a);
  const uint32_t *b = warp.at<uint32_t>(i.b), *c = warp.at<uint32_t>(i.c);
  forLanes(lanes, [&](int lane) {
    uint32_t from = b[lane] & 255, length = c[lane] & 255;
    auto whole = static_cast<Unsigned>(a[lane]);
    Unsigned fill = 0;
    if (std::is_signed_v<T> && length > 0 && whole >> std::min(from + length - 1, width - 1) & 1)
      fill = ~Unsigned{0};
    Unsigned value = from >= width ? fill : from == 0 ? whole : whole >> from | fill << (width - from);
    d[lane] = length >= width ? value : (value & ((Unsigned{1} << length) - 1)) | fill << length;
  });
}

// --- Conversions ------------------------------------------------------------------

template <char Mode> inline double toWhole(double value) {
  return Mode == 'i'   ? std::nearbyint(value)
         : Mode == 'z' ? std::trunc(value)
         : Mode == 'm' ? std::floor(value)
                       : std::ceil(value);
}
/// Out of range: the nearest; NaN: 0.
template <typename D, typename A, char Mode>
constexpr auto toInteger = [](A value) -> D {
  double whole = toWhole<Mode>(static_cast<double>(value));
  if (whole != whole)
    return 0;
  if (whole <= static_cast<double>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  if (whole >= std::ldexp(1.0, std::numeric_limits<D>::digits))
    return std::numeric_limits<D>::max();
  return static_cast<D>(whole);
};
template <char Mode>
constexpr auto toWholeFloat = [](auto value) { return static_cast<decltype(value)>(toWhole<Mode>(value)); };

template <typename Format> void toPair(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t *d = warp.at<uint32_t>(i.d);
  const float *a = warp.at<float>(i.a), *b = warp.at<float>(i.b);
  forLanes(lanes,
           [&](int lane) { d[lane] = static_cast<uint32_t>(Format::narrow(a[lane])) << 16 | Format::narrow(b[lane]); });
}

template <typename Format> void toFloat8(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint16_t *d = warp.at<uint16_t>(i.d);
  const float *a = warp.at<float>(i.a), *b = warp.at<float>(i.b);
  forLanes(lanes, [&](int lane) { d[lane] = narrowPair<Format>(a[lane], b[lane]); });
}

template <char Mode> Execute roundedConversion(const std::string &to, const std::string &from) {
  if (from == "f32" && to == "f32")
    return unary<float, float, toWholeFloat<Mode>>;
  if (from == "f64" && to == "f64")
    return unary<double, double, toWholeFloat<Mode>>;
  if (from == "f32")
    return to == "s32"   ? unary<int32_t, float, toInteger<int32_t, float, Mode>>
           : to == "u32" ? unary<uint32_t, float, toInteger<uint32_t, float, Mode>>
           : to == "s64" ? unary<int64_t, float, toInteger<int64_t, float, Mode>>
           : to == "u64" ? unary<uint64_t, float, toInteger<uint64_t, float, Mode>>
                         : nullptr;
  if (from == "f64")
    return to == "s32"   ? unary<int32_t, double, toInteger<int32_t, double, Mode>>
           : to == "u32" ? unary<uint32_t, double, toInteger<uint32_t, double, Mode>>
           : to == "s64" ? unary<int64_t, double, toInteger<int64_t, double, Mode>>
                         : nullptr;
  return nullptr;
}

template <typename D> Execute fromInteger(const std::string &from) {
  static const std::map<std::string, Execute> table = {
      {"u8", unary<D, uint8_t, same>},   {"s8", unary<D, int8_t, same>},    {"u16", unary<D, uint16_t, same>},
      {"s16", unary<D, int16_t, same>},  {"u32", unary<D, uint32_t, same>}, {"s32", unary<D, int32_t, same>},
      {"u64", unary<D, uint64_t, same>}, {"s64", unary<D, int64_t, same>}};
  auto found = table.find(from);
  return found == table.end() ? nullptr : found->second;
}

Execute conversion(Mnemonic &mnemonic) {
  if (mnemonic.modifiers.size() < 2)
    return nullptr;
  std::string from = mnemonic.modifiers.back();
  mnemonic.modifiers.pop_back();
  std::string to = mnemonic.modifiers.back();
  mnemonic.modifiers.pop_back();
  if (mnemonic.take("sat"))
    return to == "f32" && from == "f32" ? unary<float, float, [](float a) { return (a > 0) ? a < 1 ? a : 1.0F : 0.0F; }>
                                        : nullptr;
  if (mnemonic.take("rni"))
    return roundedConversion<'i'>(to, from);
  if (mnemonic.take("rzi"))
    return roundedConversion<'z'>(to, from);
  if (mnemonic.take("rmi"))
    return roundedConversion<'m'>(to, from);
  if (mnemonic.take("rpi"))
    return roundedConversion<'p'>(to, from);
  bool isRounded = mnemonic.take("rn");
  if (isRounded && to == "bf16x2" && from == "f32")
    return toPair<Bf16>;
  if (isRounded && to == "f16x2" && from == "f32")
    return toPair<F16>;
  if (isRounded && to == "f16x2" && from == "e4m3x2")
    return unary<uint32_t, uint16_t, [](uint16_t a) { return widenPair<E4M3>(a); }>;
  if (isRounded && to == "f16x2" && from == "e5m2x2")
    return unary<uint32_t, uint16_t, [](uint16_t a) { return widenPair<E5M2>(a); }>;
  if (to == "e4m3x2" || to == "e5m2x2") {
    // These exist in no other form.
    const bool saturates = mnemonic.take("satfinite");
    return !isRounded || !saturates || from != "f32" ? nullptr : to == "e4m3x2" ? toFloat8<E4M3> : toFloat8<E5M2>;
  }
  if (isRounded && from == "f32" && to == "bf16")
    return unary<uint16_t, float, [](float a) { return Bf16::narrow(a); }>;
  if (isRounded && from == "f32" && to == "f16")
    return unary<uint16_t, float, [](float a) { return F16::narrow(a); }>;
  if (isRounded && from == "f64" && to == "f32")
    return unary<float, double, same>;
  if (isRounded && to == "f32")
    return fromInteger<float>(from);
  if (isRounded && to == "f64")
    return fromInteger<double>(from);
  if (from == "bf16" && to == "f32")
    return unary<float, uint16_t, [](uint16_t a) { return Bf16::widen(a); }>;
  if (from == "f16" && to == "f32")
    return unary<float, uint16_t, [](uint16_t a) { return F16::widen(a); }>;
  if (from == "bf16" && to == "f64")
    return unary<double, uint16_t, [](uint16_t a) { return static_cast<double>(Bf16::widen(a)); }>;
  if (from == "f32" && to == "f64")
    return unary<double, float, same>;
  if (to[0] == 'f' || to[0] == 'b' || isRounded)
    return nullptr;
  switch (typeBytes(to)) {
  case 1:
    return fromInteger<uint8_t>(from);
  case 2:
    return fromInteger<uint16_t>(from);
  case 4:
    return fromInteger<uint32_t>(from);
  default:
    return fromInteger<uint64_t>(from);
  }
}

template <typename From, typename To> Execute resize(bool isSigned) {
  if (isSigned)
    return unary<std::make_signed_t<To>, std::make_signed_t<From>, same>;
  return unary<To, From, same>;
}
template <typename From> Execute resizeFrom(const std::string &to, bool isSigned) {
  return to == "1"   ? resize<From, uint8_t>(isSigned)
         : to == "2" ? resize<From, uint16_t>(isSigned)
         : to == "4" ? resize<From, uint32_t>(isSigned)
         : to == "8" ? resize<From, uint64_t>(isSigned)
                     : nullptr;
}

} // namespace

Execute selectConversion(Mnemonic &mnemonic) {
  if (mnemonic.name == "resize") {
    bool isSigned = mnemonic.take("signed");
    std::string from = mnemonic.modifiers[0], to = mnemonic.modifiers[1];
    mnemonic.modifiers.clear();
    return from == "1"   ? resizeFrom<uint8_t>(to, isSigned)
           : from == "2" ? resizeFrom<uint16_t>(to, isSigned)
           : from == "4" ? resizeFrom<uint32_t>(to, isSigned)
           : from == "8" ? resizeFrom<uint64_t>(to, isSigned)
                         : nullptr;
  }
  bool packs = mnemonic.take("pack");
  if (packs || mnemonic.take("unpack")) {
    std::string part = mnemonic.modifiers[0], whole = mnemonic.modifiers[1];
    mnemonic.modifiers.clear();
    if (part == "2" && whole == "4")
      return packs ? pack<uint16_t, uint32_t> : unpack<uint16_t, uint32_t>;
    if (part == "2" && whole == "8")
      return packs ? pack<uint16_t, uint64_t> : unpack<uint16_t, uint64_t>;
    if (part == "4" && whole == "8")
      return packs ? pack<uint32_t, uint64_t> : unpack<uint32_t, uint64_t>;
    return nullptr;
  }
  if (mnemonic.name == "prmt")
    return mnemonic.take("b32") ? permute : nullptr;
  if (mnemonic.name == "bfe")
    return mnemonic.take("u32")   ? extractBits<uint32_t>
           : mnemonic.take("s32") ? extractBits<int32_t>
           : mnemonic.take("u64") ? extractBits<uint64_t>
           : mnemonic.take("s64") ? extractBits<int64_t>
                                  : nullptr;
  return mnemonic.name == "cvt" ? conversion(mnemonic) : nullptr;
}

} // namespace tessera::sim
