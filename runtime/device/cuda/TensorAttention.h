//===- TensorAttention.h - attention by tensor cores ----------------------===//
//
// Dao, FlashAttention-2 (arXiv 2307.08691): an online softmax over tiles of keys, products of bf16 or f16 with f32
// sums, no scores in memory. Gradients are two kernels, one that adds up over keys (dq) and one over queries (dk and
// dv), so that each sum has one writer and a fixed order; both compute the probabilities again, seven products of the
// size of QK^T instead of the five that adding dq up from all blocks would take.
//
// A block of four warps has some rows, each warp a part of them, and goes through tiles of the other side. Tiles that
// none of its rows sees are not read, and tiles that all rows see whole are not masked.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTION_H
#define TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTION_H

#include "runtime/device/cuda/TensorAttentionRows.h"

namespace tessera::cuda {

/// Heads of up to `Depth` elements of type T, and what tensorRefusal says nothing against.
template <typename T, int Depth> class TensorAttention : TensorAttentionRows<T, Depth> {
  using Base = TensorAttentionRows<T, Depth>;
  using Base::advance;
  using Base::deltaOf;
  using Base::depth;
  using Base::endOfQueries;
  using Base::everyLane;
  using Base::find;
  using Base::firstQueryOf;
  using Base::groupOf;
  using Base::infinity;
  using Base::isRounded;
  using Base::keys;
  using Base::lane;
  using Base::ln2;
  using Base::maskColumns;
  using Base::maskRows;
  using Base::p;
  using Base::queries;
  using Base::rowOf;
  using Base::rowSums;
  using Base::scale2;
  using Base::statistic;
  using Base::statisticsOf;
  using Base::storeRow;
  using Base::storeStatistics;
  using Base::sumOfQuad;
  using Base::tileAt;
  using Base::valueDepth;
  using Base::warp;
  using typename Base::QueryStatistics;
  using typename Base::Range;
  using typename Base::Rows;
  using typename Base::RowStatistics;
  using typename Base::Seen;
  using typename Base::Step;

public:
  __device__ TensorAttention(const AttentionLayout &p, char *shared) : Base(p, shared) {}

  /// out and lse of 128 queries of one head.
  __device__ void forward() {
    constexpr int M = tensorQueries / 64, tile = forwardKeys, N = tile / 8;
    const Rows at = this->template queriesOf<tensorQueries>();
    const int group = groupOf(at.head);
    const Tile<Depth> q = tileAt(0), k = tileAt(tensorQueries), v = tileAt(tensorQueries + tile);
    Range *const ranges = this->template behindTiles<Range>(tensorQueries + 2 * tile);
    const int firstRow = warp * 16 * M;
    auto loadKeys = [&](Tile<Depth> to, const StridedTensor &from, int first, int columns) {
      this->template load<tile>(to, from, at.batch, group, first, keys, columns);
    };
    Sums sums[M][Depth / 8];
    float largest[M][2], total[M][2]; // the largest score in units of log 2, and the sum of exponentials relative to it
    clear(sums);
#pragma unroll
    for (int m = 0; m < M; ++m)
      for (int half = 0; half < 2; ++half)
        largest[m][half] = -infinity(), total[m][half] = 0;

    const Seen seen = this->template seenByRows<tensorQueries>(at, ranges);
    int key = seen.some.first / tile * tile;
    if (key < seen.some.end) {
      this->template load<tensorQueries>(q, p.q, at.batch, at.head, at.first, queries, depth);
      loadKeys(k, p.k, key, depth);
      commitCopies();
    }
    for (; key < seen.some.end; key += tile) {
      awaitCopies(); // k is there; v is free
      loadKeys(v, p.v, key, valueDepth);
      commitCopies();
      Sums scores[M][N];
      multiply<T>(scores, q, firstRow, k);
      if (!seen.every.holds(key, tile))
        maskRows(scores, ranges, firstRow, key);
      awaitCopies(); // v is there; k is free
      if (key + tile < seen.some.end) {
        loadKeys(k, p.k, key + tile, depth);
        commitCopies();
      }
      Factor<N / 2> probabilities[M];
#pragma unroll
      for (int m = 0; m < M; ++m) {
        advance(scores[m], sums[m], largest[m], total[m]);
        round<T, N / 2>(probabilities[m], scores[m]);
      }
      accumulate<T>(sums, probabilities, v);
    }

    const Rows to = this->template queriesOf<tensorQueries>(); // again, instead of kept in registers
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float all = sumOfQuad(total[m][half]);
        const int row = rowOf(firstRow, m, half);
        const float factor = all > 0 ? 1 / all : 0;
        storeRow(p.out, to.batch, to.head, to.first + row, row < to.count, valueDepth, sums[m], half, factor);
        if (row < to.count && lane % 4 == 0)
          *statistic(to.batch, to.head, to.first + row) = all > 0 ? largest[m][half] * ln2 + logf(all) : -infinity();
      }
  }

