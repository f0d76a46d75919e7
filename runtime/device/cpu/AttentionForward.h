//===- AttentionForward.h - blocked attention, forward ----------------------===//
//
// Dao et al., FlashAttention-2 (2023): an online softmax over blocks of keys, so that memory is linear in the sequence.
// Local to the file that includes this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONFORWARD_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONFORWARD_H

#include "runtime/device/cpu/AttentionScores.h"

namespace tessera::cpu {
namespace {

/// Scratch of a forward task; of queries: attentionRows of them.
struct Forward {
  Word *queriesT;                ///< [blocks, depth, block]
  float *sums, *largest, *total; ///< [.., valueDepth], the online softmax
  Word *keys, *values;           ///< of a block
  float *scores, *correction;    ///< [block, block], [block]
};

Forward divideForward(const AttentionProblem &p, Parts &parts) {
  const int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  Forward s{};
  s.queriesT = parts.take(attentionRows * depth);
  s.sums = parts.take(attentionRows * valueDepth);
  s.largest = parts.take(attentionRows);
  s.total = parts.take(attentionRows);
  s.keys = parts.take(block * depth);
  s.values = parts.take(block * valueDepth);
  s.scores = parts.take(block * block);
  s.correction = parts.take(block);
  return s;
}

/// A block's exp(score - maximum) as operand of the product with the values, [words of keys, block], in place of the
/// scores; renews maxima and sums of its queries. Returns whether earlier sums have to be corrected.
template <bool Pairs>
bool softmaxBlock(const Block &at, float factor, float *scores, float *largest, float *total, float *corrections) {
  bool isCorrected = false;
  for (int64_t query = 0; query < block; query += lanes) {
    float *column = scores + query;
    Floats top = splat(-infinity), topOfOdd = top;
    for (int64_t key = 0; key + 1 < at.columns; key += 2) {
      top = larger(top, load(column + key * block) * factor);
      topOfOdd = larger(topOfOdd, load(column + (key + 1) * block) * factor);
    }
    if (at.columns % 2 != 0)
      top = larger(top, load(column + (at.columns - 1) * block) * factor);
    const Floats previous = load(largest + query), now = larger(previous, larger(top, topOfOdd));
    const Floats base = now == -infinity ? splat(0) : now;
    Floats added{}, addedOfOdd{};
    for (int64_t key = 0; key < at.columns; key += 2) {
      const bool hasSecond = key + 1 < at.columns;
      const Floats one = exponential(load(column + key * block) * factor - base);
      const Floats two = hasSecond ? exponential(load(column + (key + 1) * block) * factor - base) : Floats{};
      added += one;
      addedOfOdd += two;
      if constexpr (Pairs) {
#ifdef TESSERA_PAIRS
        store(column + key / 2 * block, narrowRows(one, two));
#endif
      } else {
        store(column + key * block, one);
        if (hasSecond)
          store(column + (key + 1) * block, two);
      }
    }
    const Floats correction = exponential(previous - base);
    store(largest + query, now);
    store(total + query, load(total + query) * correction + (added + addedOfOdd));
    store(corrections + query, correction);
    for (int64_t lane = 0; lane < lanes; ++lane)
      isCorrected |= corrections[query + lane] != 1;
  }
  return isCorrected;
}

template <bool Pairs>
void forwardAs(const AttentionProblem &problem, float *scratch, int64_t batch, int64_t head, int64_t chunk) {
  const AttentionProblem p = problem;
  Parts parts{scratch};
  const Forward s = divideForward(p, parts);
  const int64_t depth = wordsOf<Pairs>(p.depth), valueDepth = padded(p.valueDepth), group = head / (p.heads / p.groups);
  const int64_t firstRow = chunk * attentionRows, rows = least(attentionRows, p.queries - firstRow);
  for (int64_t row = 0; row < rows; row += block)
    packTransposed<Pairs>({p.q, batch, head, firstRow + row, least(block, rows - row), p.depth},
                          s.queriesT + row * depth);
  for (int64_t index = 0; index < attentionRows * valueDepth; ++index)
    s.sums[index] = 0;
  for (int64_t row = 0; row < attentionRows; ++row) {
    s.largest[row] = -infinity;
    s.total[row] = 0;
  }
  const Queries queries = describeQueries(p, batch, head, firstRow, rows);
  for (int64_t firstKey = queries.keys.first; firstKey < queries.keys.end; firstKey += block) {
    const int64_t columns = least(block, p.keys - firstKey);
    const Words keys = rowsOf<Pairs>({p.k, batch, group, firstKey, columns, p.depth}, s.keys);
    const Word *values = stepsOf<Pairs>({p.v, batch, group, firstKey, columns, p.valueDepth}, s.values);
    for (int64_t row = 0; row < rows; row += block) {
      const Block at = blockOf(p, queries, row, firstKey);
      if (!at.hasSeen())
        continue;
      const float factor = scoresOf<Pairs>(p, at, keys, s.queriesT + row * depth, s.scores);
      float *sums = s.sums + row * valueDepth;
      if (softmaxBlock<Pairs>(at, factor, s.scores, s.largest + row, s.total + row, s.correction))
        for (int64_t query = 0; query < at.rows; ++query)
          for (int64_t column = 0; column < valueDepth; column += lanes) {
            float *sum = sums + query * valueDepth + column;
            store(sum, load(sum) * s.correction[query]);
          }
      multiply<true, Pairs>(at.rows, valueDepth, wordsOf<Pairs>(columns), {s.scores, 1, block}, values, valueDepth,
                            sums, valueDepth);
    }
  }
  const Rows out{p.out, batch, head, firstRow, rows, p.valueDepth};
  const Rows lse{p.lse, batch, head, firstRow, rows, 1};
  for (int64_t row = 0; row < rows; ++row) {
    const float total = s.total[row];
    unpack(out, row, s.sums + row * valueDepth, total == 0 ? 0 : 1 / total);
    *lse.row<float>(row) = total == 0 ? -infinity : s.largest[row] + __builtin_logf(total);
  }
}

} // namespace
} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONFORWARD_H
