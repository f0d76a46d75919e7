//===- AttentionPack.h - between strided tensors and packed blocks ----------===//
//
// Blocks of a strided tensor of f32 or bf16 as operands of products (AttentionTile.h), with zeros beyond the edges, so
// that products have no edges; what already lies in memory as a product reads it is not copied. Local to the file that
// includes this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONPACK_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONPACK_H

#include "runtime/device/cpu/AttentionTile.h"

namespace tessera::cpu {
namespace {

using Half = uint16_t; ///< the bits of a bf16
using HalfBits = uint32_t __attribute__((may_alias));

float widen(float value) { return value; }
float widen(Half half) { return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16); }
void put(float *to, float value) { *to = value; }
void put(Half *to, float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  *to = static_cast<Half>(value == value ? rounded : bits >> 16 | 0x40);
}

/// Rows [first, +rows) of one head of a tensor [batch, head, row, depth].
struct Rows {
  const Strided &tensor;
  int64_t batch, head, first, rows, depth;
  template <typename T> T *row(int64_t index) const {
    return static_cast<T *>(tensor.data) + batch * tensor.strides[0] + head * tensor.strides[1] +
           (first + index) * tensor.strides[2];
  }
};

/// One word: element `at` of `from`, or the pair (at, at + step) of which the second is 0 at `end`.
template <bool Pairs, typename T> Word wordAt(const T *from, int64_t at, int64_t step, int64_t end) {
  if constexpr (Pairs) {
    const uint32_t second = at + step < end ? from[at + step] : 0;
    return __builtin_bit_cast(float, from[at] | second << 16);
  } else {
    return widen(from[at]);
  }
}

/// [capacity, padded(words of depth)]: a row's words lie side by side.
template <bool Pairs, typename T> void packRowsAs(const Rows &of, int64_t capacity, Word *target) {
  const int64_t width = padded(wordsOf<Pairs>(of.depth)), stride = of.tensor.strides[3], each = Pairs ? 2 : 1;
  for (int64_t row = 0; row < capacity; ++row, target += width) {
    int64_t word = 0;
    if (row < of.rows) {
      const T *from = of.row<T>(row);
      if (stride == 1)
        for (; word < wordsOf<Pairs>(of.depth); ++word)
          target[word] = wordAt<Pairs>(from, word * each, 1, of.depth);
      else
        for (; word < wordsOf<Pairs>(of.depth); ++word)
          target[word] = wordAt<Pairs>(from, word * each * stride, stride, of.depth * stride);
    }
    for (; word < width; ++word)
      target[word] = 0;
  }
}
/// The same, transposed: [words of depth, block].
template <bool Pairs, typename T> void packTransposedAs(const Rows &of, Word *target) {
  const int64_t stride = of.tensor.strides[3], each = Pairs ? 2 : 1;
  for (int64_t row = 0; row < block; ++row) {
    if (row < of.rows) {
      const T *from = of.row<T>(row);
      for (int64_t word = 0; word < wordsOf<Pairs>(of.depth); ++word)
        target[word * block + row] = wordAt<Pairs>(from, word * each * stride, stride, of.depth * stride);
    } else {
      for (int64_t word = 0; word < wordsOf<Pairs>(of.depth); ++word)
        target[word * block + row] = 0;
    }
  }
}
/// Pairs of rows: [block / 2, padded(depth)] words, each a column of two rows.
void packPairsOfRows(const Rows &of, Word *target) {
  const int64_t width = padded(of.depth), stride = of.tensor.strides[3];
  for (int64_t row = 0; row < block; row += 2, target += width) {
    int64_t column = 0;
    if (row < of.rows) {
      const bool hasSecond = row + 1 < of.rows;
      const Half *one = of.row<Half>(row), *two = of.row<Half>(hasSecond ? row + 1 : row);
      const uint32_t kept = hasSecond ? 0xffffffff : 0xffff;
      auto *to = reinterpret_cast<HalfBits *>(target);
      if (stride == 1)
        for (; column < of.depth; ++column)
          to[column] = (one[column] | static_cast<uint32_t>(two[column]) << 16) & kept;
      else
        for (; column < of.depth; ++column)
          to[column] = (one[column * stride] | static_cast<uint32_t>(two[column * stride]) << 16) & kept;
    }
    for (; column < width; ++column)
      target[column] = 0;
  }
}

/// Packs by the type of the tensor.
template <bool Pairs> void packTransposed(const Rows &of, Word *target) {
  if constexpr (Pairs)
    packTransposedAs<true, Half>(of, target);
  else
    (of.tensor.isHalf ? packTransposedAs<false, Half> : packTransposedAs<false, float>)(of, target);
}

/// A block of rows whose words along the depth are summed over: in place, or packed into `scratch`.
template <bool Pairs> Words rowsOf(const Rows &of, Word *scratch) {
  const Strided &t = of.tensor;
  if (of.rows == block && t.strides[3] == 1) {
    if constexpr (Pairs) {
      const auto *data = of.row<Half>(0);
      if (of.depth % 2 == 0 && t.strides[2] % 2 == 0 && reinterpret_cast<uintptr_t>(data) % alignof(float) == 0)
        return {reinterpret_cast<const Word *>(data), t.strides[2] / 2, 1};
    } else if (!t.isHalf) {
      return {of.row<float>(0), t.strides[2], 1};
    }
  }
  if constexpr (Pairs)
    packRowsAs<true, Half>(of, block, scratch);
  else
    (t.isHalf ? packRowsAs<false, Half> : packRowsAs<false, float>)(of, block, scratch);
  return {scratch, padded(wordsOf<Pairs>(of.depth)), 1};
}

/// Whether a product can read and write rows of [.., depth] in place.
bool isPacked(const Strided &tensor, int64_t depth) {
  return !tensor.isHalf && tensor.strides[3] == 1 && tensor.strides[2] == depth && depth == padded(depth);
}

/// A block of rows that are summed over, [words of rows, padded(depth)]: in place, or packed into `scratch`.
template <bool Pairs> const Word *stepsOf(const Rows &of, Word *scratch) {
  if constexpr (Pairs) {
    packPairsOfRows(of, scratch);
    return scratch;
  } else {
    if (isPacked(of.tensor, of.depth))
      return of.row<float>(0);
    (of.tensor.isHalf ? packRowsAs<false, Half> : packRowsAs<false, float>)(of, block, scratch);
    return scratch;
  }
}

#ifdef TESSERA_PAIRS
/// bf16 of 32 numbers that follow each other.
Floats narrowSequence(Floats first, Floats second) {
  return reinterpret_cast<Floats>(_mm512_cvtne2ps_pbh(second, first));
}
/// bf16 of two rows, as pairs of both.
Floats narrowRows(Floats one, Floats two) {
  using Halves = Half __attribute__((vector_size(32), may_alias));
  using Bits = uint32_t __attribute__((vector_size(64), may_alias));
  const Bits low = __builtin_convertvector(reinterpret_cast<Halves>(_mm512_cvtneps_pbh(one)), Bits),
             high = __builtin_convertvector(reinterpret_cast<Halves>(_mm512_cvtneps_pbh(two)), Bits);
  return reinterpret_cast<Floats>(low | high << 16);
}
#endif

/// Writes a row of a result.
template <typename T> void unpackAs(const Rows &of, int64_t row, const float *from, float factor) {
  T *to = of.row<T>(row);
  const int64_t stride = of.tensor.strides[3];
  if (stride == 1)
    for (int64_t column = 0; column < of.depth; ++column)
      put(to + column, from[column] * factor);
  else
    for (int64_t column = 0; column < of.depth; ++column)
      put(to + column * stride, from[column] * factor);
}
void unpack(const Rows &of, int64_t row, const float *from, float factor = 1) {
  (of.tensor.isHalf ? unpackAs<Half> : unpackAs<float>)(of, row, from, factor);
}

/// The sum of products of row `row` of two tensors, in an order that does not depend on their types.
template <typename T, typename U> float dotAs(const Rows &one, const Rows &two, int64_t row) {
  constexpr int64_t parts = 16;
  const T *a = one.row<T>(row);
  const U *b = two.row<U>(row);
  const int64_t aStride = one.tensor.strides[3], bStride = two.tensor.strides[3];
  float sums[parts] = {};
  int64_t column = 0;
  if (aStride == 1 && bStride == 1)
    for (; column + parts <= one.depth; column += parts)
      for (int64_t part = 0; part < parts; ++part)
        sums[part] += widen(a[column + part]) * widen(b[column + part]);
  for (; column < one.depth; ++column)
    sums[column % parts] += widen(a[column * aStride]) * widen(b[column * bStride]);
  float total = 0;
  for (float sum : sums)
    total += sum;
  return total;
}
float dot(const Rows &one, const Rows &two, int64_t row) {
  if (one.tensor.isHalf)
    return (two.tensor.isHalf ? dotAs<Half, Half> : dotAs<Half, float>)(one, two, row);
  return (two.tensor.isHalf ? dotAs<float, Half> : dotAs<float, float>)(one, two, row);
}

} // namespace
} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONPACK_H