  /// dq of 64 queries of one head, and their rows of delta, which keyGrad reads.
  __device__ void queryGrad() {
    constexpr int tile = tensorGradTile, N = tile / 8;
    const Rows at = this->template queriesOf<tile>();
    const int group = groupOf(at.head);
    const Tile<Depth> q = tileAt(0), dout = tileAt(tile), v = tileAt(4 * tile);
    Range *const ranges = this->template behindTiles<Range>(5 * tile);
    float *const deltas = reinterpret_cast<float *>(ranges + tile);
    const int firstRow = warp * 16;
    auto loadKeys = [&](Tile<Depth> to, const StridedTensor &from, int first, int columns) {
      this->template load<tile>(to, from, at.batch, group, first, keys, columns);
    };
    this->template load<tile>(q, p.q, at.batch, at.head, at.first, queries, depth);
    this->template load<tile>(dout, p.dout, at.batch, at.head, at.first, queries, valueDepth);
    commitCopies();
    rowSums(at, deltas);

    RowStatistics rows[2];
    bool isLarge = false; // lse of some row of the block has lost its last digits
    for (int half = 0; half < 2; ++half) {
      const int row = rowOf(firstRow, 0, half);
      rows[half] = RowStatistics(row < at.count ? *statistic(at.batch, at.head, at.first + row) : -infinity(), 0);
    }
    for (int row = lane; row < at.count; row += 32)
      isLarge |= isRounded(*statistic(at.batch, at.head, at.first + row));
    const Seen seen = this->template seenByRows<tile>(at, ranges);
    const int firstKey = seen.some.first / tile * tile;
    float rest[2] = {0, 0};
    if (!p.isPartial && __any_sync(everyLane, isLarge))
      logTotals(at, group, seen, ranges, rows, rest);
    for (int half = 0; half < 2; ++half) {
      const int row = rowOf(firstRow, 0, half);
      if (row < at.count && lane % 4 == 0)
        *deltaOf(at.batch, at.head, at.first + row, 1) = rest[half];
    }

    Sums sums[1][Depth / 8];
    clear(sums);
    int stage = 0;
    if (firstKey < seen.some.end) {
      loadKeys(tileAt(2 * tile), p.k, firstKey, depth);
      loadKeys(v, p.v, firstKey, valueDepth);
      commitCopies();
    }
    for (int key = firstKey; key < seen.some.end; key += tile, stage ^= 1) {
      awaitCopies(); // k and v are there; the other place of k is free
      const bool isLast = key + tile >= seen.some.end;
      const Tile<Depth> k = tileAt((2 + stage) * tile);
      if (!isLast) {
        loadKeys(tileAt((3 - stage) * tile), p.k, key + tile, depth);
        commitCopies();
      }
      Sums scores[1][N], dscores[1][N];
      multiply<T>(scores, q, firstRow, k);
      if (!seen.every.holds(key, tile))
        maskRows(scores, ranges, firstRow, key);
      multiply<T>(dscores, dout, firstRow, v);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          dscores[0][n][i] =
              rows[i / 2].probability(scores[0][n][i], scale2) * (dscores[0][n][i] - deltas[rowOf(firstRow, 0, i / 2)]);
      Factor<N / 2> gradients[1];
      round<T, N / 2>(gradients[0], dscores[0]);
      __syncthreads(); // v is free
      if (!isLast) {
        loadKeys(v, p.v, key + tile, valueDepth);
        commitCopies();
      }
      accumulate<T>(sums, gradients, k);
    }
    awaitCopies(); // of a block that sees nothing
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = rowOf(firstRow, 0, half);
      storeRow(p.dq, at.batch, at.head, at.first + row, row < at.count, depth, sums[0], half, p.scale);
    }
  }

  /// dk and dv of 64 keys of one head of keys: sums over the heads of the group, in their order. Scores are transposed:
  /// rows are keys.
  __device__ void keyGrad() {
    constexpr int tile = tensorGradTile, N = tile / 8;
    const int tiles = (keys + tile - 1) / tile, first = static_cast<int>(blockIdx.x) % tiles * tile;
    const int groups = static_cast<int>(p.groups), group = static_cast<int>(blockIdx.x) / tiles % groups,
              batch = static_cast<int>(blockIdx.x) / tiles / groups;
    const int count = min(tile, keys - first);
    const Tile<Depth> k = tileAt(0), v = tileAt(tile), dout = tileAt(4 * tile);
    float *const statistics = this->template behindTiles<float>(5 * tile);
    const int firstRow = warp * 16;
    Sums dk[1][Depth / 8], dv[1][Depth / 8];
    clear(dk);
    clear(dv);

    const int perGroup = static_cast<int>(p.heads / p.groups);
    Step now{0, firstQueryOf(first) / tile * tile, false};
    const int beginQueries = now.query, endQueries = endOfQueries(first + count);
    bool isAny = find(now, batch, first, count, perGroup, beginQueries, endQueries);
    if (isAny) {
      this->template load<tile>(k, p.k, batch, group, first, keys, depth);
      this->template load<tile>(v, p.v, batch, group, first, keys, valueDepth);
      const int head = group * perGroup + now.head;
      this->template load<tile>(tileAt(2 * tile), p.q, batch, head, now.query, queries, depth);
      this->template load<tile>(dout, p.dout, batch, head, now.query, queries, valueDepth);
      commitCopies();
      storeStatistics(statistics, statisticsOf(batch, head, now.query));
    }
    for (int stage = 0; isAny; stage ^= 1) {
      awaitCopies(); // q, dout and the statistics are there; the other place of q is free
      Step next{now.head, now.query + tile, false};
      const bool isMore = find(next, batch, first, count, perGroup, beginQueries, endQueries);
      const int nextHead = group * perGroup + next.head;
      const Tile<Depth> q = tileAt((2 + stage) * tile);
      if (isMore) {
        this->template load<tile>(tileAt((3 - stage) * tile), p.q, batch, nextHead, next.query, queries, depth);
        commitCopies();
      }
      Sums scores[1][N], dscores[1][N];
      multiply<T>(scores, k, firstRow, q);
      if (!now.isWhole)
        maskColumns(scores[0], batch, now.query, first + firstRow);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 8 * n + 2 * (lane % 4) + i % 2;
          const RowStatistics row(statistics[column], statistics[tile + column], 0);
          scores[0][n][i] = row.probability(scores[0][n][i], scale2);
        }
      Factor<N / 2> factor[1];
      multiply<T>(dscores, v, firstRow, dout);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          dscores[0][n][i] =
              scores[0][n][i] * (dscores[0][n][i] - statistics[2 * tile + 8 * n + 2 * (lane % 4) + i % 2]);
      round<T, N / 2>(factor[0], scores[0]);
      accumulate<T>(dv, factor, dout);
      round<T, N / 2>(factor[0], dscores[0]);
      __syncthreads(); // dout and the statistics are free
      QueryStatistics following;
      if (isMore) {
        this->template load<tile>(dout, p.dout, batch, nextHead, next.query, queries, valueDepth);
        commitCopies();
        following = statisticsOf(batch, nextHead, next.query);
      }
      accumulate<T>(dk, factor, q);
      if (isMore)
        storeStatistics(statistics, following);
      now = next;
      isAny = isMore;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = rowOf(firstRow, 0, half);
      storeRow(p.dk, batch, group, first + row, row < count, depth, dk[0], half, p.scale);
      storeRow(p.dv, batch, group, first + row, row < count, valueDepth, dv[0], half, 1);
    }
  }

