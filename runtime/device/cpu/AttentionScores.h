//===- AttentionScores.h - which keys a query sees, scores of a block -------===//
//
// Scores of a block are [key, query], so that what is computed per query is a lane of a vector. Local to the file that
// includes this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONSCORES_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONSCORES_H

#include "runtime/device/cpu/AttentionPack.h"

namespace tessera::cpu {
namespace {

/// The keys [first, end); none where end <= first. Neither is below 0 or above the number of keys.
struct Range {
  int64_t first, end;
};

/// What a query may see, but for the mask.
Range seenBy(const AttentionProblem &p, int64_t batch, int64_t query) {
  Range seen{0, p.keys};
  if (p.causal) {
    const int64_t last = query + p.keys - p.queries;
    seen.end = least(seen.end, last + 1);
    if (p.window > 0)
      seen.first = most(seen.first, last - p.window + 1);
  }
  if (p.begin) {
    seen.first = most(seen.first, p.begin[batch * p.beginStride + query]);
    seen.end = least(seen.end, p.end[batch * p.endStride + query]);
  }
  return {least(seen.first, p.keys), most(seen.end, 0)};
}

/// What is seen by some and by each of several queries.
struct Seen {
  Range any, all;
};
Seen seenByQueries(const AttentionProblem &p, int64_t batch, int64_t firstQuery, int64_t rows) {
  const Range first = seenBy(p, batch, firstQuery), last = seenBy(p, batch, firstQuery + rows - 1);
  if (!p.begin) // both ends grow with the query
    return {{first.first, last.end}, {last.first, first.end}};
  Seen seen{{p.keys, 0}, {0, p.keys}};
  for (int64_t query = firstQuery; query < firstQuery + rows; ++query) {
    const Range of = seenBy(p, batch, query);
    seen.all = {most(seen.all.first, of.first), least(seen.all.end, of.end)};
    if (of.first < of.end)
      seen.any = {least(seen.any.first, of.first), most(seen.any.end, of.end)};
  }
  return seen;
}

/// Up to attentionRows queries of one head, in blocks.
struct Queries {
  int64_t batch, head, first, rows;
  Seen seen[attentionRows / block]; ///< by each block
  Range keys;                       ///< of all blocks of keys that have a part of what is seen; the first is a multiple
};

Queries describeQueries(const AttentionProblem &p, int64_t batch, int64_t head, int64_t first, int64_t rows) {
  Queries queries{batch, head, first, rows, {}, {p.keys, 0}};
  for (int64_t row = 0; row < rows; row += block) {
    const Seen seen = queries.seen[row / block] = seenByQueries(p, batch, first + row, least(block, rows - row));
    if (seen.any.first < seen.any.end)
      queries.keys = {least(queries.keys.first, seen.any.first / block * block), most(queries.keys.end, seen.any.end)};
  }
  return queries;
}

/// Queries [firstQuery, +rows) attend to keys [firstKey, +columns) of one head.
struct Block {
  int64_t batch, head, firstQuery, rows, firstKey, columns;
  Seen seen;
  bool hasSeen() const {
    return seen.any.first < seen.any.end && firstKey < seen.any.end && firstKey + columns > seen.any.first;
  }
  bool isWhollySeen() const { return seen.all.first <= firstKey && firstKey + columns <= seen.all.end; }
};

/// The block of the queries from `row` of `queries` on.
Block blockOf(const AttentionProblem &p, const Queries &queries, int64_t row, int64_t firstKey) {
  return {queries.batch,
          queries.head,
          queries.first + row,
          least(block, queries.rows - row),
          firstKey,
          least(block, p.keys - firstKey),
          queries.seen[row / block]};
}

/// Hides the scores of keys that a query does not see.
void hideUnseen(const AttentionProblem &p, const Block &at, float *scores) {
  alignas(64) int32_t first[block] = {}, end[block] = {};
  for (int64_t row = 0; row < at.rows; ++row) {
    const Range seen = seenBy(p, at.batch, at.firstQuery + row);
    first[row] = static_cast<int32_t>(most(least(seen.first - at.firstKey, block), 0));
    end[row] = static_cast<int32_t>(most(least(seen.end - at.firstKey, block), 0));
  }
  for (int64_t query = 0; query < block; query += lanes) {
    const Ints from = *reinterpret_cast<const Ints *>(first + query), to = *reinterpret_cast<const Ints *>(end + query);
    for (int32_t key = 0; key < at.columns; ++key) {
      float *score = scores + key * block + query;
      const Ints each = Ints{} + key;
      store(score, (each >= from) & (each < to) ? load(score) : splat(-infinity));
    }
  }
}

/// Applies the mask to scaled scores.
void applyMask(const AttentionProblem &p, const Block &at, float *scores) {
  const int64_t queryStride = p.maskStrides[2];
  const int64_t offset = at.batch * p.maskStrides[0] + at.head * p.maskStrides[1] + at.firstQuery * queryStride +
                         at.firstKey * p.maskStrides[3];
  for (int64_t key = 0; key < at.columns; ++key, scores += block) {
    if (p.maskKind == MaskKind::Boolean) {
      const uint8_t *mask = static_cast<const uint8_t *>(p.mask) + offset + key * p.maskStrides[3];
      for (int64_t query = 0; query < at.rows; ++query)
        scores[query] = mask[query * queryStride] ? scores[query] : -infinity;
    } else {
      const float *mask = static_cast<const float *>(p.mask) + offset + key * p.maskStrides[3];
      for (int64_t query = 0; query < at.rows; ++query)
        scores[query] += mask[query * queryStride];
    }
  }
}

/// Scores of a block, [columns, block], but for the factor that is returned: masks are applied to scaled scores.
/// `queriesT` is [words of depth, block]. Rows up to a multiple of rowTile are written.
template <bool Pairs>
float scoresOf(const AttentionProblem &p, const Block &at, Words keys, const Word *queriesT, float *scores) {
  multiply<false, Pairs>(at.columns, block, wordsOf<Pairs>(p.depth), keys, queriesT, block, scores, block);
  if (p.maskKind == MaskKind::None && at.isWhollySeen())
    return p.scale;
  for (int64_t index = 0; index < at.columns * block; index += lanes)
    store(scores + index, load(scores + index) * p.scale);
  if (p.maskKind != MaskKind::None)
    applyMask(p, at, scores);
  if (!at.isWhollySeen())
    hideUnseen(p, at, scores);
  return 1;
}

/// Hands out scratch; without memory it counts how much a task needs.
struct Parts {
  float *memory;
  int64_t taken = 0;
  float *take(int64_t floats) {
    float *part = memory ? memory + taken : nullptr;
    taken += padded(floats);
    return part;
  }
};

} // namespace
} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONSCORES_H
