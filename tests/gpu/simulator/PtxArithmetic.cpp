//===- PtxArithmetic.cpp - arithmetic of PTX --------------------------------===//

#include "Approximations.h"
#include "PtxLanes.h"

#include <cfenv>
#include <limits>

namespace tessera::sim {
namespace {

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

/// A unit at its documented worst.
template <Unit Which, bool Flushes> void approximate(Warp &warp, const Instruction &i, uint32_t lanes) {
  constexpr uint32_t seed = 1;
  float *d = warp.at<float>(i.d);
  const float *a = warp.at<float>(i.a);
  forLanes(lanes, [&](int lane) { d[lane] = approximation(Which, a[lane], Flushes, seed); });
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

/// From sm_100 on: an f32 result of narrow operands, rounded once. The second operand of a sum is f32 too.
template <auto Widen> Execute ofNarrow(const std::string &name) {
  if (name == "fma")
    return ternary<float, uint16_t, float,
                   [](uint16_t a, uint16_t b, float c) { return std::fma(Widen(a), Widen(b), c); }>;
  if (name == "add")
    return binary<float, uint16_t, float, [](uint16_t a, float b) { return Widen(a) + b; }>;
  if (name == "sub")
    return binary<float, uint16_t, float, [](uint16_t a, float b) { return Widen(a) - b; }>;
  return nullptr;
}

Execute selectApproximation(Mnemonic &mnemonic, const std::string &type) {
  if (!mnemonic.take("approx"))
    return nullptr;
  bool flushes = mnemonic.take("ftz");
  if (type == "f64")
    return mnemonic.name == "rcp" && flushes ? unary<double, double, [](double a) { return 1 / a; }> : nullptr;
  if (type != "f32")
    return nullptr;
#define TESSERA_APPROXIMATE(word, unit)                                                                                \
  if (mnemonic.name == word)                                                                                           \
  return flushes ? approximate<Unit::unit, true> : approximate<Unit::unit, false>
  TESSERA_APPROXIMATE("ex2", Exp2);
  TESSERA_APPROXIMATE("lg2", Log2);
  TESSERA_APPROXIMATE("rcp", Reciprocal);
  TESSERA_APPROXIMATE("rsqrt", RootReciprocal);
  TESSERA_APPROXIMATE("sqrt", Root);
  TESSERA_APPROXIMATE("sin", Sine);
  TESSERA_APPROXIMATE("cos", Cosine);
  TESSERA_APPROXIMATE("tanh", Tanh);
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
  if (Execute found = selectConversion(mnemonic))
    return found;
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

  if (Execute found = selectPredicate(mnemonic, instruction, type))
    return found;
  if (name == "mov")
    return integerUnary<same>(type);
  if (name == "shl" || name == "shr")
    return shift(mnemonic, type);
  if ((type == "bf16" || type == "f16") && mnemonic.take("f32")) {
    mnemonic.take("rn");
    return type == "bf16" ? ofNarrow<Bf16::widen>(name) : ofNarrow<F16::widen>(name);
  }
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
  if (Execute approximate = selectApproximation(mnemonic, type))
    return approximate;
  return ofTwo(mnemonic, type);
}

} // namespace tessera::sim