private:
  static constexpr int forwardKeys = tensorKeys(Depth);

  /// The log of the sum of exp(score - lse) of rows whose lse is rounded; 0 of others. By the products that the
  /// gradients compute again, so that these sum up to 1.
  __device__ void logTotals(const Rows &at, int group, const Seen &seen, const Range *ranges, RowStatistics (&rows)[2],
                            float (&rest)[2]) const {
    constexpr int tile = tensorGradTile, N = tile / 8;
    const Tile<Depth> k = tileAt(2 * tile);
    float total[2] = {0, 0};
    for (int key = seen.some.first / tile * tile; key < seen.some.end; key += tile) {
      this->template load<tile>(k, p.k, at.batch, group, key, keys, depth);
      commitCopies();
      awaitCopies();
      Sums scores[1][N];
      multiply<T>(scores, tileAt(0), warp * 16, k);
      maskRows(scores, ranges, warp * 16, key);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          total[i / 2] += rows[i / 2].probability(scores[0][n][i], scale2);
      __syncthreads(); // k is free
    }
    for (int half = 0; half < 2; ++half) {
      const float all = sumOfQuad(total[half]);
      const int row = rowOf(warp * 16, 0, half);
      const float lse = row < at.count ? *statistic(at.batch, at.head, at.first + row) : -infinity();
      rest[half] = isRounded(lse) ? logf(all) : 0;
      rows[half] = RowStatistics(lse, rest[half]);
    }
  }
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTION_H
