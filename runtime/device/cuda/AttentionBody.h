//===- AttentionBody.h - attention for one block of threads --------------===//
//
// Dao et al., FlashAttention-2 (2023), in f32: an online softmax over tiles of keys, every sum in a fixed order. The
// body is a sequence of phases; a Team gives the indices of a phase to its threads and waits for all of them. So the
// same body is a CUDA kernel and, for tests, a loop on the host: nothing but the scratch lives from phase to phase.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONBODY_H
#define TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONBODY_H

#include "runtime/device/cuda/AttentionLayout.h"

#include <cmath>

#if defined(__CUDACC__)
#define TESSERA_DEVICE __device__
#else
#define TESSERA_DEVICE
#endif

namespace tessera::cuda {

/// Elements are T, computed in f32 and rounded once.
template <typename T, typename Team> class AttentionBody {
public:
  TESSERA_DEVICE AttentionBody(const AttentionLayout &p, AttentionScratch &s, const Team &team)
      : p(p), s(s), team(team), infinity(HUGE_VALF) {}

  /// out and lse of a tile of queries.
  TESSERA_DEVICE void forward(int64_t block, int64_t section) {
    Tile at = tileOf(block, p.heads, p.queries);
    int64_t group = at.head / (p.heads / p.groups), firstColumn = section * attentionWidth;
    int columns = least(attentionWidth, p.valueDepth - firstColumn);
    Rows q = rowsOf(p.q, at.batch, at.head, at.first, at.count);
    team.each(tile, [&](int row) {
      s.largest[row] = -infinity;
      s.total[row] = 0;
    });
    team.each(tile * columns, [&](int index) { s.sums[0][index] = 0; });
    const Range seen = seenByAny(at.batch, at.first, at.count);
    for (int64_t firstKey = seen.first / tile * tile; firstKey < seen.end; firstKey += tile) {
      int keys = least(tile, p.keys - firstKey);
      Rows v = rowsOf(p.v, at.batch, group, firstKey, keys);
      multiply(q, rowsOf(p.k, at.batch, group, firstKey, keys), p.depth, s.scores);
      team.each(tile * tile, [&](int index) {
        int row = index / tile, key = index % tile;
        float &score = s.scores[row * pitch + key];
        score =
            row < at.count && key < keys ? masked(at.batch, at.head, at.first + row, firstKey + key, score) : -infinity;
      });
      team.each(tile, [&](int row) { advance(row); });
      team.each(tile * columns, [&](int index) {
        int row = index / columns, column = index % columns;
        float sum = s.sums[0][index] * s.factor[row];
        for (int key = 0; key < keys; ++key)
          sum += s.scores[row * pitch + key] * v.get(key, firstColumn + column);
        s.sums[0][index] = sum;
      });
    }
    Results out = resultsOf(p.out, at.batch, at.head, at.first);
    team.each(at.count * columns, [&](int index) {
      int row = index / columns, column = index % columns;
      out.put(row, firstColumn + column, s.total[row] > 0 ? s.sums[0][index] / s.total[row] : 0);
    });
    if (section == 0)
      team.each(at.count, [&](int row) {
        *statistic(at.batch, at.head, at.first + row) =
            s.total[row] > 0 ? s.largest[row] + logf(s.total[row]) : -infinity;
      });
  }

  /// delta and logTotal of one row; `index` counts rows of all heads.
  TESSERA_DEVICE void rowSum(int64_t index) {
    int64_t query = index % p.queries, head = index / p.queries % p.heads, batch = index / p.queries / p.heads;
    Results out = resultsOf(p.out, batch, head, query);
    Rows dout = rowsOf(p.dout, batch, head, query, 1);
    float sum = 0;
    for (int64_t column = 0; column < p.valueDepth; ++column)
      sum += out.get(0, column) * dout.get(0, column);
    p.delta[index] = sum;
    p.delta[p.batch * p.heads * p.queries + index] = p.isPartial ? 0 : logTotal(batch, head, query);
  }

  /// dq of a tile of queries.
  TESSERA_DEVICE void queryGrad(int64_t block, int64_t section) {
    Tile at = tileOf(block, p.heads, p.queries);
    int64_t group = at.head / (p.heads / p.groups), firstColumn = section * attentionWidth;
    int columns = least(attentionWidth, p.depth - firstColumn);
    team.each(tile * columns, [&](int index) { s.sums[0][index] = 0; });
    const Range seen = seenByAny(at.batch, at.first, at.count);
    for (int64_t firstKey = seen.first / tile * tile; firstKey < seen.end; firstKey += tile) {
      int keys = least(tile, p.keys - firstKey);
      Rows k = rowsOf(p.k, at.batch, group, firstKey, keys);
      differentiate(at, at.head, group, at.first, at.count, firstKey, keys);
      team.each(tile * columns, [&](int index) {
        int row = index / columns, column = index % columns;
        float sum = s.sums[0][index];
        for (int key = 0; key < keys; ++key)
          sum += s.dscores[row * pitch + key] * k.get(key, firstColumn + column);
        s.sums[0][index] = sum;
      });
    }
    Results dq = resultsOf(p.dq, at.batch, at.head, at.first);
    team.each(at.count * columns,
              [&](int index) { dq.put(index / columns, firstColumn + index % columns, s.sums[0][index]); });
  }

  /// dk and dv of a tile of keys: sums over the heads of the group, in their order.
  TESSERA_DEVICE void keyGrad(int64_t block, int64_t section) {
    Tile at = tileOf(block, p.groups, p.keys);
    int64_t perGroup = p.heads / p.groups, firstColumn = section * attentionWidth;
    int columns = least(attentionWidth, p.depth - firstColumn),
        valueColumns = least(attentionWidth, p.valueDepth - firstColumn);
    team.each(tile * columns, [&](int index) { s.sums[0][index] = 0; });
    team.each(tile * valueColumns, [&](int index) { s.sums[1][index] = 0; });
    for (int64_t head = at.head * perGroup; head < (at.head + 1) * perGroup; ++head)
      for (int64_t first = 0; first < p.queries; first += tile) {
        int count = least(tile, p.queries - first);
        const Range seen = seenByAny(at.batch, first, count);
        if (at.first >= seen.end || at.first + at.count <= seen.first)
          continue;
        Rows q = rowsOf(p.q, at.batch, head, first, count), dout = rowsOf(p.dout, at.batch, head, first, count);
        differentiate(at, head, at.head, first, count, at.first, at.count);
        team.each(tile * columns, [&](int index) {
          int key = index / columns, column = index % columns;
          float sum = s.sums[0][index];
          for (int row = 0; row < count; ++row)
            sum += s.dscores[row * pitch + key] * q.get(row, firstColumn + column);
          s.sums[0][index] = sum;
        });
        team.each(tile * valueColumns, [&](int index) {
          int key = index / valueColumns, column = index % valueColumns;
          float sum = s.sums[1][index];
          for (int row = 0; row < count; ++row)
            sum += s.scores[row * pitch + key] * dout.get(row, firstColumn + column);
          s.sums[1][index] = sum;
        });
      }
    Results dk = resultsOf(p.dk, at.batch, at.head, at.first), dv = resultsOf(p.dv, at.batch, at.head, at.first);
    team.each(at.count * columns,
              [&](int index) { dk.put(index / columns, firstColumn + index % columns, s.sums[0][index]); });
    team.each(at.count * valueColumns,
              [&](int index) { dv.put(index / valueColumns, firstColumn + index % valueColumns, s.sums[1][index]); });
  }

private:
  static constexpr int tile = attentionTile, pitch = AttentionScratch::pitch;

  /// Rows [first, +count) of one head.
  struct Tile {
    int64_t batch, head, first;
    int count;
  };
  struct Rows {
    const T *data;
    int64_t stride, inner;
    int count;
    TESSERA_DEVICE float get(int row, int64_t column) const {
      return static_cast<float>(data[row * stride + column * inner]);
    }
  };
  /// Rows of what may be f32 beside operands that are not.
  struct Results {
    void *data;
    int64_t first, stride, inner;
    bool isWide;
    TESSERA_DEVICE float get(int row, int64_t column) const {
      const int64_t at = first + row * stride + column * inner;
      return isWide ? static_cast<const float *>(data)[at] : static_cast<float>(static_cast<const T *>(data)[at]);
    }
    TESSERA_DEVICE void put(int row, int64_t column, float value) const {
      const int64_t at = first + row * stride + column * inner;
      if (isWide)
        static_cast<float *>(data)[at] = value;
      else
        static_cast<T *>(data)[at] = static_cast<T>(value);
    }
  };
  /// The keys [first, end), of those that there are; none where end <= first.
  struct Range {
    int64_t first, end;
  };

  /// Not below 0: a section may lie beyond the smaller of the two depths.
  TESSERA_DEVICE static int least(int most, int64_t size) {
    return size < 0 ? 0 : size < most ? static_cast<int>(size) : most;
  }
  TESSERA_DEVICE static Tile tileOf(int64_t block, int64_t heads, int64_t size) {
    int64_t tiles = (size + tile - 1) / tile, first = block % tiles * tile, head = block / tiles;
    return {head / heads, head % heads, first, least(tile, size - first)};
  }
  TESSERA_DEVICE static Rows rowsOf(const StridedTensor &tensor, int64_t batch, int64_t head, int64_t first,
                                    int count) {
    const int64_t *strides = tensor.strides;
    return {static_cast<const T *>(tensor.data) + batch * strides[0] + head * strides[1] + first * strides[2],
            strides[2], strides[3], count};
  }
  TESSERA_DEVICE static Results resultsOf(const StridedTensor &tensor, int64_t batch, int64_t head, int64_t first) {
    const int64_t *strides = tensor.strides;
    return {tensor.data, batch * strides[0] + head * strides[1] + first * strides[2], strides[2], strides[3],
            tensor.isWide};
  }
  TESSERA_DEVICE float *statistic(int64_t batch, int64_t head, int64_t query) const {
    const int64_t *strides = p.lse.strides;
    return static_cast<float *>(p.lse.data) + batch * strides[0] + head * strides[1] + query * strides[2];
  }

  /// What a query may see, but for the mask.
  TESSERA_DEVICE Range seenBy(int64_t batch, int64_t query) const {
    Range seen{0, p.keys};
    if (p.causal) {
      const int64_t end = query + p.keys - p.queries + 1;
      seen = common(seen, {p.window > 0 ? end - p.window : 0, end});
    }
    if (p.begin)
      seen = common(seen, {p.begin[batch * p.beginStride + query], p.end[batch * p.endStride + query]});
    return seen;
  }
  TESSERA_DEVICE static Range common(const Range &a, const Range &b) {
    return {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
  }
  /// All that is seen by some of the queries [first, +count); {0, 0} if that is nothing.
  TESSERA_DEVICE Range seenByAny(int64_t batch, int64_t first, int count) const {
    Range all{p.keys, 0};
    if (!p.begin) // both ends grow with the query
      all = {seenBy(batch, first).first, seenBy(batch, first + count - 1).end};
    for (int row = 0; p.begin && row < count; ++row) {
      const Range seen = seenBy(batch, first + row);
      if (seen.first < seen.end)
        all = {all.first < seen.first ? all.first : seen.first, all.end > seen.end ? all.end : seen.end};
    }
    return all.first < all.end ? all : Range{0, 0};
  }

  TESSERA_DEVICE float masked(int64_t batch, int64_t head, int64_t query, int64_t key, float product) const {
    float score = product * p.scale;
    const Range seen = seenBy(batch, query);
    if (key < seen.first || key >= seen.end)
      return -infinity;
    if (p.maskKind == AttentionMask::None)
      return score;
    const int64_t *strides = p.mask.strides;
    int64_t at = batch * strides[0] + head * strides[1] + query * strides[2] + key * strides[3];
    if (p.maskKind == AttentionMask::Boolean)
      return static_cast<const uint8_t *>(p.mask.data)[at] ? score : -infinity;
    return score + static_cast<const float *>(p.mask.data)[at];
  }

  /// Log of the sum of exp(score - lse): 0, but where |lse| is so large (exp(score - lse) is off by |lse| 2^-24 of
  /// itself) that lse, a maximum plus the log of a sum, has lost that log.
  TESSERA_DEVICE float logTotal(int64_t batch, int64_t head, int64_t query) const {
    float lse = *statistic(batch, head, query);
    if (!(fabsf(lse) > 128) || lse == -infinity)
      return 0;
    int64_t group = head / (p.heads / p.groups);
    Rows q = rowsOf(p.q, batch, head, query, 1);
    float total = 0;
    const Range seen = seenBy(batch, query);
    for (int64_t key = seen.first; key < seen.end; ++key) {
      Rows k = rowsOf(p.k, batch, group, key, 1);
      float product = 0;
      for (int64_t at = 0; at < p.depth; ++at)
        product += q.get(0, at) * k.get(0, at);
      total += expf(masked(batch, head, query, key, product) - lse);
    }
    return logf(total);
  }

  /// target[row][column] = row of a · row `column` of b; 0 beyond their ends.
  TESSERA_DEVICE void multiply(const Rows &a, const Rows &b, int64_t depth, float *target) {
    team.each(tile * tile, [&](int index) { target[index / tile * pitch + index % tile] = 0; });
    for (int64_t first = 0; first < depth; first += tile) {
      team.each(tile * tile, [&](int index) {
        int row = index / tile, at = index % tile;
        bool isInside = first + at < depth;
        s.left[row * pitch + at] = isInside && row < a.count ? a.get(row, first + at) : 0;
        s.right[row * pitch + at] = isInside && row < b.count ? b.get(row, first + at) : 0;
      });
      team.each(tile * tile, [&](int index) {
        int row = index / tile, column = index % tile;
        float sum = target[row * pitch + column];
        for (int at = 0; at < tile; ++at)
          sum += s.left[row * pitch + at] * s.right[column * pitch + at];
        target[row * pitch + column] = sum;
      });
    }
  }

  /// Takes a row of scores into its maximum and total, and makes them probabilities relative to that maximum.
  TESSERA_DEVICE void advance(int row) {
    float *scores = s.scores + row * pitch;
    float previous = s.largest[row], now = previous, added = 0;
    for (int key = 0; key < tile; ++key)
      now = scores[key] > now ? scores[key] : now;
    bool isEmpty = now == -infinity;
    for (int key = 0; key < tile; ++key) {
      scores[key] = isEmpty ? 0 : expf(scores[key] - now);
      added += scores[key];
    }
    s.factor[row] = isEmpty ? 1 : expf(previous - now);
    s.largest[row] = now;
    s.total[row] = s.total[row] * s.factor[row] + added;
  }

  /// Probabilities (in scores) and gradients of the scores (in dscores) of one tile of queries and keys; 0 beyond them.
  TESSERA_DEVICE void differentiate(const Tile &at, int64_t head, int64_t group, int64_t firstQuery, int queries,
                                    int64_t firstKey, int keys) {
    multiply(rowsOf(p.q, at.batch, head, firstQuery, queries), rowsOf(p.k, at.batch, group, firstKey, keys), p.depth,
             s.scores);
    multiply(rowsOf(p.dout, at.batch, head, firstQuery, queries), rowsOf(p.v, at.batch, group, firstKey, keys),
             p.valueDepth, s.dscores);
    team.each(tile * tile, [&](int index) {
      int row = index / tile, key = index % tile, place = row * pitch + key;
      float probability = 0, gradient = 0;
      if (row < queries && key < keys) {
        int64_t query = firstQuery + row;
        float lse = *statistic(at.batch, head, query);
        float score = masked(at.batch, head, query, firstKey + key, s.scores[place]);
        float delta = p.delta[(at.batch * p.heads + head) * p.queries + query];
        float rest = p.delta[((p.batch + at.batch) * p.heads + head) * p.queries + query];
        probability = lse == -infinity ? 0 : expf(score - lse - rest);
        gradient = probability * (s.dscores[place] - delta) * p.scale;
      }
      s.scores[place] = probability;
      s.dscores[place] = gradient;
    });
  }

  const AttentionLayout &p;
  AttentionScratch &s;
  const Team &team;
  const float infinity;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONBODY_H
