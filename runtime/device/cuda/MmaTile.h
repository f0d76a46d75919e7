//===- MmaTile.h - tiles in shared memory, and products of them ----------===//
//
// The instructions of tensor cores that every GPU from sm_80 on has (PTX ISA 8.0, sections 9.7.13 and 9.7.8.22):
// mma.sync.m16n8k16, ldmatrix and cp.async. A warp holds a matrix of sums as blocks of 16 x 8: a thread has, of the
// rows lane / 4 and lane / 4 + 8, the columns 2 * (lane % 4) and the one behind it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_MMATILE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_MMATILE_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tessera::cuda {

/// One block of sums of a warp, 16 x 8: [0] and [1] of the upper row, [2] and [3] of the one 8 below.
using Sums = float[4];

/// c += a @ b, [16, 16] @ [16, 8], and pairs of elements, the first one in the lower half.
template <typename T> struct Mma;
template <> struct Mma<__nv_bfloat16> {
  static __device__ void add(Sums &c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  static __device__ uint32_t pair(float first, float second) {
    uint32_t made;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(second), "f"(first));
    return made;
  }
};
template <> struct Mma<__half> {
  static __device__ void add(Sums &c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  static __device__ uint32_t pair(float first, float second) {
    uint32_t made;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(second), "f"(first));
    return made;
  }
};

/// 2^x, within 2 units of the last place; 0 of -infinity.
__device__ inline float exp2Of(float x) {
  float made;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
}

// --- Copies from global to shared memory that a thread does not wait for -----------

/// 16 bytes, or zeros where nothing is to be read.
__device__ inline void copyAsync(uint32_t to, const void *from, bool isInside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(isInside ? 16 : 0)
               : "memory");
}
__device__ inline void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// All of this thread's copies, then all threads: the block's copies are in place.
__device__ inline void awaitCopies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// --- Tiles -------------------------------------------------------------------------

/// Rows of `Columns` 16-bit elements, 64 or 128, in shared memory at a multiple of a row's bytes. Chunks of 16 bytes
/// are permuted by their row, so that the eight rows that ldmatrix reads at once lie in different banks.
template <int Columns> struct Tile {
  static constexpr int chunks = Columns / 8, rowBytes = 2 * Columns;
  static_assert(chunks % 8 == 0, "a chunk is permuted among eight");
  uint32_t base;

  __device__ uint32_t at(int row, int chunk) const { return base + row * rowBytes + ((chunk ^ (row & 7)) << 4); }
  /// at(row + rows, chunk + chunks) where `origin` is at(row, chunk), chunk is 0 or 1, `rows` a multiple of 8 and
  /// `chunks` of 2.
  static __device__ uint32_t from(uint32_t origin, int rows, int chunks) {
    return (origin ^ (chunks << 4)) + rows * rowBytes;
  }

  /// Starts to copy `Rows` rows, of which `rows` exist and have `columns` columns; the rest becomes 0.
  template <int Rows, int Threads, typename T>
  __device__ void load(const T *data, int64_t stride, int rows, int columns) const {
    constexpr int step = Threads / chunks;
    static_assert(Threads % chunks == 0 && Rows % step == 0, "every thread copies as many chunks");
    const int row = static_cast<int>(threadIdx.x) / chunks, chunk = static_cast<int>(threadIdx.x) % chunks;
    const T *from = data + row * stride + chunk * 8;
#pragma unroll
    for (int done = 0; done < Rows; done += step)
      copyAsync(at(row + done, chunk), from + done * stride, row + done < rows && chunk * 8 < columns);
  }
};

__device__ inline void loadMatrices(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
__device__ inline void loadTransposed(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}

/// The same, but the compiler does not know: what is made of it is made where it is used, not kept in registers
/// throughout a loop.
__device__ inline uint32_t hidden(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

template <int M, int N> __device__ void clear(Sums (&sums)[M][N]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[m][n][i] = 0;
}

/// sums = rows [firstRow, + 16 M) of a @ transposed rows [0, 8 N) of b.
template <typename T, int M, int N, int Columns>
__device__ void multiply(Sums (&sums)[M][N], Tile<Columns> a, int firstRow, Tile<Columns> b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t ofA = hidden(a.at(firstRow + lane % 16, lane / 16));
  const uint32_t ofB = hidden(b.at(lane % 8 + lane / 16 * 8, lane / 8 % 2));
  clear(sums);
#pragma unroll
  for (int k = 0; k < Columns / 16; ++k) {
    uint32_t left[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
      loadMatrices(left[m], a.from(ofA, 16 * m, 2 * k));
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t right[4];
      loadMatrices(right, b.from(ofB, 8 * n, 2 * k));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        Mma<T>::add(sums[m][n], left[m], right[0], right[1]);
        Mma<T>::add(sums[m][n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

/// A matrix of sums, [16, 16 K], rounded to T: the blocks of a left factor, since both lie alike in a warp's registers.
template <int K> using Factor = uint32_t[K][4];

template <typename T, int K> __device__ void round(Factor<K> &made, const Sums (&sums)[2 * K]) {
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      made[k][i] = Mma<T>::pair(sums[2 * k + i / 2][2 * (i % 2)], sums[2 * k + i / 2][2 * (i % 2) + 1]);
}

/// sums += a @ rows [0, 16 K) of b.
template <typename T, int M, int K, int Columns>
__device__ void accumulate(Sums (&sums)[M][Columns / 8], const Factor<K> (&a)[M], Tile<Columns> b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t ofB = hidden(b.at(lane % 16, lane / 16));
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int n = 0; n < Columns / 8; n += 2) {
      uint32_t right[4];
      loadTransposed(right, b.from(ofB, 16 * k, n));
#pragma unroll
      for (int m = 0; m < M; ++m) {
        Mma<T>::add(sums[m][n], a[m][k], right[0], right[1]);
        Mma<T>::add(sums[m][n + 1], a[m][k], right[2], right[3]);
      }
    }
}

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_MMATILE_H
