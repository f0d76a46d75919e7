//===- FiniteState.cpp - looks for infinities and NaNs in the state -------------===//

#include "runtime/state/FiniteState.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace tessera {

/// Counts the words whose bits of `mask` (the exponent) are all set.
template <typename Word> static uint64_t countMasked(ByteSpan bytes, Word mask) {
  // A narrow counter keeps the inner loop as wide as the data; it cannot overflow in a block.
  constexpr size_t blockWords = sizeof(Word) == 1 ? 128 : 4096;
  uint64_t count = 0;
  const size_t words = bytes.size() / sizeof(Word);
  for (size_t begin = 0; begin < words; begin += blockWords) {
    const size_t end = std::min(words, begin + blockWords);
    Word inBlock = 0;
    for (size_t i = begin; i < end; ++i) {
      Word word;
      std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
      inBlock = static_cast<Word>(inBlock + ((word & mask) == mask));
    }
    count += inBlock;
  }
  return count;
}

uint64_t countNonFinite(ByteSpan bytes, DataType dtype) {
  switch (dtype) {
  case DataType::F64:
    return countMasked<uint64_t>(bytes, 0x7ff0000000000000);
  case DataType::F32:
    return countMasked<uint32_t>(bytes, 0x7f800000);
  case DataType::F16:
    return countMasked<uint16_t>(bytes, 0x7c00);
  case DataType::BF16:
    return countMasked<uint16_t>(bytes, 0x7f80);
  case DataType::F8E5M2:
    return countMasked<uint8_t>(bytes, 0x7c);
  case DataType::F8E4M3FN: // has no infinities and one NaN
    return countMasked<uint8_t>(bytes, 0x7f);
  case DataType::F8E8M0FNU: // nor a sign
    return countMasked<uint8_t>(bytes, 0xff);
  case DataType::Bool:
  case DataType::I8:
  case DataType::I32:
  case DataType::I64:
  case DataType::U8:
    return 0;
  }
  return 0;
}

uint64_t copyAndCountNonFinite(uint8_t *target, ByteSpan source, DataType dtype) {
  constexpr size_t blockBytes = 1 << 16; // stays in the cache between the copy and the count
  uint64_t count = 0;
  for (size_t begin = 0; begin < source.size(); begin += blockBytes) {
    const size_t bytes = std::min(blockBytes, source.size() - begin);
    std::memcpy(target + begin, source.data() + begin, bytes);
    count += countNonFinite({target + begin, bytes}, dtype);
  }
  return count;
}

namespace {
/// What has been found so far.
struct Found {
  std::string first;
  std::set<std::string> others; ///< each once, in how many parts and on how many ranks it may be
  uint64_t firstValues = 0, otherValues = 0;

  void add(const std::string &name, uint64_t values) {
    if (values == 0)
      return;
    if (first.empty() || first == name) {
      first = name;
      firstValues += values;
    } else {
      others.insert(name);
      otherValues += values;
    }
  }
};
} // namespace

std::string describeNonFinite(const std::vector<RankState> &ranks, bool states) {
  Found found;
  for (const RankState &rank : ranks)
    for (const StateView &view : rank) {
      if (view.kind == StateRole::Frozen || !view.saves || (view.kind.role == StateRole::Optimizer && !states))
        continue;
      const uint64_t all = countNonFinite(view.bytes(), view.dtype);
      uint64_t inSegments = 0;
      const bool isOwn = view.kind.isOfModel();
      const std::string prefix = toString(view.kind) + (isOwn ? " '" : " of '");
      for (size_t index = 0; all > 0 && index < view.segments.size(); ++index) {
        const ParameterSegment &segment = view.segments[index];
        auto [begin, end] = overlap(view, segment);
        if (begin >= end)
          continue;
        const size_t width = elementBytes(view.dtype);
        const uint64_t values =
            countNonFinite({view.data + (begin - view.begin) * width, (end - begin) * width}, view.dtype);
        found.add(prefix + segment.name + "'", values);
        inSegments += values;
      }
      found.add("the padding of unit '" + view.unit + "'", all - inSegments);
    }
  if (found.first.empty())
    return "";
  auto values = [](uint64_t count) { return std::to_string(count) + (count == 1 ? " value" : " values"); };
  std::string text = found.first + " has " + values(found.firstValues) + " that " +
                     (found.firstValues == 1 ? "is" : "are") + " not finite";
  if (!found.others.empty())
    text += " (and " + std::to_string(found.others.size()) +
            (found.others.size() == 1 ? " other has " : " others have ") + std::to_string(found.otherValues) + ")";
  return text;
}

} // namespace tessera
