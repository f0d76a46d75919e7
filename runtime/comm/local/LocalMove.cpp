//===- LocalMove.cpp - copies and reductions between ranks of one process --===//

#include "runtime/comm/local/LocalMove.h"

#include "runtime/base/BFloat16.h"
#include "runtime/base/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tessera::local {

void copy(void *target, const void *source, size_t bytes) {
  if (target != source && bytes > 0)
    std::memcpy(target, source, bytes);
}

bool canReduce(artifact::DataType dtype) {
  switch (dtype) {
  case artifact::DataType::F32:
  case artifact::DataType::F64:
  case artifact::DataType::BF16:
  case artifact::DataType::F16:
  case artifact::DataType::I32:
  case artifact::DataType::I64:
    return true;
  default:
    return false;
  }
}

namespace {

/// Elements that are summed at a time: the partial sums stay in the first-level cache.
constexpr int64_t blockElements = 2048;

/// `target` may be `a` or `b`, and overlaps neither in part.
template <typename T> void addTo(T *target, const T *a, const T *b, int64_t count) {
#pragma GCC ivdep
  for (int64_t index = 0; index < count; ++index)
    target[index] = a[index] + b[index];
}

template <typename T> void sumAs(T *target, const std::vector<const void *> &inputs, int64_t elements) {
  alignas(64) T partial[blockElements];
  for (int64_t first = 0; first < elements; first += blockElements) {
    int64_t count = std::min(blockElements, elements - first);
    auto from = [&](size_t member) { return static_cast<const T *>(inputs[member]) + first; };
    if (inputs.size() == 2) {
      addTo(target + first, from(0), from(1), count);
      continue;
    }
    std::copy(from(0), from(0) + count, partial);
    for (size_t member = 1; member + 1 < inputs.size(); ++member)
      addTo(partial, partial, from(member), count);
    if (inputs.size() > 1)
      addTo(target + first, partial, from(inputs.size() - 1), count);
    else
      std::copy(partial, partial + count, target + first);
  }
}

/// Sums in f32 and rounds once.
template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
void sumNarrow(uint16_t *target, const std::vector<const void *> &inputs, int64_t elements) {
  for (int64_t index = 0; index < elements; ++index) {
    float total = 0;
    for (const void *input : inputs)
      total += widen(static_cast<const uint16_t *>(input)[index]);
    target[index] = narrow(total);
  }
}

template <typename T> T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    if (a == b)
      return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}

template <typename T> T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    if (a == b)
      return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <typename T> T same(T value) { return value; }

/// Picks in type `Wide`, which holds every `T`.
template <typename T, typename Wide, Wide (*widen)(T), T (*narrow)(Wide)>
void pick(bool isMax, void *target, const std::vector<const void *> &inputs, int64_t elements) {
  for (int64_t index = 0; index < elements; ++index) {
    Wide best = widen(static_cast<const T *>(inputs[0])[index]);
    for (size_t member = 1; member < inputs.size(); ++member) {
      Wide next = widen(static_cast<const T *>(inputs[member])[index]);
      best = isMax ? larger(best, next) : smaller(best, next);
    }
    static_cast<T *>(target)[index] = narrow(best);
  }
}

template <typename T> void pickAs(bool isMax, void *target, const std::vector<const void *> &inputs, int64_t elements) {
  pick<T, T, same<T>, same<T>>(isMax, target, inputs, elements);
}

void pick(bool isMax, artifact::DataType dtype, void *target, const std::vector<const void *> &inputs,
          int64_t elements) {
  switch (dtype) {
  case artifact::DataType::F32:
    return pickAs<float>(isMax, target, inputs, elements);
  case artifact::DataType::F64:
    return pickAs<double>(isMax, target, inputs, elements);
  case artifact::DataType::BF16:
    return pick<uint16_t, float, widenBFloat16, toBFloat16>(isMax, target, inputs, elements);
  case artifact::DataType::F16:
    return pick<uint16_t, float, widenHalf, toHalf>(isMax, target, inputs, elements);
  case artifact::DataType::I32:
    return pickAs<int32_t>(isMax, target, inputs, elements);
  case artifact::DataType::I64:
    return pickAs<int64_t>(isMax, target, inputs, elements);
  default:
    return; // the communicator refuses these types
  }
}

} // namespace

void reduce(artifact::ReductionKind kind, artifact::DataType dtype, void *target,
            const std::vector<const void *> &inputs, int64_t elements) {
  if (kind != artifact::ReductionKind::Sum)
    return pick(kind == artifact::ReductionKind::Max, dtype, target, inputs, elements);
  switch (dtype) {
  case artifact::DataType::F32:
    return sumAs(static_cast<float *>(target), inputs, elements);
  case artifact::DataType::F64:
    return sumAs(static_cast<double *>(target), inputs, elements);
  case artifact::DataType::BF16:
    return sumNarrow<widenBFloat16, toBFloat16>(static_cast<uint16_t *>(target), inputs, elements);
  case artifact::DataType::F16:
    return sumNarrow<widenHalf, toHalf>(static_cast<uint16_t *>(target), inputs, elements);
  case artifact::DataType::I32:
    return sumAs(static_cast<int32_t *>(target), inputs, elements);
  case artifact::DataType::I64:
    return sumAs(static_cast<int64_t *>(target), inputs, elements);
  default:
    return; // the communicator refuses these types
  }
}

std::pair<int64_t, int64_t> part(int64_t elements, size_t position, size_t count) {
  int64_t size = (elements + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
  int64_t begin = std::min(elements, size * static_cast<int64_t>(position));
  return {begin, std::min(elements, begin + size)};
}

} // namespace tessera::local
