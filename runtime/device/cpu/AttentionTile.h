//===- AttentionTile.h - vectors and products of one instruction set --------===//
//
// What the blocked attention computes with: vectors of TESSERA_VECTOR_BYTES, and products of tiles in registers.
// Operands of products are packed in words of 32 bits: one f32, or two bf16 that follow each other along the dimension
// that is summed over ("pairs", if the processor multiplies them: TESSERA_PAIRS). Functions are local to the file that
// includes this: each instruction set has its own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H

#include "runtime/device/cpu/AttentionKernel.h"

#if TESSERA_VECTOR_BYTES == 64
#include <immintrin.h>
#endif

namespace tessera::cpu {
namespace {

constexpr int64_t lanes = TESSERA_VECTOR_BYTES / sizeof(float);
using Floats = float __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));
using Ints = int32_t __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));
using FloatsAnywhere = float __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias, aligned(4)));
using Word = float __attribute__((may_alias)); ///< 32 bits, whatever is in them

constexpr int64_t block = attentionBlock;
constexpr int64_t rowTile = 4;                         // rows of a register tile
constexpr int64_t columnVectors = lanes == 16 ? 4 : 2; // vectors of a register tile's row
constexpr int64_t stepBlock = 64;                      // words summed over at a time: [64, 64] stays in the L1 cache
constexpr float infinity = __builtin_inff();

#ifdef TESSERA_PAIRS
constexpr bool hasPairs = true;
#else
constexpr bool hasPairs = false;
#endif

int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }
int64_t upTo(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
Floats load(const Word *p) { return *reinterpret_cast<const FloatsAnywhere *>(p); }
void store(Word *p, Floats value) { *reinterpret_cast<FloatsAnywhere *>(p) = value; }
Floats splat(float value) { return value - Floats{}; } // a copy, bit by bit: adding 0 would be none of -0

/// Words that hold `steps` numbers that are summed over.
template <bool Pairs> int64_t wordsOf(int64_t steps) { return Pairs ? (steps + 1) / 2 : steps; }

/// The larger one of each lane; b where one of them is not a number.
Floats larger(Floats a, Floats b) {
#if TESSERA_VECTOR_BYTES == 64
  return _mm512_maskz_max_ps(0xffff, a, b);
#else
  return a > b ? a : b;
#endif
}

/// exp(x) for x <= about 88 within 2 ulp (Cephes' polynomial); 0 of -inf and of what is no f32, at the latest of -104.
Floats exponential(Floats x) {
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
#if TESSERA_VECTOR_BYTES == 64
  const float lowest = -105.0f;
#else
  const float lowest = -87.33f;
#endif
  Floats clipped = larger(splat(lowest), x);
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
#if TESSERA_VECTOR_BYTES == 64
  return _mm512_maskz_scalef_ps(0xffff, y, whole);
#else
  Ints exponent = (reinterpret_cast<Ints>(shifted) << 23) + (127 << 23);
  Floats result = y * reinterpret_cast<Floats>(exponent);
  return x < lowest ? splat(0) : result;
#endif
}

/// sum += left * right; pairs are two products each, added up in f32 (numbers below 2^-126 count as 0).
template <bool Pairs> void addProduct(Floats &sum, Floats left, Floats right) {
  if constexpr (Pairs) {
#ifdef TESSERA_PAIRS
    sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right));
#endif
  } else {
    sum += left * right;
  }
}

/// A matrix of words with any strides.
struct Words {
  const Word *data;
  int64_t rowStride, stepStride;
};

/// c[4, V*lanes] (+)= a[4, k] b[k, V*lanes], k in words.
template <int V, bool Pairs>
void multiplyTile(bool isAdded, int64_t k, Words a, const Word *b, int64_t ldb, float *c, int64_t ldc) {
  Floats sums[rowTile][V] = {};
  if (isAdded) {
#pragma GCC unroll 4
    for (int64_t row = 0; row < rowTile; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        sums[row][v] = load(c + row * ldc + v * lanes);
    }
  }
  for (; k > 0; --k, a.data += a.stepStride, b += ldb) {
    Floats right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      right[v] = load(b + v * lanes);
#pragma GCC unroll 4
    for (int64_t row = 0; row < rowTile; ++row) {
      const Floats left = splat(a.data[row * a.rowStride]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        addProduct<Pairs>(sums[row][v], left, right[v]);
    }
  }
#pragma GCC unroll 4
  for (int64_t row = 0; row < rowTile; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      store(c + row * ldc + v * lanes, sums[row][v]);
  }
}

/// c[m, n] (+)= a[m, k] b[k, n]; m is rounded up to a multiple of 4, n a multiple of 16, k in words.
template <bool Accumulate, bool Pairs>
void multiply(int64_t m, int64_t n, int64_t k, Words a, const Word *b, int64_t ldb, float *c, int64_t ldc) {
  for (int64_t step = 0; step < k; step += stepBlock) {
    const int64_t steps = least(stepBlock, k - step);
    const bool isAdded = Accumulate || step > 0;
    for (int64_t column = 0; column < n;) {
      const int64_t vectors = least(columnVectors, (n - column) / lanes);
      const Word *right = b + step * ldb + column;
      for (int64_t row = 0; row < m; row += rowTile) {
        const Words left{a.data + row * a.rowStride + step * a.stepStride, a.rowStride, a.stepStride};
        float *target = c + row * ldc + column;
        switch (vectors) {
        case 1:
          multiplyTile<1, Pairs>(isAdded, steps, left, right, ldb, target, ldc);
          break;
        case 2:
          multiplyTile<2, Pairs>(isAdded, steps, left, right, ldb, target, ldc);
          break;
        case 3:
          multiplyTile<3, Pairs>(isAdded, steps, left, right, ldb, target, ldc);
          break;
        default:
          multiplyTile<columnVectors, Pairs>(isAdded, steps, left, right, ldb, target, ldc);
        }
      }
      column += vectors * lanes;
    }
  }
}

} // namespace
} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONTILE_H
