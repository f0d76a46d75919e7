//===- KeyRanges.h - ranges of keys for tests of attention -----------------===//

#ifndef TESSERA_TESTS_RUNTIME_DEVICE_KEYRANGES_H
#define TESSERA_TESTS_RUNTIME_DEVICE_KEYRANGES_H

#include "runtime/artifact/TensorView.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace tessera::test {

enum class Ranges {
  None,
  Ragged,    ///< another range for each query; some are empty or reach beyond the keys
  Documents, ///< neighbours see the same few keys, the last ones may see none
};
/// What has the leading dimension of the batch.
enum class RangesOf { All, EachSample, EndsOfEachSample };

/// `begin` and `end` of an attention instruction.
class KeyRanges {
public:
  KeyRanges(Ranges kind, RangesOf of, int64_t batch, int64_t queries, int64_t keys) : queries(queries), keys(keys) {
    for (int64_t sample = 0; sample < (of == RangesOf::EachSample ? batch : 1); ++sample)
      add(kind, sample, false);
    for (int64_t sample = 0; sample < (of == RangesOf::All ? 1 : batch); ++sample)
      add(kind, sample, true);
  }

  int64_t &begin(int64_t sample, int64_t query) { return at(begins, sample, query); }
  int64_t &end(int64_t sample, int64_t query) { return at(ends, sample, query); }
  bool sees(int64_t sample, int64_t query, int64_t key) {
    return begin(sample, query) <= key && key < end(sample, query);
  }
  TensorView beginView() { return viewOf(begins); }
  TensorView endView() { return viewOf(ends); }

private:
  int64_t &at(std::vector<int64_t> &list, int64_t sample, int64_t query) {
    return list[static_cast<size_t>(static_cast<int64_t>(list.size()) == queries ? query : sample * queries + query)];
  }
  TensorView viewOf(std::vector<int64_t> &list) const {
    TensorView made;
    made.data = list.data();
    made.dtype = artifact::DataType::I64;
    made.shape = {static_cast<int64_t>(list.size()) / queries, queries};
    made.strides = {queries, 1};
    return made;
  }

  /// Appends the begins of a sample, or its ends.
  void add(Ranges kind, int64_t sample, bool isEnd) {
    std::mt19937 generator(static_cast<uint32_t>(sample) + 17);
    for (int64_t query = 0; query < queries; ++query) {
      const auto [first, end] = kind == Ranges::Ragged ? ragged(query, generator) : document(sample, query);
      (isEnd ? ends : begins).push_back(isEnd ? end : first);
    }
  }
  std::pair<int64_t, int64_t> ragged(int64_t query, std::mt19937 &generator) const {
    using Limits = std::numeric_limits<int64_t>;
    std::uniform_int_distribution<int64_t> pick(0, keys);
    const int64_t a = pick(generator), b = pick(generator);
    switch (query % 7) {
    case 0:
      return {a, a};
    case 1:
      return {std::max(a, b) + 1, std::min(a, b)};
    case 2:
      return {Limits::min(), a};
    case 3:
      return {a, Limits::max()};
    case 4:
      return {Limits::max(), Limits::min()};
    default:
      return {std::min(a, b), std::max(a, b)};
    }
  }
  std::pair<int64_t, int64_t> document(int64_t sample, int64_t query) const {
    const int64_t length = 37 + 11 * sample, first = query / length * length + 5;
    return {first, std::min(first + length - 3, keys)};
  }

  int64_t queries, keys;
  std::vector<int64_t> begins, ends;
};

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_DEVICE_KEYRANGES_H
