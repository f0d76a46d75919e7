//===- PtxArithmetic.cpp - instructions of PTX on registers -----------------===//

#include "Numbers.h"
#include "Ptx.h"

#include <algorithm>
#include <array>
#include <cfenv>
#include <limits>

namespace tessera::sim {
namespace {

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

// --- Functions --------------------------------------------------------------------

constexpr auto mulHigh = []<typename T>(T a, T b) -> T {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
};
constexpr auto divide = []<typename T>(T a, T b) -> T {
  if (b == 0)
    return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return a / b;
};
constexpr auto remainder = []<typename T>(T a, T b) -> T {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return a % b;
};
/// NaN only where both are, unless `KeepsNan`; -0 is below 0.
template <bool IsMax, bool KeepsNan> struct Extreme {
  template <typename T> constexpr T operator()(T a, T b) const {
    if (a != a || b != b)
      return KeepsNan || (a != a && b != b) ? std::numeric_limits<T>::quiet_NaN() : a != a ? b : a;
    if (a == b)
      return std::signbit(a) == IsMax ? b : a;
    return (a < b) == IsMax ? b : a;
  }
};

/// fma with a rounding mode of its own.
template <int Mode> void fmaRounded(Warp &warp, const Instruction &i, uint32_t lanes) {
  volatile int mode = Mode;
  int before = std::fegetround();
  std::fesetround(mode);
  float *d = warp.at<float>(i.d);
  const float *a = warp.at<float>(i.a), *b = warp.at<float>(i.b), *c = warp.at<float>(i.c);
  for (; lanes; lanes &= lanes - 1) {
    int lane = std::countr_zero(lanes);
    volatile float x = a[lane], y = b[lane], z = c[lane];
    volatile float result = std::fma(x, y, z);
    d[lane] = result;
  }
  std::fesetround(before);
}

inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}
template <auto F, bool Flushes> void approximate(Warp &warp, const Instruction &i, uint32_t lanes) {
  float *d = warp.at<float>(i.d);
  const float *a = warp.at<float>(i.a);
  forLanes(lanes, [&](int lane) {
    auto value = static_cast<float>(F(static_cast<double>(Flushes ? flushed(a[lane]) : a[lane])));
    d[lane] = Flushes ? flushed(value) : value;
  });
}

// --- Predicates -------------------------------------------------------------------

template <typename T, auto F> void compare(Warp &warp, const Instruction &i, uint32_t lanes) {
  const T *a = warp.at<T>(i.a), *b = warp.at<T>(i.b);
  uint32_t met = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    met |= static_cast<uint32_t>(F(a[lane], b[lane])) << lane;
  uint32_t other = ~met;
  if (uint32_t third = i.choice >> 1) {
    uint32_t c = warp.predicate(i.c);
    met = third == 1 ? met & c : third == 2 ? met | c : met ^ c;
    other = third == 1 ? other & c : third == 2 ? other | c : other ^ c;
  }
  uint32_t &d = warp.predicate(i.d);
  d = (d & ~lanes) | (met & lanes);
  if (i.choice & 1) {
    uint32_t &q = warp.predicate(i.vector[0]);
    q = (q & ~lanes) | (other & lanes);
  }
}
template <typename T> Execute comparison(const std::string &how) {
  static const std::map<std::string, Execute> table = {{"eq", compare<T, [](T a, T b) { return a == b; }>},
                                                       {"ne", compare<T, [](T a, T b) { return (a < b || a > b); }>},
                                                       {"lt", compare<T, [](T a, T b) { return a < b; }>},
                                                       {"le", compare<T, [](T a, T b) { return a <= b; }>},
                                                       {"gt", compare<T, [](T a, T b) { return (a > b); }>},
                                                       {"ge", compare<T, [](T a, T b) { return (a >= b); }>},
                                                       {"lo", compare<T, [](T a, T b) { return a < b; }>},
                                                       {"ls", compare<T, [](T a, T b) { return a <= b; }>},
                                                       {"hi", compare<T, [](T a, T b) { return (a > b); }>},
                                                       {"hs", compare<T, [](T a, T b) { return (a >= b); }>},
                                                       {"equ", compare<T, [](T a, T b) { return !(a < b || a > b); }>},
                                                       {"neu", compare<T, [](T a, T b) { return !(a == b); }>},
                                                       {"ltu", compare<T, [](T a, T b) { return !(a >= b); }>},
                                                       {"leu", compare<T, [](T a, T b) { return !(a > b); }>},
                                                       {"gtu", compare<T, [](T a, T b) { return !(a <= b); }>},
                                                       {"geu", compare<T, [](T a, T b) { return !(a < b); }>},
                                                       {"num", compare<T, [](T a, T b) { return a == a && b == b; }>},
                                                       {"nan", compare<T, [](T a, T b) { return a != a || b != b; }>}};
  auto found = table.find(how);
  return found == table.end() ? nullptr : found->second;
}

template <auto F> void logic(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t &d = warp.predicate(i.d), made = F(warp.predicate(i.a), warp.predicate(i.b));
  d = (d & ~lanes) | (made & lanes);
}

template <typename T> void select(Warp &warp, const Instruction &i, uint32_t lanes) {
  T *d = warp.at<T>(i.d);
  const T *a = warp.at<T>(i.a), *b = warp.at<T>(i.b);
  uint32_t p = warp.predicate(i.c);
  forLanes(lanes, [&](int lane) { d[lane] = p >> lane & 1 ? a[lane] : b[lane]; });
}

// --- Between the threads of a warp ------------------------------------------------

void shuffle(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t *d = warp.at<uint32_t>(i.d);
  const uint32_t *b = warp.at<uint32_t>(i.b), *c = warp.at<uint32_t>(i.c), *mask = warp.at<uint32_t>(i.e);
  std::array<uint32_t, warpSize> a;
  std::copy_n(warp.at<uint32_t>(i.a), warpSize, a.begin());
  for (uint32_t left = lanes; left; left &= left - 1) {
    int lane = std::countr_zero(left);
    int clamp = static_cast<int>(c[lane] & 31), segment = static_cast<int>(c[lane] >> 8 & 31);
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int by = static_cast<int>(b[lane] & 31), from = lane;
    bool isInside = false;
    switch (i.vector[1]) {
    case 0: // up
      from = lane - by, isInside = from >= most;
      break;
    case 1: // down
      from = lane + by, isInside = from <= most;
      break;
    case 2: // bfly
      from = lane ^ by, isInside = from <= most;
      break;
    default: // idx
      from = least | (by & ~segment), isInside = from <= most;
    }
    if (!isInside)
      from = lane;
    if (!(mask[lane] >> lane & 1))
      warp.fail(719, "a thread shuffles that is not in its own mask", i);
    // The value of a thread that does not take part is not defined.
    d[lane] = lanes >> from & 1 ? a[from] : 0xdeadbeef;
    if (i.choice & 1) {
      uint32_t &p = warp.predicate(i.vector[0]);
      p = (p & ~(1U << lane)) | (static_cast<uint32_t>(isInside) << lane);
    }
  }
}

void ballot(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t votes = warp.predicate(i.a) & lanes;
  uint32_t *d = warp.at<uint32_t>(i.d);
  forLanes(lanes, [&](int lane) { d[lane] = votes; });
}
template <bool All> void voteOf(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t votes = warp.predicate(i.a) & lanes, &d = warp.predicate(i.d);
  bool met = All ? votes == lanes : votes != 0;
  d = met ? d | lanes : d & ~lanes;
}

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

template <typename T> void extractBits(Warp &warp, const Instruction &i, uint32_t lanes) {
  T *d = warp.at<T>(i.d);
  const T *a = warp.at<T>(i.a);
  const uint32_t *b = warp.at<uint32_t>(i.b), *c = warp.at<uint32_t>(i.c);
  forLanes(lanes, [&](int lane) {
    uint32_t from = b[lane] & 255, length = c[lane] & 255;
    T value = from >= 8 * sizeof(T) ? 0 : a[lane] >> from;
    d[lane] = length >= 8 * sizeof(T) ? value : value & ((T{1} << length) - 1);
  });
}

// --- Carries ----------------------------------------------------------------------

/// d = (low or high word of a * b) + c + the carry, if it is to be added.
template <bool IsHigh, bool Multiplies, bool Takes, bool Gives>
void withCarry(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t *d = warp.at<uint32_t>(i.d), *carry = warp.at<uint32_t>(i.e);
  const uint32_t *a = warp.at<uint32_t>(i.a), *b = warp.at<uint32_t>(i.b), *c = warp.at<uint32_t>(i.c);
  forLanes(lanes, [&](int lane) {
    uint64_t product = static_cast<uint64_t>(a[lane]) * b[lane];
    uint64_t sum = Multiplies ? (IsHigh ? product >> 32 : product & 0xffffffff) + c[lane]
                              : static_cast<uint64_t>(a[lane]) + b[lane];
    if (Takes)
      sum += carry[lane];
    if (Gives)
      carry[lane] = static_cast<uint32_t>(sum >> 32);
    d[lane] = static_cast<uint32_t>(sum);
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

void toBf16Pair(Warp &warp, const Instruction &i, uint32_t lanes) {
  uint32_t *d = warp.at<uint32_t>(i.d);
  const float *a = warp.at<float>(i.a), *b = warp.at<float>(i.b);
  forLanes(lanes,
           [&](int lane) { d[lane] = static_cast<uint32_t>(Bf16::narrow(a[lane])) << 16 | Bf16::narrow(b[lane]); });
}

constexpr auto same = [](auto value) { return value; };

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
    return toBf16Pair;
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

template <typename Signed, typename Unsigned, typename Wide, typename UnsignedWide>
Execute wideProduct(bool isSigned, bool adds) {
  constexpr auto product = [](auto a, auto b) {
    using Twice = std::conditional_t<std::is_signed_v<decltype(a)>, Wide, UnsignedWide>;
    return static_cast<Twice>(a) * static_cast<Twice>(b);
  };
  constexpr auto sum = [](auto a, auto b, auto c) {
    using Twice = std::conditional_t<std::is_signed_v<decltype(a)>, Wide, UnsignedWide>;
    return static_cast<UnsignedWide>(static_cast<Twice>(a) * static_cast<Twice>(b)) + static_cast<UnsignedWide>(c);
  };
  if (adds)
    return isSigned ? ternary<Wide, Signed, Wide, sum> : ternary<UnsignedWide, Unsigned, UnsignedWide, sum>;
  return isSigned ? binary<Wide, Signed, Signed, product> : binary<UnsignedWide, Unsigned, Unsigned, product>;
}

Execute productOf(const std::string &type, bool isWide, bool isHigh, bool adds) {
  bool isSigned = type[0] == 's';
  int bytes = typeBytes(type);
  if (isWide)
    return bytes == 2   ? wideProduct<int16_t, uint16_t, int32_t, uint32_t>(isSigned, adds)
           : bytes == 4 ? wideProduct<int32_t, uint32_t, int64_t, uint64_t>(isSigned, adds)
                        : nullptr;
  if (isHigh)
    return adds ? nullptr : signedBinary<mulHigh>(type);
  constexpr auto sum = [](auto a, auto b, auto c) {
    return static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c);
  };
  if (adds)
    return bytes == 2   ? ternary<uint16_t, uint16_t, uint16_t, sum>
           : bytes == 4 ? ternary<uint32_t, uint32_t, uint32_t, sum>
                        : ternary<uint64_t, uint64_t, uint64_t, sum>;
  return wrappingBinary<[](auto a, auto b) { return static_cast<uint64_t>(a) * static_cast<uint64_t>(b); }>(type);
}

bool isFloat(const std::string &type) { return type[0] == 'f' || (type[0] == 'b' && type[1] == 'f'); }

template <typename T> constexpr auto negate = [](T a) -> T { return a ^ static_cast<T>(T{1} << (8 * sizeof(T) - 1)); };
template <typename T>
constexpr auto clearSign = [](T a) -> T { return a & static_cast<T>(~(T{1} << (8 * sizeof(T) - 1))); };

/// neg and abs of floats change the sign's bit only, also of NaN.
Execute signChange(const std::string &type, bool isNegation) {
  switch (typeBytes(type)) {
  case 2:
    return isNegation ? unary<uint16_t, uint16_t, negate<uint16_t>> : unary<uint16_t, uint16_t, clearSign<uint16_t>>;
  case 4:
    if (type != "f32")
      return nullptr;
    return isNegation ? unary<uint32_t, uint32_t, negate<uint32_t>> : unary<uint32_t, uint32_t, clearSign<uint32_t>>;
  default:
    return isNegation ? unary<uint64_t, uint64_t, negate<uint64_t>> : unary<uint64_t, uint64_t, clearSign<uint64_t>>;
  }
}

Execute fusedProduct(Mnemonic &mnemonic, const std::string &type) {
  if (mnemonic.take("rm") && type == "f32")
    return fmaRounded<FE_DOWNWARD>;
  if (!mnemonic.take("rn"))
    return nullptr;
  constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
  constexpr auto bf16 = [](uint16_t a, uint16_t b, uint16_t c) {
    return Bf16::narrow(addToOdd(static_cast<double>(Bf16::widen(a)) * Bf16::widen(b), Bf16::widen(c)));
  };
  constexpr auto f16 = [](uint16_t a, uint16_t b, uint16_t c) {
    return F16::narrow(addToOdd(static_cast<double>(F16::widen(a)) * F16::widen(b), F16::widen(c)));
  };
  return type == "f32"    ? ternary<float, float, float, fused>
         : type == "f64"  ? ternary<double, double, double, fused>
         : type == "bf16" ? ternary<uint16_t, uint16_t, uint16_t, bf16>
         : type == "f16"  ? ternary<uint16_t, uint16_t, uint16_t, f16>
                          : nullptr;
}

Execute approximation(Mnemonic &mnemonic, const std::string &type) {
  if (!mnemonic.take("approx"))
    return nullptr;
  bool flushes = mnemonic.take("ftz");
  if (type == "f64")
    return mnemonic.name == "rcp" && flushes ? unary<double, double, [](double a) { return 1 / a; }> : nullptr;
  if (type != "f32")
    return nullptr;
#define TESSERA_APPROXIMATE(word, body)                                                                                \
  if (mnemonic.name == word)                                                                                           \
  return flushes ? approximate<[](double a) { return body; }, true> : approximate<[](double a) { return body; }, false>
  TESSERA_APPROXIMATE("ex2", std::exp2(a));
  TESSERA_APPROXIMATE("lg2", std::log2(a));
  TESSERA_APPROXIMATE("rcp", 1 / a);
  TESSERA_APPROXIMATE("rsqrt", 1 / std::sqrt(a));
  TESSERA_APPROXIMATE("sqrt", std::sqrt(a));
  TESSERA_APPROXIMATE("sin", std::sin(a));
  TESSERA_APPROXIMATE("cos", std::cos(a));
  TESSERA_APPROXIMATE("tanh", std::tanh(a));
#undef TESSERA_APPROXIMATE
  return nullptr;
}

Execute shift(const Mnemonic &mnemonic, const std::string &type) {
  constexpr auto left = [](auto a, uint32_t b) {
    return b >= 8 * sizeof(a) ? decltype(a){0} : static_cast<decltype(a)>(a << b);
  };
  constexpr auto right = [](auto a, uint32_t b) {
    return static_cast<decltype(a)>(a >> (b >= 8 * sizeof(a) ? 8 * sizeof(a) - 1 : b) >> (b >= 8 * sizeof(a)));
  };
  bool isLeft = mnemonic.name == "shl", isSigned = type[0] == 's';
  switch (typeBytes(type)) {
  case 2:
    return isLeft     ? binary<uint16_t, uint16_t, uint32_t, left>
           : isSigned ? binary<int16_t, int16_t, uint32_t, right>
                      : binary<uint16_t, uint16_t, uint32_t, right>;
  case 4:
    return isLeft     ? binary<uint32_t, uint32_t, uint32_t, left>
           : isSigned ? binary<int32_t, int32_t, uint32_t, right>
                      : binary<uint32_t, uint32_t, uint32_t, right>;
  default:
    return isLeft     ? binary<uint64_t, uint64_t, uint32_t, left>
           : isSigned ? binary<int64_t, int64_t, uint32_t, right>
                      : binary<uint64_t, uint64_t, uint32_t, right>;
  }
}

Execute setPredicate(Mnemonic &mnemonic, Instruction &instruction, const std::string &type) {
  const char *combinations[] = {"and", "or", "xor"};
  for (int which = 0; which < 3; ++which)
    if (mnemonic.take(combinations[which]))
      instruction.choice |= (which + 1) << 1;
  mnemonic.take("ftz");
  if (mnemonic.modifiers.size() != 1)
    return nullptr;
  std::string how = mnemonic.modifiers.front();
  mnemonic.modifiers.clear();
  return type == "f32"                    ? comparison<float>(how)
         : type == "f64"                  ? comparison<double>(how)
         : type == "s16"                  ? comparison<int16_t>(how)
         : type == "s32"                  ? comparison<int32_t>(how)
         : type == "s64"                  ? comparison<int64_t>(how)
         : type == "u16" || type == "b16" ? comparison<uint16_t>(how)
         : type == "u32" || type == "b32" ? comparison<uint32_t>(how)
         : type == "u64" || type == "b64" ? comparison<uint64_t>(how)
                                          : nullptr;
}

Execute ofTwo(Mnemonic &mnemonic, const std::string &type) {
  const std::string &name = mnemonic.name;
  if (isFloat(type)) {
    mnemonic.take("rn");
    bool keepsNan = mnemonic.take("NaN");
    if (name == "add")
      return floatBinary<[](auto a, auto b) { return a + b; }>(type);
    if (name == "sub")
      return floatBinary<[](auto a, auto b) { return a - b; }>(type);
    if (name == "mul")
      return floatBinary<[](auto a, auto b) { return a * b; }>(type);
    if (name == "div")
      return typeBytes(type) < 4 ? nullptr : floatBinary<[](auto a, auto b) { return a / b; }>(type);
    if (name == "max")
      return keepsNan ? floatBinary<Extreme<true, true>{}>(type) : floatBinary<Extreme<true, false>{}>(type);
    if (name == "min")
      return keepsNan ? floatBinary<Extreme<false, true>{}>(type) : floatBinary<Extreme<false, false>{}>(type);
    return nullptr;
  }
  if (name == "add")
    return wrappingBinary<[](auto a, auto b) { return a + b; }>(type);
  if (name == "sub")
    return wrappingBinary<[](auto a, auto b) { return a - b; }>(type);
  if (name == "div")
    return signedBinary<divide>(type);
  if (name == "rem")
    return signedBinary<remainder>(type);
  if (name == "max")
    return signedBinary<[](auto a, auto b) { return (a > b) ? a : b; }>(type);
  if (name == "min")
    return signedBinary<[](auto a, auto b) { return a < b ? a : b; }>(type);
  if (name == "and")
    return signedBinary<[](auto a, auto b) { return a & b; }>(type);
  if (name == "or")
    return signedBinary<[](auto a, auto b) { return a | b; }>(type);
  if (name == "xor")
    return signedBinary<[](auto a, auto b) { return a ^ b; }>(type);
  return nullptr;
}

template <auto F> Execute integerUnary(const std::string &type) {
  switch (typeBytes(type)) {
  case 2:
    return unary<uint16_t, uint16_t, F>;
  case 4:
    return unary<uint32_t, uint32_t, F>;
  default:
    return unary<uint64_t, uint64_t, F>;
  }
}

} // namespace

Execute selectArithmetic(Mnemonic &mnemonic, Instruction &instruction) {
  const std::string name = mnemonic.name;
  if (name == "resize") {
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
  if (name == "cvt")
    return conversion(mnemonic);
  if (name == "cvta") {
    mnemonic.take("to");
    bool isKnown = mnemonic.take("global") || mnemonic.take("local") || mnemonic.take("param");
    return mnemonic.take("u64") && isKnown ? unary<uint64_t, uint64_t, same> : nullptr;
  }
  if (mnemonic.modifiers.empty())
    return nullptr;
  std::string type = mnemonic.modifiers.back();
  int bytes = typeBytes(type);
  if (bytes < 0)
    return nullptr;
  mnemonic.modifiers.pop_back();

  if (type == "pred") {
    return name == "and"   ? logic<[](uint32_t a, uint32_t b) { return a & b; }>
           : name == "or"  ? logic<[](uint32_t a, uint32_t b) { return a | b; }>
           : name == "xor" ? logic<[](uint32_t a, uint32_t b) { return a ^ b; }>
           : name == "mov" ? logic<[](uint32_t a, uint32_t) { return a; }>
           : name == "not" ? logic<[](uint32_t a, uint32_t) { return ~a; }>
           : name == "vote" && mnemonic.take("sync") && mnemonic.take("any") ? voteOf<false>
           : name == "vote" && mnemonic.take("all")                          ? voteOf<true>
                                                                             : nullptr;
  }
  if (name == "mov")
    return integerUnary<same>(type);
  if (name == "shfl") {
    const char *modes[] = {"up", "down", "bfly", "idx"};
    for (uint32_t mode = 0; mode < 4; ++mode)
      if (mnemonic.take(modes[mode])) {
        instruction.vector[1] = mode;
        return mnemonic.take("sync") && bytes == 4 ? shuffle : nullptr;
      }
    return nullptr;
  }
  if (name == "vote")
    return mnemonic.take("sync") && mnemonic.take("ballot") ? ballot : nullptr;
  if (name == "setp")
    return setPredicate(mnemonic, instruction, type);
  if (name == "selp")
    return bytes == 2 ? select<uint16_t> : bytes == 4 ? select<uint32_t> : select<uint64_t>;
  if (name == "shl" || name == "shr")
    return shift(mnemonic, type);
  if (name == "fma")
    return fusedProduct(mnemonic, type);
  if (name == "shf") {
    bool isLeft = mnemonic.take("l");
    if ((!isLeft && !mnemonic.take("r")) || !mnemonic.take("wrap"))
      return nullptr;
    constexpr auto left = [](uint32_t a, uint32_t b, uint32_t c) {
      return (static_cast<uint64_t>(b) << 32 | a) << (c & 31) >> 32;
    };
    constexpr auto right = [](uint32_t a, uint32_t b, uint32_t c) {
      return (static_cast<uint64_t>(b) << 32 | a) >> (c & 31);
    };
    return isLeft ? ternary<uint32_t, uint32_t, uint32_t, left> : ternary<uint32_t, uint32_t, uint32_t, right>;
  }
  if (name == "prmt")
    return permute;
  if (name == "bfe")
    return type == "u32" ? extractBits<uint32_t> : type == "u64" ? extractBits<uint64_t> : nullptr;
  if (name == "popc")
    return bytes == 4 ? unary<uint32_t, uint32_t, [](uint32_t a) { return std::popcount(a); }>
                      : unary<uint32_t, uint64_t, [](uint64_t a) { return std::popcount(a); }>;
  if (name == "clz")
    return bytes == 4 ? unary<uint32_t, uint32_t, [](uint32_t a) { return std::countl_zero(a); }>
                      : unary<uint32_t, uint64_t, [](uint64_t a) { return std::countl_zero(a); }>;
  if (name == "not")
    return integerUnary<[](auto a) { return ~a; }>(type);
  if (name == "neg" || name == "abs") {
    if (isFloat(type)) {
      mnemonic.take("ftz");
      return signChange(type, name == "neg");
    }
    if (name == "neg")
      return integerUnary<[](auto a) { return 0 - a; }>(type);
    constexpr auto size = [](auto a) { return a < 0 ? 0 - a : a; };
    return type == "s32" ? unary<int32_t, int32_t, size> : type == "s64" ? unary<int64_t, int64_t, size> : nullptr;
  }
  if (name == "copysign")
    return type == "f32" ? binary<float, float, float, [](float a, float b) { return std::copysign(b, a); }>
                         : binary<double, double, double, [](double a, double b) { return std::copysign(b, a); }>;
  if (name == "sqrt" && mnemonic.take("rn"))
    return floatUnary<[](auto a) { return std::sqrt(a); }>(type);
  if (name == "rcp" && mnemonic.take("rn"))
    return floatUnary<[](auto a) { return 1 / a; }>(type);
  if (name == "mad" || name == "madc") {
    bool gives = mnemonic.take("cc"), takes = name == "madc", isHigh = mnemonic.take("hi"),
         isWide = mnemonic.take("wide");
    mnemonic.take("lo");
    if (gives || takes) {
      if (type != "u32")
        return nullptr;
      return isHigh ? (takes ? (gives ? withCarry<true, true, true, true> : withCarry<true, true, true, false>)
                             : withCarry<true, true, false, true>)
                    : (takes ? (gives ? withCarry<false, true, true, true> : withCarry<false, true, true, false>)
                             : withCarry<false, true, false, true>);
    }
    return productOf(type, isWide, isHigh, true);
  }
  if (name == "mul" && !isFloat(type)) {
    bool isHigh = mnemonic.take("hi"), isWide = mnemonic.take("wide");
    mnemonic.take("lo");
    return productOf(type, isWide, isHigh, false);
  }
  if (Execute approximate = approximation(mnemonic, type))
    return approximate;
  return ofTwo(mnemonic, type);
}

} // namespace tessera::sim
