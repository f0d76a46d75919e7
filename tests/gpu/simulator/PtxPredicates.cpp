//===- PtxPredicates.cpp - predicates of PTX, and what threads tell each other -===//

#include "PtxLanes.h"

#include <array>

namespace tessera::sim {
namespace {

// --- Predicates -------------------------------------------------------------------

/// A bf16 or f16 that compares as its f32.
template <typename Format> struct Narrow {
  uint16_t bits;
  operator float() const { return Format::widen(bits); }
};

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
         : type == "bf16"                 ? comparison<Narrow<Bf16>>(how)
         : type == "f16"                  ? comparison<Narrow<F16>>(how)
         : type == "s16"                  ? comparison<int16_t>(how)
         : type == "s32"                  ? comparison<int32_t>(how)
         : type == "s64"                  ? comparison<int64_t>(how)
         : type == "u16" || type == "b16" ? comparison<uint16_t>(how)
         : type == "u32" || type == "b32" ? comparison<uint32_t>(how)
         : type == "u64" || type == "b64" ? comparison<uint64_t>(how)
                                          : nullptr;
}

} // namespace

Execute selectPredicate(Mnemonic &mnemonic, Instruction &instruction, const std::string &type) {
  const std::string &name = mnemonic.name;
  const int bytes = typeBytes(type);
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
  return nullptr;
}

} // namespace tessera::sim
