//===- AttentionBackward.h - blocked attention, backward --------------------===//
//
// Dao et al., FlashAttention-2 (2023): probabilities are recomputed from the log-sum-exp of each query. Up to
// attentionRows queries at a time meet one block of keys after the other. Whatever the tasks are, a sum of dk or dv
// goes over the queries in ascending order, one of dq over the keys. Local to the file that includes this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONBACKWARD_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONBACKWARD_H

#include "runtime/device/cpu/AttentionScores.h"

namespace tessera::cpu {
namespace {

/// exp(score - lse) is off by |lse| 2^-24 of itself.
constexpr float largestExactLse = 128;

/// Where the rows of a gradient are added up, from row `first` of the tensor on.
struct Sums {
  float *data = nullptr; ///< null: they are not wanted
  int64_t stride = 0, first = 0;
  float *row(int64_t index) const { return data + (index - first) * stride; }
};

/// Scratch of a backward task; of queries: attentionRows of them.
struct Backward {
  Word *queriesT, *doutT;         ///< [blocks, depth, block]
  Word *queries, *dout;           ///< [blocks, block, depth]
  float *lse, *delta, *logTotal;  ///< [..]
  float *dqueries;                ///< [.., depth]
  Word *keys, *keySteps, *values; ///< of a block of keys
  float *probabilities, *dscores; ///< [block, block]
  Word *byQuery, *dscoresByQuery; ///< the same as pairs of queries, [block, block / 2]
  float *dkeys, *dvalues;         ///< sums that are rounded or copied at the end: of a block, or of all keys
  const Word *querySteps[attentionRows / block], *doutSteps[attentionRows / block]; ///< where these are
};

/// Whether gradients of keys or values are added up where they are wanted.
bool isSummedInPlace(const AttentionProblem &p, const Strided &gradient, int64_t depth) {
  return isPacked(gradient, depth) && p.keys % rowTile == 0;
}

Backward divideBackward(const AttentionProblem &p, Parts &parts) {
  const int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  Backward s{};
  s.queriesT = parts.take(attentionRows * depth);
  s.queries = parts.take(attentionRows * depth);
  s.dqueries = parts.take(attentionRows * depth);
  s.doutT = parts.take(attentionRows * valueDepth);
  s.dout = parts.take(attentionRows * valueDepth);
  s.lse = parts.take(attentionRows);
  s.delta = parts.take(attentionRows);
  s.logTotal = parts.take(attentionRows);
  s.keys = parts.take(block * depth);
  s.keySteps = parts.take(block * depth);
  s.values = parts.take(block * valueDepth);
  s.probabilities = parts.take(block * block);
  s.dscores = parts.take(block * block);
  s.byQuery = parts.take(block * block / 2);
  s.dscoresByQuery = parts.take(block * block / 2);
  s.dkeys = parts.take((isSummedInPlace(p, p.dk, p.depth) ? block : upTo(p.keys, block)) * depth);
  s.dvalues = parts.take((isSummedInPlace(p, p.dv, p.valueDepth) ? block : upTo(p.keys, block)) * valueDepth);
  return s;
}

/// Log of the sum of exp(score - lse) over the keys of a query: 0, but where scores are so large that lse, their
/// maximum plus the log of a sum, has lost that log. Queries whose keys are all hidden by adding a large number are
/// such. Some of the keys alone do not say it.
template <bool Pairs>
void sumLargeRows(const AttentionProblem &p, const Backward &s, const Queries &queries, int64_t row) {
  const float *lse = s.lse + row;
  float *logTotal = s.logTotal + row;
  auto isLarge = [&](int64_t query) { return __builtin_fabsf(lse[query]) > largestExactLse && lse[query] != infinity; };
  bool any = false;
  for (int64_t query = 0; query < block; ++query) {
    logTotal[query] = 0;
    any |= isLarge(query);
  }
  if (!any || p.isPartial)
    return;
  const int64_t group = queries.head / (p.heads / p.groups);
  for (int64_t firstKey = queries.keys.first; firstKey < queries.keys.end; firstKey += block) {
    const Block at = blockOf(p, queries, row, firstKey);
    if (!at.hasSeen())
      continue;
    const Words keys = rowsOf<Pairs>({p.k, queries.batch, group, firstKey, at.columns, p.depth}, s.keys);
    const float factor = scoresOf<Pairs>(p, at, keys, s.queriesT + row * wordsOf<Pairs>(p.depth), s.probabilities);
    for (int64_t query = 0; query < block; query += lanes) {
      Floats added = load(logTotal + query);
      for (int64_t key = 0; key < at.columns; ++key)
        added += exponential(load(s.probabilities + key * block + query) * factor - load(lse + query));
      store(logTotal + query, added);
    }
  }
  for (int64_t query = 0; query < block; ++query)
    logTotal[query] = isLarge(query) ? __builtin_logf(logTotal[query]) : 0;
}

/// All that is needed of queries, whatever the keys are.
template <bool Pairs> void packQueries(const AttentionProblem &p, Backward &s, const Queries &queries) {
  const int64_t depth = wordsOf<Pairs>(p.depth), valueDepth = wordsOf<Pairs>(p.valueDepth);
  for (int64_t row = 0; row < queries.rows; row += block) {
    const int64_t rows = least(block, queries.rows - row), first = queries.first + row;
    const Rows q{p.q, queries.batch, queries.head, first, rows, p.depth},
        dout{p.dout, queries.batch, queries.head, first, rows, p.valueDepth},
        out{p.out, queries.batch, queries.head, first, rows, p.valueDepth},
        lse{p.lse, queries.batch, queries.head, first, rows, 1};
    packTransposed<Pairs>(q, s.queriesT + row * depth);
    packTransposed<Pairs>(dout, s.doutT + row * valueDepth);
    s.querySteps[row / block] = stepsOf<Pairs>(q, s.queries + row * padded(p.depth));
    s.doutSteps[row / block] = stepsOf<Pairs>(dout, s.dout + row * padded(p.valueDepth));
    for (int64_t query = 0; query < block; ++query) {
      s.delta[row + query] = query < rows ? dot(out, dout, query) : 0;
      const float sum = query < rows ? *lse.row<float>(query) : -infinity;
      s.lse[row + query] = sum == -infinity ? infinity : sum; // probability 0
    }
    sumLargeRows<Pairs>(p, s, queries, row);
  }
  for (int64_t index = 0; index < queries.rows * padded(p.depth); ++index)
    s.dqueries[index] = 0;
}

/// From scores and gradients of probabilities to probabilities and gradients of scores, as operands of products.
/// With pairs, `byQuery` and `dscoresByQuery` are [key, pair of queries] and `dscores` [pair of keys, query].
template <bool Pairs>
void differentiateBlock(const AttentionProblem &p, const Backward &s, const Block &at, float factor, int64_t row) {
  constexpr int64_t together = Pairs ? 2 : 1; // vectors of queries, and keys
  for (int64_t query = 0; query < block; query += lanes * together) {
    Floats lse[together], delta[together], logTotal[together];
    for (int64_t v = 0; v < together; ++v) {
      lse[v] = load(s.lse + row + query + v * lanes);
      delta[v] = load(s.delta + row + query + v * lanes);
      logTotal[v] = load(s.logTotal + row + query + v * lanes);
    }
    for (int64_t key = 0; key < at.columns; key += together) {
      Floats dscores[together][together];
#pragma GCC unroll 2
      for (int64_t k = 0; k < together; ++k) {
        Floats probabilities[together];
#pragma GCC unroll 2
        for (int64_t v = 0; v < together; ++v) {
          const int64_t place = (key + k) * block + query + v * lanes;
          probabilities[v] = exponential(load(s.probabilities + place) * factor - lse[v] - logTotal[v]);
          dscores[k][v] = probabilities[v] * (load(s.dscores + place) - delta[v]) * p.scale;
          if constexpr (!Pairs) {
            store(s.probabilities + place, probabilities[v]);
            store(s.dscores + place, dscores[k][v]);
          }
        }
#ifdef TESSERA_PAIRS
        if constexpr (Pairs) {
          const int64_t place = (key + k) * (block / 2) + query / 2;
          store(s.byQuery + place, narrowSequence(probabilities[0], probabilities[1]));
          store(s.dscoresByQuery + place, narrowSequence(dscores[k][0], dscores[k][1]));
        }
#endif
      }
#ifdef TESSERA_PAIRS
      if constexpr (Pairs)
        for (int64_t v = 0; v < together; ++v)
          store(s.dscores + key / 2 * block + query + v * lanes,
                narrowRows(dscores[0][v], key + 1 < at.columns ? dscores[1][v] : Floats{}));
#endif
    }
  }
}

/// The share of queries and a block of keys in their gradients.
template <bool Pairs>
void backwardKeyBlock(const AttentionProblem &p, const Backward &s, const Queries &queries, int64_t firstKey,
                      const Sums &dk, const Sums &dv, bool wantQueries) {
  const int64_t group = queries.head / (p.heads / p.groups), columns = least(block, p.keys - firstKey);
  const int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  const Rows k{p.k, queries.batch, group, firstKey, columns, p.depth},
      v{p.v, queries.batch, group, firstKey, columns, p.valueDepth};
  const Words keys = rowsOf<Pairs>(k, s.keys), values = rowsOf<Pairs>(v, s.values);
  const Word *keySteps = wantQueries ? stepsOf<Pairs>(k, s.keySteps) : nullptr;
  for (int64_t row = 0; row < queries.rows; row += block) {
    const Block at = blockOf(p, queries, row, firstKey);
    if (!at.hasSeen())
      continue;
    const float factor = scoresOf<Pairs>(p, at, keys, s.queriesT + row * wordsOf<Pairs>(p.depth), s.probabilities);
    const int64_t valueWords = wordsOf<Pairs>(p.valueDepth);
    multiply<false, Pairs>(columns, block, valueWords, values, s.doutT + row * valueWords, block, s.dscores, block);
    differentiateBlock<Pairs>(p, s, at, factor, row);
    if (dk.data) {
      const Word *q = s.querySteps[row / block], *dout = s.doutSteps[row / block];
      const Words probabilities = Pairs ? Words{s.byQuery, block / 2, 1} : Words{s.probabilities, block, 1},
                  dscores = Pairs ? Words{s.dscoresByQuery, block / 2, 1} : Words{s.dscores, block, 1};
      const int64_t steps = wordsOf<Pairs>(at.rows);
      multiply<true, Pairs>(columns, valueDepth, steps, probabilities, dout, valueDepth, dv.row(firstKey), dv.stride);
      multiply<true, Pairs>(columns, depth, steps, dscores, q, depth, dk.row(firstKey), dk.stride);
    }
    if (wantQueries)
      multiply<true, Pairs>(at.rows, depth, wordsOf<Pairs>(columns), {s.dscores, 1, block}, keySteps, depth,
                            s.dqueries + row * depth, depth);
  }
}

/// dq of queries whose share in all keys was added up.
void finishQueries(const AttentionProblem &p, const Backward &s, const Queries &queries) {
  const Rows dq{p.dq, queries.batch, queries.head, queries.first, queries.rows, p.depth};
  for (int64_t row = 0; row < queries.rows; ++row)
    unpack(dq, row, s.dqueries + row * padded(p.depth));
}

/// Sums of a gradient of `keys` keys from `first` on, all 0: in place, or in `scratch`.
Sums clearSums(const Strided &gradient, int64_t batch, int64_t group, int64_t first, int64_t keys, int64_t depth,
               bool isInPlace, float *scratch) {
  const Rows rows{gradient, batch, group, first, keys, depth};
  const Sums sums{isInPlace ? rows.row<float>(0) : scratch, padded(depth), first};
  for (int64_t index = 0; index < upTo(keys, rowTile) * sums.stride; ++index) // in place keys are a multiple
    sums.data[index] = 0;
  return sums;
}

void finishSums(const Strided &gradient, int64_t batch, int64_t group, int64_t first, int64_t keys, int64_t depth,
                const Sums &sums) {
  const Rows rows{gradient, batch, group, first, keys, depth};
  for (int64_t row = 0; row < keys; ++row)
    unpack(rows, row, sums.row(first + row));
}

template <bool Pairs> void backwardAs(const AttentionProblem &problem, float *scratch, int64_t batch, int64_t group) {
  const AttentionProblem p = problem;
  Parts parts{scratch};
  Backward s = divideBackward(p, parts);
  const int64_t heads = p.heads / p.groups;
  const bool dkInPlace = isSummedInPlace(p, p.dk, p.depth), dvInPlace = isSummedInPlace(p, p.dv, p.valueDepth);
  const Sums dk = clearSums(p.dk, batch, group, 0, p.keys, p.depth, dkInPlace, s.dkeys),
             dv = clearSums(p.dv, batch, group, 0, p.keys, p.valueDepth, dvInPlace, s.dvalues);
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head)
    for (int64_t first = 0; first < p.queries; first += attentionRows) {
      const Queries queries = describeQueries(p, batch, head, first, least(attentionRows, p.queries - first));
      packQueries<Pairs>(p, s, queries);
      for (int64_t firstKey = queries.keys.first; firstKey < queries.keys.end; firstKey += block)
        backwardKeyBlock<Pairs>(p, s, queries, firstKey, dk, dv, true);
      finishQueries(p, s, queries);
    }
  if (!dkInPlace)
    finishSums(p.dk, batch, group, 0, p.keys, p.depth, dk);
  if (!dvInPlace)
    finishSums(p.dv, batch, group, 0, p.keys, p.valueDepth, dv);
}

template <bool Pairs>
void backwardKeysAs(const AttentionProblem &problem, float *scratch, int64_t batch, int64_t group, int64_t index) {
  const AttentionProblem p = problem;
  Parts parts{scratch};
  Backward s = divideBackward(p, parts);
  const int64_t heads = p.heads / p.groups, firstKey = index * block, columns = least(block, p.keys - firstKey);
  const Sums dk = clearSums(p.dk, batch, group, firstKey, columns, p.depth, false, s.dkeys),
             dv = clearSums(p.dv, batch, group, firstKey, columns, p.valueDepth, false, s.dvalues);
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head)
    for (int64_t first = 0; first < p.queries; first += attentionRows) {
      const Queries queries = describeQueries(p, batch, head, first, least(attentionRows, p.queries - first));
      if (firstKey < queries.keys.first || firstKey >= queries.keys.end)
        continue;
      packQueries<Pairs>(p, s, queries);
      backwardKeyBlock<Pairs>(p, s, queries, firstKey, dk, dv, false);
    }
  finishSums(p.dk, batch, group, firstKey, columns, p.depth, dk);
  finishSums(p.dv, batch, group, firstKey, columns, p.valueDepth, dv);
}

template <bool Pairs>
void backwardQueriesAs(const AttentionProblem &problem, float *scratch, int64_t batch, int64_t head, int64_t index) {
  const AttentionProblem p = problem;
  Parts parts{scratch};
  Backward s = divideBackward(p, parts);
  const int64_t first = index * block, rows = least(block, p.queries - first);
  const Queries queries = describeQueries(p, batch, head, first, rows);
  packQueries<Pairs>(p, s, queries);
  for (int64_t firstKey = queries.keys.first; firstKey < queries.keys.end; firstKey += block)
    backwardKeyBlock<Pairs>(p, s, queries, firstKey, {}, {}, true);
  finishQueries(p, s, queries);
}

} // namespace
} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONBACKWARD_H
