//===- TensorAttentionRows.h - what a block of attention has and sees ----===//
//
// Which rows a block of threads has, which keys these see, their softmax and how they come from and go to memory: what
// the kernels of TensorAttention.h have in common.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONROWS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONROWS_H

#include "runtime/device/cuda/MmaTile.h"
#include "runtime/device/cuda/TensorAttentionLayout.h"

#include <climits>

namespace tessera::cuda {

template <typename T, int Depth> class TensorAttentionRows {
protected:
  __device__ TensorAttentionRows(const AttentionLayout &p, char *shared)
      : p(p), shared(shared), sharedBase(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        lane(static_cast<int>(threadIdx.x) % 32), warp(static_cast<int>(threadIdx.x) / 32),
        queries(static_cast<int>(p.queries)), keys(static_cast<int>(p.keys)), depth(static_cast<int>(p.depth)),
        valueDepth(static_cast<int>(p.valueDepth)), scale2(p.scale * log2e) {}

  static constexpr float log2e = 1.44269504F, ln2 = 0.693147181F;
  static constexpr unsigned everyLane = 0xffffffffU;
  static __device__ float infinity() { return __int_as_float(0x7f800000); }

  /// Rows [first, +count) of one head.
  struct Rows {
    int batch, head, first, count;
  };
  /// The keys [first, end); none where end <= first.
  struct Range {
    int first, end;
    __device__ bool holds(int key, int count) const { return first <= key && key + count <= end; }
  };
  /// What some of the rows see lies in `some`; all rows see all of `every`.
  struct Seen {
    Range some, every;
  };
  /// A tile of queries of one head of the group.
  struct Step {
    int head, query;
    bool isWhole; ///< each of them sees all keys of the block
  };

  /// lse, and the log of the sum of exp(score - lse) (AttentionBody::logTotal), in units of log 2 and in two numbers,
  /// since the first would lose the second where it is large. A row without keys has probabilities of 0.
  struct RowStatistics {
    float high = 0, low = 0;
    RowStatistics() = default;
    __device__ RowStatistics(float lse, float rest)
        : high(lse == -infinity() ? infinity() : lse * log2e),
          low(lse == -infinity() ? 0 : fmaf(lse, log2e, -high) + rest * log2e) {}
    __device__ RowStatistics(float high, float low, int) : high(high), low(low) {}
    __device__ float probability(float product, float scale2) const {
      return exp2Of(fmaf(product, scale2, -high) - low);
    }
  };
  struct QueryStatistics {
    RowStatistics row;
    float delta = 0;
  };
  /// |lse| beyond which it is off by more than 2^-17.
  static __device__ bool isRounded(float lse) { return fabsf(lse) > 128 && lse != -infinity(); }

  __device__ Tile<Depth> tileAt(int row) const { return {sharedBase + row * Tile<Depth>::rowBytes}; }
  __device__ int groupOf(int head) const { return head / static_cast<int>(p.heads / p.groups); }
  template <typename Element> __device__ Element *behindTiles(int rows) const {
    return reinterpret_cast<Element *>(shared + rows * Tile<Depth>::rowBytes);
  }
  __device__ int rowOf(int firstRow, int m, int half) const { return firstRow + 16 * m + 8 * half + lane / 4; }

  /// The rows of this block, of `Count` at most. Of a causal mask the last queries see most: they begin first.
  template <int Count> __device__ Rows queriesOf() const {
    const int block = static_cast<int>(hidden(blockIdx.x)), tiles = (queries + Count - 1) / Count,
              index = block % tiles, first = (p.causal ? tiles - 1 - index : index) * Count, head = block / tiles,
              heads = static_cast<int>(p.heads);
    return {head / heads, head % heads, first, min(Count, queries - first)};
  }

  template <int Count>
  __device__ void load(Tile<Depth> to, const StridedTensor &from, int batch, int head, int first, int size,
                       int columns) const {
    const T *data =
        static_cast<const T *>(from.data) + batch * from.strides[0] + head * from.strides[1] + first * from.strides[2];
    to.template load<Count, tensorThreads>(data, from.strides[2], size - first, columns);
  }
  __device__ float *statistic(int batch, int head, int query) const {
    const int64_t *strides = p.lse.strides;
    return static_cast<float *>(p.lse.data) + batch * strides[0] + head * strides[1] + query * strides[2];
  }
  /// 0: the row sum of dout * out; 1: the log that RowStatistics speaks of.
  __device__ float *deltaOf(int batch, int head, int query, int which) const {
    return p.delta + ((which * p.batch + batch) * p.heads + head) * p.queries + query;
  }

  // --- What is seen

  __device__ Range seenBy(int batch, int query) const {
    Range seen{0, keys};
    if (p.causal) {
      const int end = query + keys - queries + 1;
      seen = {p.window > 0 ? max(0, end - static_cast<int>(p.window)) : 0, min(keys, end)};
    }
    if (p.begin) {
      const int64_t begin = p.begin[batch * p.beginStride + query], end = p.end[batch * p.endStride + query];
      seen = {max(seen.first, static_cast<int>(min(max(begin, int64_t{0}), p.keys))),
              min(seen.end, static_cast<int>(min(max(end, int64_t{0}), p.keys)))};
    }
    return seen;
  }
  /// Also puts what each row sees to `ranges`, for all warps after the next barrier.
  template <int Count> __device__ Seen seenByRows(const Rows &at, Range *ranges) const {
    Seen made{{INT_MAX, 0}, {0, INT_MAX}};
    for (int row = lane; row < Count; row += 32) {
      const Range seen = row < at.count ? seenBy(at.batch, at.first + row) : Range{0, keys};
      if (warp == 0)
        ranges[row] = seen;
      if (row >= at.count)
        continue;
      made.every = {max(made.every.first, seen.first), min(made.every.end, seen.end)};
      if (seen.first < seen.end)
        made.some = {min(made.some.first, seen.first), max(made.some.end, seen.end)};
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      auto other = [&](int value) { return __shfl_xor_sync(everyLane, value, distance); };
      made.some = {min(made.some.first, other(made.some.first)), max(made.some.end, other(made.some.end))};
      made.every = {max(made.every.first, other(made.every.first)), min(made.every.end, other(made.every.end))};
    }
    return made;
  }
  /// The first and the end of the queries that a causal mask lets see keys from `key` on, and before `endKey`.
  __device__ int firstQueryOf(int key) const { return p.causal ? max(0, key - keys + queries) : 0; }
  __device__ int endOfQueries(int endKey) const {
    const bool isWindow = p.causal && p.window > 0;
    return isWindow ? min(queries, endKey - 1 - keys + queries + static_cast<int>(p.window)) : queries;
  }
  /// The first tile of queries, from `step` on, of which one sees some of the keys [first, +count).
  __device__ bool find(Step &step, int batch, int first, int count, int perGroup, int begin, int end) const {
    for (; step.head < perGroup; ++step.head, step.query = begin)
      for (; step.query < end; step.query += tensorGradTile) {
        bool isSeen = false, isWhole = true;
        for (int query = step.query + lane; query < min(queries, step.query + tensorGradTile); query += 32) {
          const Range seen = seenBy(batch, query);
          isSeen |= max(seen.first, first) < min(seen.end, first + count);
          isWhole &= seen.holds(first, count);
        }
        step.isWhole = __all_sync(everyLane, isWhole);
        if (__any_sync(everyLane, isSeen))
          return true;
      }
    return false;
  }

  template <int M, int N>
  __device__ void maskRows(Sums (&scores)[M][N], const Range *ranges, int firstRow, int firstKey) const {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = rowOf(firstRow, m, half);
        const Range seen = ranges[row];
        const int first = seen.first - firstKey - 2 * (lane % 4), end = seen.end - firstKey - 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (8 * n + i < first || 8 * n + i >= end)
              scores[m][n][2 * half + i] = -infinity();
          }
      }
  }
  template <int N> __device__ void maskColumns(Sums (&scores)[N], int batch, int firstQuery, int firstKey) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int query = firstQuery + 8 * n + 2 * (lane % 4) + i;
        const Range seen = query < queries ? seenBy(batch, query) : Range{0, 0};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int key = firstKey + 8 * half + lane / 4;
          if (key < seen.first || key >= seen.end)
            scores[n][2 * half + i] = -infinity();
        }
      }
  }

  // --- Rows

  /// Of the four threads that share a row, in one order.
  static __device__ float sumOfQuad(float value) {
    value += __shfl_xor_sync(everyLane, value, 1);
    return value + __shfl_xor_sync(everyLane, value, 2);
  }
  static __device__ float largestOfQuad(float value) {
    value = fmaxf(value, __shfl_xor_sync(everyLane, value, 1));
    return fmaxf(value, __shfl_xor_sync(everyLane, value, 2));
  }

  /// Takes scores into the maximum and total of their rows, and makes them probabilities relative to that maximum.
  template <int N>
  __device__ void advance(Sums (&scores)[N], Sums (&sums)[Depth / 8], float (&largest)[2], float (&total)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = -infinity();
#pragma unroll
      for (int n = 0; n < N; ++n)
        now = fmaxf(now, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      now = fmaxf(largest[half], largestOfQuad(now) * scale2);
      const float base = now == -infinity() ? 0 : now, factor = exp2Of(largest[half] - base);
      largest[half] = now;
      total[half] *= factor;
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2Of(fmaf(scores[n][i], scale2, -base));
          total[half] += scores[n][i];
        }
#pragma unroll
      for (int n = 0; n < Depth / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          sums[n][i] *= factor;
    }
  }

  /// Row sums of dout * out, eight threads a row, to `deltas` and to memory.
  __device__ void rowSums(const Rows &at, float *deltas) const {
    constexpr int perThread = 8;
    for (int step = 0; step < 16; step += 4) {
      const int row = warp * 16 + step + lane / 8;
      float sum = 0;
      if (row < at.count) {
        auto rowAt = [&](const StridedTensor &tensor) {
          const int64_t *strides = tensor.strides;
          return at.batch * strides[0] + at.head * strides[1] + (at.first + row) * strides[2];
        };
        const int64_t out = rowAt(p.out), dout = rowAt(p.dout);
        for (int column = lane % 8 * perThread; column < valueDepth; column += 8 * perThread) {
          alignas(16) T right[perThread];
          alignas(16) float left[perThread];
          copy16(right, static_cast<const T *>(p.dout.data) + dout + column);
          if (p.out.isWide) {
            copy16(left, static_cast<const float *>(p.out.data) + out + column);
            copy16(left + 4, static_cast<const float *>(p.out.data) + out + column + 4);
          } else {
            alignas(16) T narrow[perThread];
            copy16(narrow, static_cast<const T *>(p.out.data) + out + column);
            for (int i = 0; i < perThread; ++i)
              left[i] = static_cast<float>(narrow[i]);
          }
          for (int i = 0; i < perThread; ++i)
            sum = fmaf(left[i], static_cast<float>(right[i]), sum);
        }
      }
      for (int distance = 1; distance < 8; distance *= 2)
        sum += __shfl_xor_sync(everyLane, sum, distance);
      if (lane % 8 != 0)
        continue;
      deltas[row] = sum;
      if (row < at.count)
        *deltaOf(at.batch, at.head, at.first + row, 0) = sum;
    }
  }
  static __device__ void copy16(void *to, const void *from) {
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
  }

  /// Of the query that this thread looks after; the others have none.
  __device__ QueryStatistics statisticsOf(int batch, int head, int first) const {
    const int query = first + static_cast<int>(threadIdx.x);
    QueryStatistics made{RowStatistics(-infinity(), 0), 0};
    if (threadIdx.x < tensorGradTile && query < queries)
      made = {RowStatistics(*statistic(batch, head, query), *deltaOf(batch, head, query, 1)),
              *deltaOf(batch, head, query, 0)};
    return made;
  }
  __device__ void storeStatistics(float *to, const QueryStatistics &statistics) const {
    if (threadIdx.x >= tensorGradTile)
      return;
    to[threadIdx.x] = statistics.row.high;
    to[tensorGradTile + threadIdx.x] = statistics.row.low;
    to[2 * tensorGradTile + threadIdx.x] = statistics.delta;
  }

  /// One row of each thread's sums, times `factor`.
  __device__ void storeRow(const StridedTensor &to, int batch, int head, int row, bool isInside, int columns,
                           const Sums (&sums)[Depth / 8], int half, float factor) const {
    if (!isInside)
      return;
    const int64_t at = batch * to.strides[0] + head * to.strides[1] + row * to.strides[2] + 2 * (lane % 4);
#pragma unroll
    for (int n = 0; n < Depth / 8; ++n) {
      if (8 * n >= columns)
        break;
      const float first = sums[n][2 * half] * factor, second = sums[n][2 * half + 1] * factor;
      if (to.isWide)
        *reinterpret_cast<float2 *>(static_cast<float *>(to.data) + at + 8 * n) = {first, second};
      else
        *reinterpret_cast<uint32_t *>(static_cast<T *>(to.data) + at + 8 * n) = Mma<T>::pair(first, second);
    }
  }

  const AttentionLayout &p;
  char *const shared;
  const uint32_t sharedBase;
  const int lane, warp, queries, keys, depth, valueDepth;
  const float scale2; ///< of products, to scores in units of log 2
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONROWS_H
