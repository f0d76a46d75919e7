//===- TokenWidth.cpp - how many bytes a token of a file has -----------------===//

#include "runtime/data/TokenWidth.h"

#include "runtime/base/EvenBlocks.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

namespace tessera {
namespace {

constexpr int widths[] = {2, 4, 8};
constexpr uint64_t blockBytes = 4096;
/// Fewer values say nothing about where their upper halves are.
constexpr size_t minPairs = 64;
/// At most one value in 64 may be outside of the vocabulary: a single bad token is found where it is read.
constexpr uint64_t strays = 64;
/// No vocabulary is larger, and no other bound is known of a model without one.
constexpr int64_t largestVocabulary = int64_t{1} << 24, uint16Values = int64_t{1} << 16;

/// Bytes of the file from `offset` on, a multiple of the largest width.
struct Block {
  uint64_t offset;
  std::vector<uint8_t> bytes;
};
using Sample = std::vector<Block>;

Result<Sample> sampleOf(const InputFile &file, uint64_t limit) {
  Sample sample;
  auto add = [&](uint64_t offset, uint64_t count) -> Status {
    sample.push_back({offset, std::vector<uint8_t>(count)});
    return file.read(offset, sample.back().bytes.data(), count);
  };
  constexpr uint64_t unit = 8; // blocks begin at a value of any width
  if (file.size() <= limit)
    TESSERA_RETURN_IF_ERROR(forEvenBlocks(file.size(), blockBytes, limit, add));
  else
    TESSERA_RETURN_IF_ERROR(
        forEvenBlocks(file.size() / unit, blockBytes / unit, limit / unit,
                      [&](uint64_t begin, uint64_t count) { return add(begin * unit, count * unit); }));
  return sample;
}

/// Whether values of two halves have their upper half near 0 and the lower one anywhere: at least half of the lower
/// halves are above (nearly) all upper ones, some of which are 0. Of a row of values half as wide, both halves are
/// tokens of one text. Zeros, which pad a text, are left out.
template <typename Half> bool hasSmallUpperHalves(const Sample &sample) {
  std::vector<Half> lower, upper;
  for (const Block &block : sample)
    for (size_t at = 0; at + 2 * sizeof(Half) <= block.bytes.size(); at += 2 * sizeof(Half)) {
      Half pair[2];
      std::memcpy(pair, block.bytes.data() + at, sizeof(pair));
      if (pair[0] == 0 && pair[1] == 0)
        continue;
      lower.push_back(pair[0]);
      // All bits are set above a negative number, -100 for one.
      upper.push_back(pair[1] == std::numeric_limits<Half>::max() ? 0 : pair[1]);
    }
  if (lower.size() < minPairs || std::count(upper.begin(), upper.end(), 0) * 8 < std::ssize(upper))
    return false;
  const auto most = upper.end() - 1 - static_cast<std::ptrdiff_t>(upper.size() / strays);
  std::nth_element(upper.begin(), most, upper.end());
  const auto above = std::count_if(lower.begin(), lower.end(), [&](Half value) { return value > *most; });
  return 2 * static_cast<size_t>(above) >= lower.size();
}

/// What the sample is with values of one width.
struct Reading {
  int width;
  int64_t bound; ///< values should be in [0, bound)
  uint64_t values = 0, beyond = 0;
  uint64_t firstPlace = 0; ///< of the first one beyond, in the file
  int64_t firstValue = 0;

  Reading(int width, int64_t bound, const Sample &sample) : width(width), bound(bound) {
    for (const Block &block : sample)
      for (size_t at = 0; at + width <= block.bytes.size(); at += width)
        add((block.offset + at) / width, block.bytes.data() + at);
  }
  void add(uint64_t place, const uint8_t *bytes) {
    int64_t value = 0;
    std::memcpy(&value, bytes, width);
    ++values;
    if (value >= 0 && value < bound)
      return;
    if (beyond++ == 0) {
      firstPlace = place;
      firstValue = value;
    }
  }
  bool fits() const { return beyond * strays <= values; }
  std::string describe() const {
    const std::string range = " in [0, " + std::to_string(bound) + ")", head = "as " + tokenTypeName(width) + ", ";
    if (beyond == 0)
      return head + "all of " + std::to_string(values) + " values sampled are" + range;
    return head + std::to_string(beyond) + " of " + std::to_string(values) + " values sampled are not" + range +
           ", the first: token " + std::to_string(firstPlace) + " is " + std::to_string(firstValue);
  }
};

class Decision {
public:
  Decision(const InputFile &file, const TokenWidthHints &hints, const Sample &sample)
      : file(file), hints(hints), sample(sample), sign(hasSmallUpperHalves<uint32_t>(sample)   ? 8
                                                       : hasSmallUpperHalves<uint16_t>(sample) ? 4
                                                                                               : 0) {}

