//===- AttentionTile.h - vectors, tiles and packing of one instruction set --===//
//
// What the blocked attention is made of: vectors of TESSERA_VECTOR_BYTES, products of tiles in registers, and the way
// between a strided tensor of f32 or bf16 and a packed block of f32. Functions are local to the file that includes
// this: each instruction set has its own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H

#include "runtime/device/cpu/AttentionKernel.h"

namespace tessera::cpu {

constexpr int64_t lanes = TESSERA_VECTOR_BYTES / sizeof(float);
using Floats = float __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));
using Ints = int32_t __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));

constexpr int64_t block = attentionBlock;
constexpr int64_t rowTile = 4;                         // rows of a register tile
constexpr int64_t columnVectors = lanes == 16 ? 4 : 2; // vectors of a register tile's row
constexpr float infinity = __builtin_inff();

static int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static Floats load(const float *p) { return *reinterpret_cast<const Floats *>(p); }
static void store(float *p, Floats value) { *reinterpret_cast<Floats *>(p) = value; }
static Floats splat(float value) { return Floats{} + value; }

/// exp(x) for x <= about 88 within 2 ulp; 0 below -87.3 (Cephes' polynomial).
static Floats exponential(Floats x) {
  const float lowest = -87.33f, magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  Floats clipped = x < lowest ? splat(lowest) : x;
  Floats shifted = clipped * 1.44269504088896341f + magic;
  Floats whole = shifted - magic;
  Floats r = clipped - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  Floats y = p * (r * r) + r + 1.0f;
  Ints exponent = (reinterpret_cast<Ints>(shifted) << 23) + (127 << 23);
  Floats result = y * reinterpret_cast<Floats>(exponent);
  return x < lowest ? splat(0) : result;
}

static float sum(Floats value) {
  float total = 0;
  for (int64_t lane = 0; lane < lanes; ++lane)
    total += value[lane];
  return total;
}

/// c[4, V*lanes] (+)= a[4, k] b[k, V*lanes]; a has any strides.
template <int V, bool Accumulate>
static void multiplyTile(int64_t k, const float *a, int64_t rowStride, int64_t kStride, const float *b, int64_t ldb,
                         float *c, int64_t ldc) {
  Floats sums[rowTile][V];
  for (int64_t row = 0; row < rowTile; ++row)
    for (int v = 0; v < V; ++v)
      sums[row][v] = Accumulate ? load(c + row * ldc + v * lanes) : Floats{};
  for (int64_t index = 0; index < k; ++index) {
    Floats right[V];
    for (int v = 0; v < V; ++v)
      right[v] = load(b + index * ldb + v * lanes);
#pragma GCC unroll 4
    for (int64_t row = 0; row < rowTile; ++row) {
      Floats left = splat(a[row * rowStride + index * kStride]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        sums[row][v] += left * right[v];
    }
  }
  for (int64_t row = 0; row < rowTile; ++row)
    for (int v = 0; v < V; ++v)
      store(c + row * ldc + v * lanes, sums[row][v]);
}

/// c[m, n] (+)= a[m, k] b[k, n]; m a multiple of 4, n of 16.
template <bool Accumulate>
static void multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t rowStride, int64_t kStride,
                     const float *b, int64_t ldb, float *c, int64_t ldc) {
  for (int64_t column = 0; column < n;) {
    int64_t vectors = least(columnVectors, (n - column) / lanes);
    for (int64_t row = 0; row < m; row += rowTile) {
      const float *left = a + row * rowStride;
      float *target = c + row * ldc + column;
      switch (vectors) {
      case 1:
        multiplyTile<1, Accumulate>(k, left, rowStride, kStride, b + column, ldb, target, ldc);
        break;
      case 2:
        multiplyTile<2, Accumulate>(k, left, rowStride, kStride, b + column, ldb, target, ldc);
        break;
      case 3:
        multiplyTile<3, Accumulate>(k, left, rowStride, kStride, b + column, ldb, target, ldc);
        break;
      default:
        multiplyTile<columnVectors, Accumulate>(k, left, rowStride, kStride, b + column, ldb, target, ldc);
      }
    }
    column += vectors * lanes;
  }
}

using Half = uint16_t; ///< the bits of a bf16

static float widen(float value) { return value; }
static float widen(Half half) { return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16); }
static void put(float *to, float value) { *to = value; }
static void put(Half *to, float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  *to = static_cast<Half>(value == value ? rounded : bits >> 16 | 0x40);
}

template <typename T> static T *rowOf(const Strided &tensor, int64_t batch, int64_t head, int64_t row) {
  return static_cast<T *>(tensor.data) + batch * tensor.strides[0] + head * tensor.strides[1] + row * tensor.strides[2];
}

/// Copies `rows` rows of `depth` to [capacity, padded(depth)], zeros elsewhere.
template <typename T>
static void packAs(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t capacity,
                   int64_t depth, float *target) {
  int64_t width = padded(depth), stride = tensor.strides[3];
  for (int64_t row = 0; row < capacity; ++row) {
    float *to = target + row * width;
    int64_t column = 0;
    if (row < rows) {
      const T *from = rowOf<T>(tensor, batch, head, first + row);
      if (stride == 1)
        for (; column < depth; ++column)
          to[column] = widen(from[column]);
      else
        for (; column < depth; ++column)
          to[column] = widen(from[column * stride]);
    }
    for (; column < width; ++column)
      to[column] = 0;
  }
}
static void pack(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t capacity,
                 int64_t depth, float *target) {
  (tensor.isHalf ? packAs<Half> : packAs<float>)(tensor, batch, head, first, rows, capacity, depth, target);
}

/// The same, transposed to [depth, block].
template <typename T>
static void packTransposedAs(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows,
                             int64_t depth, float *target) {
  const T *from = rowOf<T>(tensor, batch, head, first);
  int64_t rowStride = tensor.strides[2], stride = tensor.strides[3];
  for (int64_t column = 0; column < depth; ++column) {
    float *to = target + column * block;
    const T *source = from + column * stride;
    int64_t row = 0;
    for (; row < rows; ++row)
      to[row] = widen(source[row * rowStride]);
    for (; row < block; ++row)
      to[row] = 0;
  }
}
static void packTransposed(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows,
                           int64_t depth, float *target) {
  (tensor.isHalf ? packTransposedAs<Half> : packTransposedAs<float>)(tensor, batch, head, first, rows, depth, target);
}

/// Writes row `row` of a result.
template <typename T>
static void unpackAs(const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth, const float *from,
                     float factor) {
  T *to = rowOf<T>(tensor, batch, head, row);
  for (int64_t column = 0; column < depth; ++column)
    put(to + column * tensor.strides[3], from[column] * factor);
}
static void unpack(const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth, const float *from,
                   float factor = 1) {
  (tensor.isHalf ? unpackAs<Half> : unpackAs<float>)(tensor, batch, head, row, depth, from, factor);
}

template <typename T>
static float dotAs(const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth, const float *with) {
  const T *from = rowOf<T>(tensor, batch, head, row);
  float sum = 0;
  for (int64_t column = 0; column < depth; ++column)
    sum += with[column] * widen(from[column * tensor.strides[3]]);
  return sum;
}

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H