  Result<TokenWidth> make() const { return hints.asked != 0 ? asked() : byValues(); }

private:
  bool isMultipleOf(int width) const { return file.size() % width == 0; }
  bool isKnown() const { return hints.vocabulary >= 0; }
  Reading readAs(int width) const { return {width, isKnown() ? hints.vocabulary : largestVocabulary, sample}; }
  bool mayBe(int width) const { return isMultipleOf(width) && readAs(width).fits(); }
  std::string name() const {
    return "token file '" + file.path() + "' (" + std::to_string(file.size()) + " bytes, no header) ";
  }
  std::string signText() const {
    return "every second " + std::to_string(sign * 4) + "-bit word is near 0 and the others are not, as in " +
           tokenTypeName(sign);
  }
  Status wrongSize(int width, const std::string &why) const {
    return TESSERA_ERROR(DataLoss, "token file '" + file.path() + "' has " + std::to_string(file.size()) +
                                       " bytes, expected a multiple of " + std::to_string(width) + why);
  }
  /// The tokens are not of `width`; maybe they are of another one.
  Status implausible(int width) const {
    std::string other = "; the tokens must be those of the model's tokenizer";
    for (int wanted : widths)
      if (wanted != width && (sign == 0 || wanted == sign) && mayBe(wanted))
        other = "; " + readAs(wanted).describe() + ": if that is what it holds, give --token-bytes " +
                std::to_string(wanted);
    return TESSERA_ERROR(
        InvalidArgument,
        name() + "is not of " +
            (isKnown() ? "the model's vocabulary of " + std::to_string(hints.vocabulary) : "any vocabulary") + ": " +
            readAs(width).describe() + other);
  }

  Result<TokenWidth> asked() const {
    const int width = hints.asked;
    const std::string flag = "--token-bytes ";
    if (!isMultipleOf(width))
      return wrongSize(width, " (" + flag + std::to_string(width) + ")");
    if (width < sign && isMultipleOf(sign))
      return TESSERA_ERROR(InvalidArgument, name() + "does not look like " + tokenTypeName(width) + " (" + flag +
                                                std::to_string(width) + "): " + signText() + "; give " + flag +
                                                std::to_string(sign) +
                                                ", or a file with a header of llm.c, if it really is so");
    return mayBe(width) ? Result<TokenWidth>({width, "--token-bytes"}) : implausible(width);
  }

  /// The narrowest type that the values or the vocabulary allow, if no wider one is possible, too.
  Result<TokenWidth> byValues() const {
    const int least = sign != 0 ? sign : hints.vocabulary > uint16Values ? 4 : 2;
    if (!isMultipleOf(least))
      return wrongSize(least, (sign != 0    ? ": " + signText()
                               : least == 4 ? " for a vocabulary of " + std::to_string(hints.vocabulary)
                                            : "") +
                                  " (truncated? --token-bytes says if it is another type)");
    std::vector<int> possible;
    std::string readings;
    for (int width : widths)
      if (width >= least && mayBe(width)) {
        possible.push_back(width);
        readings += (readings.empty() ? "" : "; ") + readAs(width).describe();
      }
    if (possible.size() > 1 && std::find(possible.begin(), possible.end(), hints.others) != possible.end())
      return TokenWidth{hints.others, "the files beside it"};
    if (possible.size() > 1)
      return TESSERA_ERROR(InvalidArgument,
                           name() + "may be of several types: " + readings + "; --token-bytes says which it is");
    if (possible.empty())
      return implausible(least);
    return TokenWidth{possible.front(),
                      isKnown() ? "values and a vocabulary of " + std::to_string(hints.vocabulary) : "values"};
  }

  const InputFile &file;
  const TokenWidthHints &hints;
  const Sample &sample;
  int sign; ///< the width that the upper halves of the values show; 0: they show none
};
} // namespace

std::string tokenTypeName(int bytes) { return bytes == 2 ? "uint16" : bytes == 4 ? "uint32" : "int64"; }

Result<TokenWidth> decideTokenWidth(const InputFile &file, const TokenWidthHints &hints) {
  if (hints.asked != 0 && std::find(std::begin(widths), std::end(widths), hints.asked) == std::end(widths))
    return TESSERA_ERROR(InvalidArgument, "tokens of " + std::to_string(hints.asked) + " bytes, expected 2, 4 or 8");
  TESSERA_ASSIGN_OR_RETURN(Sample sample, sampleOf(file, hints.sampledBytes));
  return Decision(file, hints, sample).make();
}

} // namespace tessera
