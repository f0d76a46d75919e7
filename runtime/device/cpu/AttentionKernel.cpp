//===- AttentionKernel.cpp - blocked attention for one instruction set -----===//
//
// Dao et al., FlashAttention-2 (2023): an online softmax over blocks of keys, so that memory is linear in the sequence.
// Blocks are packed into scratch with zero padding, so that the products below have no edges. Built with
// TESSERA_ATTENTION (the table's name) and TESSERA_VECTOR_BYTES.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/AttentionTile.h"

namespace tessera::cpu {
namespace {

/// Queries [firstQuery, +rows) attend to keys [firstKey, +columns) of one head.
struct Block {
  int64_t batch, head, firstQuery, rows, firstKey, columns;
};

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

/// All that is seen by some of the queries [firstQuery, +rows).
Range seenByAny(const AttentionProblem &p, int64_t batch, int64_t firstQuery, int64_t rows) {
  if (rows == 0)
    return {0, 0};
  if (!p.begin) // both ends grow with the query
    return {seenBy(p, batch, firstQuery).first, seenBy(p, batch, firstQuery + rows - 1).end};
  Range all{p.keys, 0};
  for (int64_t query = firstQuery; query < firstQuery + rows; ++query)
    if (const Range seen = seenBy(p, batch, query); seen.first < seen.end)
      all = {least(all.first, seen.first), most(all.end, seen.end)};
  return all;
}

/// The blocks of keys that have a part of `seen`: [first, end), a multiple of `block` first.
Range blocksOf(const Range &seen) {
  return seen.first < seen.end ? Range{seen.first / block * block, seen.end} : Range{0, 0};
}
bool hasPartOf(int64_t firstKey, int64_t columns, const Range &seen) {
  return seen.first < seen.end && firstKey < seen.end && firstKey + columns > seen.first;
}

/// Scales a row of products and applies the masks; columns beyond the keys become -inf.
void finishScores(const AttentionProblem &p, const Block &at, int64_t row, float *scores) {
  for (int64_t column = 0; column < block; column += lanes)
    store(scores + column, load(scores + column) * p.scale);
  const int64_t query = at.firstQuery + row;
  const Range seen = seenBy(p, at.batch, query);
  const int64_t first = least(most(seen.first - at.firstKey, 0), at.columns);
  const int64_t columns = most(least(at.columns, seen.end - at.firstKey), 0);
  if (p.maskKind != MaskKind::None) {
    int64_t offset = at.batch * p.maskStrides[0] + at.head * p.maskStrides[1] + query * p.maskStrides[2] +
                     at.firstKey * p.maskStrides[3];
    if (p.maskKind == MaskKind::Boolean) {
      const uint8_t *mask = static_cast<const uint8_t *>(p.mask) + offset;
      for (int64_t column = 0; column < columns; ++column)
        scores[column] = mask[column * p.maskStrides[3]] ? scores[column] : -infinity;
    } else {
      const float *mask = static_cast<const float *>(p.mask) + offset;
      for (int64_t column = 0; column < columns; ++column)
        scores[column] += mask[column * p.maskStrides[3]];
    }
  }
  for (int64_t column = 0; column < first; ++column)
    scores[column] = -infinity;
  for (int64_t column = columns; column < block; ++column)
    scores[column] = -infinity;
}

size_t forwardScratch(const AttentionProblem &p) {
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  return attentionRows * (depth + valueDepth + 2) + block * (depth + valueDepth + block);
}

void forward(const AttentionProblem &problem, float *scratch, int64_t batch, int64_t head, int64_t chunk) {
  AttentionProblem p = problem;
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth), group = head / (p.heads / p.groups);
  int64_t firstRow = chunk * attentionRows, rows = least(attentionRows, p.queries - firstRow);
  float *queries = scratch, *sums = queries + attentionRows * depth, *largest = sums + attentionRows * valueDepth,
        *total = largest + attentionRows, *keys = total + attentionRows, *values = keys + block * depth,
        *scores = values + block * valueDepth;
  pack(p.q, batch, head, firstRow, rows, attentionRows, p.depth, queries);
  for (int64_t index = 0; index < attentionRows * valueDepth; ++index)
    sums[index] = 0;
  for (int64_t row = 0; row < attentionRows; ++row) {
    largest[row] = -infinity;
    total[row] = 0;
  }
  Range seen[attentionRows / block];
  for (int64_t first = 0; first < attentionRows; first += block)
    seen[first / block] = seenByAny(p, batch, firstRow + first, most(least(block, rows - first), 0));
  const Range blocks = blocksOf(seenByAny(p, batch, firstRow, rows));
  for (int64_t firstKey = blocks.first; firstKey < blocks.end; firstKey += block) {
    int64_t columns = least(block, p.keys - firstKey);
    packTransposed(p.k, batch, group, firstKey, columns, p.depth, keys);
    pack(p.v, batch, group, firstKey, columns, block, p.valueDepth, values);
    for (int64_t first = 0; first < rows; first += block) {
      Block at{batch, head, firstRow + first, least(block, rows - first), firstKey, columns};
      if (!hasPartOf(firstKey, columns, seen[first / block]))
        continue;
      int64_t tileRows = (at.rows + rowTile - 1) / rowTile * rowTile;
      multiply<false>(tileRows, block, p.depth, queries + first * depth, depth, 1, keys, block, scores, block);
      for (int64_t row = 0; row < at.rows; ++row) {
        float *s = scores + row * block;
        finishScores(p, at, row, s);
        Floats top = load(s);
        for (int64_t column = lanes; column < block; column += lanes) {
          Floats next = load(s + column);
          top = next > top ? next : top;
        }
        float previous = largest[first + row], now = previous;
        for (int64_t lane = 0; lane < lanes; ++lane)
          now = top[lane] > now ? top[lane] : now;
        if (now == -infinity) {
          for (int64_t column = 0; column < block; ++column)
            s[column] = 0;
          continue;
        }
        Floats added{};
        for (int64_t column = 0; column < block; column += lanes) {
          Floats e = exponential(load(s + column) - now);
          store(s + column, e);
          added += e;
        }
        float correction = exponential(splat(previous - now))[0];
        largest[first + row] = now;
        total[first + row] = total[first + row] * correction + sum(added);
        if (correction != 1)
          for (int64_t column = 0; column < valueDepth; column += lanes) {
            float *o = sums + (first + row) * valueDepth + column;
            store(o, load(o) * correction);
          }
      }
      for (int64_t index = at.rows * block; index < tileRows * block; ++index)
        scores[index] = 0;
      multiply<true>(tileRows, valueDepth, columns, scores, block, 1, values, valueDepth, sums + first * valueDepth,
                     valueDepth);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    float inverse = total[row] > 0 ? 1 / total[row] : 0;
    unpack(p.out, batch, head, firstRow + row, p.valueDepth, sums + row * valueDepth, inverse);
    *rowOf<float>(p.lse, batch, head, firstRow + row) =
        total[row] > 0 ? largest[row] + __builtin_logf(total[row]) : -infinity;
  }
}

/// exp(score - lse) is off by |lse| 2^-24 of itself.
constexpr float largestExactLse = 128;

/// Scratch of a backward task.
struct Backward {
  float *keysT, *valuesT, *keys, *dkeys, *dvalues; ///< of a block of keys
  float *queries, *dout, *lse, *delta, *logTotal;  ///< of a block of queries
  float *probabilities, *dscores, *dqueries, *otherKeys;
  /// bf16 only: where gradients of queries are added up, [heads, queries, depth] from a head and a query on.
  float *sums;
  int64_t firstHead, firstQuery;
};

/// Floats that sum the gradients of all queries of a group, which are rounded at the end.
int64_t querySums(const AttentionProblem &p) {
  return p.dq.isHalf ? p.heads / p.groups * ((p.queries + block - 1) / block * block) * padded(p.depth) : 0;
}

size_t backwardScratch(const AttentionProblem &p) {
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  return block * (depth * 6 + valueDepth * 3 + 3 + 2 * block) + querySums(p);
}

Backward divide(const AttentionProblem &p, float *scratch) {
  int64_t depth = padded(p.depth) * block, valueDepth = padded(p.valueDepth) * block;
  Backward part;
  float **pieces[] = {&part.keysT, &part.keys, &part.dkeys, &part.queries, &part.dqueries, &part.otherKeys};
  for (float **piece : pieces) {
    *piece = scratch;
    scratch += depth;
  }
  float **valuePieces[] = {&part.valuesT, &part.dvalues, &part.dout};
  for (float **piece : valuePieces) {
    *piece = scratch;
    scratch += valueDepth;
  }
  part.probabilities = scratch;
  part.dscores = part.probabilities + block * block;
  part.lse = part.dscores + block * block;
  part.delta = part.lse + block;
  part.logTotal = part.delta + block;
  part.sums = part.logTotal + block;
  part.firstHead = part.firstQuery = 0;
  return part;
}

void packKeys(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t group, int64_t firstKey) {
  int64_t columns = least(block, p.keys - firstKey);
  packTransposed(p.k, batch, group, firstKey, columns, p.depth, s.keysT);
  packTransposed(p.v, batch, group, firstKey, columns, p.valueDepth, s.valuesT);
  pack(p.k, batch, group, firstKey, columns, block, p.depth, s.keys);
}

/// Log of the sum of exp(score - lse) over a row: 0, but where scores are so large that lse, their maximum plus the log
/// of a sum, has lost that log. Rows whose keys are all hidden by adding a large number are such. Some of the keys
/// alone do not say it.
void sumLargeRows(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first,
                  int64_t rows) {
  auto isLarge = [&](int64_t row) { return __builtin_fabsf(s.lse[row]) > largestExactLse && s.lse[row] != infinity; };
  bool any = false;
  for (int64_t row = 0; row < block; ++row) {
    s.logTotal[row] = 0;
    any |= row < rows && isLarge(row);
  }
  if (!any || p.isPartial)
    return;
  int64_t depth = padded(p.depth), tileRows = (rows + rowTile - 1) / rowTile * rowTile,
          group = head / (p.heads / p.groups);
  const Range blocks = blocksOf(seenByAny(p, batch, first, rows));
  for (int64_t firstKey = blocks.first; firstKey < blocks.end; firstKey += block) {
    Block at{batch, head, first, rows, firstKey, least(block, p.keys - firstKey)};
    packTransposed(p.k, batch, group, firstKey, at.columns, p.depth, s.otherKeys);
    multiply<false>(tileRows, block, p.depth, s.queries, depth, 1, s.otherKeys, block, s.probabilities, block);
    for (int64_t row = 0; row < rows; ++row) {
      if (!isLarge(row))
        continue;
      float *scores = s.probabilities + row * block;
      finishScores(p, at, row, scores);
      Floats added{};
      for (int64_t column = 0; column < block; column += lanes)
        added += exponential(load(scores + column) - s.lse[row]);
      s.logTotal[row] += sum(added);
    }
  }
  for (int64_t row = 0; row < rows; ++row)
    if (isLarge(row))
      s.logTotal[row] = __builtin_logf(s.logTotal[row]);
}

void packQueries(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first) {
  int64_t rows = least(block, p.queries - first), width = padded(p.valueDepth);
  pack(p.q, batch, head, first, rows, block, p.depth, s.queries);
  pack(p.dout, batch, head, first, rows, block, p.valueDepth, s.dout);
  for (int64_t row = 0; row < block; ++row) {
    s.delta[row] = 0;
    s.lse[row] = infinity; // probability 0
    if (row >= rows)
      continue;
    float delta = (p.out.isHalf ? dotAs<Half> : dotAs<float>)(p.out, batch, head, first + row, p.valueDepth,
                                                              s.dout + row * width);
    float lse = *rowOf<float>(p.lse, batch, head, first + row);
    s.delta[row] = delta;
    s.lse[row] = lse == -infinity ? infinity : lse;
  }
  sumLargeRows(p, s, batch, head, first, rows);
}

float *sumOf(const AttentionProblem &p, const Backward &s, int64_t head, int64_t query) {
  return s.sums + ((head - s.firstHead) * p.queries + query - s.firstQuery) * padded(p.depth);
}

/// Probabilities and gradient of the scores of one block; then its share of dk and dv (in scratch) and of dq (in
/// place).
void backwardBlock(const AttentionProblem &p, const Backward &s, const Block &at, bool wantKeys, bool wantQueries) {
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  int64_t rows = (at.rows + rowTile - 1) / rowTile * rowTile, columns = (at.columns + rowTile - 1) / rowTile * rowTile;
  multiply<false>(rows, block, p.depth, s.queries, depth, 1, s.keysT, block, s.probabilities, block);
  multiply<false>(rows, block, p.valueDepth, s.dout, valueDepth, 1, s.valuesT, block, s.dscores, block);
  for (int64_t row = 0; row < rows; ++row) {
    float *probability = s.probabilities + row * block, *dscore = s.dscores + row * block;
    Block masked = at;
    if (row < at.rows)
      finishScores(p, masked, row, probability);
    for (int64_t column = 0; column < block; column += lanes) {
      Floats e = exponential(load(probability + column) - s.lse[row] - s.logTotal[row]);
      store(probability + column, e);
      store(dscore + column, e * (load(dscore + column) - s.delta[row]) * p.scale);
    }
  }
  if (wantKeys) {
    multiply<true>(columns, valueDepth, at.rows, s.probabilities, 1, block, s.dout, valueDepth, s.dvalues, valueDepth);
    multiply<true>(columns, depth, at.rows, s.dscores, 1, block, s.queries, depth, s.dkeys, depth);
  }
  if (wantQueries) {
    multiply<false>(rows, depth, at.columns, s.dscores, block, 1, s.keys, depth, s.dqueries, depth);
    for (int64_t row = 0; row < at.rows; ++row) {
      bool isSummed = p.dq.isHalf;
      float *to = isSummed ? sumOf(p, s, at.head, at.firstQuery + row)
                           : rowOf<float>(p.dq, at.batch, at.head, at.firstQuery + row);
      int64_t stride = isSummed ? 1 : p.dq.strides[3];
      for (int64_t column = 0; column < p.depth; ++column)
        to[column * stride] += s.dqueries[row * depth + column];
    }
  }
}

void clearQueries(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first,
                  int64_t rows) {
  for (int64_t row = first; row < first + rows; ++row) {
    float *to = p.dq.isHalf ? sumOf(p, s, head, row) : rowOf<float>(p.dq, batch, head, row);
    int64_t stride = p.dq.isHalf ? 1 : p.dq.strides[3];
    for (int64_t column = 0; column < p.depth; ++column)
      to[column * stride] = 0;
  }
}

/// Rounds the sums of gradients of queries, where they were not added up in place.
void finishQueries(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first,
                   int64_t rows) {
  for (int64_t row = first; p.dq.isHalf && row < first + rows; ++row)
    unpack(p.dq, batch, head, row, p.depth, sumOf(p, s, head, row));
}

/// dk and dv of one block of keys, and if wanted its share of dq.
void backwardKeyBlock(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t group, int64_t firstKey,
                      bool wantQueries) {
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth), heads = p.heads / p.groups;
  int64_t columns = least(block, p.keys - firstKey);
  packKeys(p, s, batch, group, firstKey);
  for (int64_t index = 0; index < block * depth; ++index)
    s.dkeys[index] = 0;
  for (int64_t index = 0; index < block * valueDepth; ++index)
    s.dvalues[index] = 0;
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head)
    for (int64_t first = 0; first < p.queries; first += block) {
      Block at{batch, head, first, least(block, p.queries - first), firstKey, columns};
      if (!hasPartOf(firstKey, columns, seenByAny(p, batch, first, at.rows)))
        continue;
      packQueries(p, s, batch, head, first);
      backwardBlock(p, s, at, true, wantQueries);
    }
  for (int64_t row = 0; row < columns; ++row) {
    unpack(p.dk, batch, group, firstKey + row, p.depth, s.dkeys + row * depth);
    unpack(p.dv, batch, group, firstKey + row, p.valueDepth, s.dvalues + row * valueDepth);
  }
}

void backward(const AttentionProblem &p, float *scratch, int64_t batch, int64_t group) {
  Backward s = divide(p, scratch);
  int64_t heads = p.heads / p.groups;
  s.firstHead = group * heads;
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head)
    clearQueries(p, s, batch, head, 0, p.queries);
  for (int64_t firstKey = 0; firstKey < p.keys; firstKey += block)
    backwardKeyBlock(p, s, batch, group, firstKey, true);
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head)
    finishQueries(p, s, batch, head, 0, p.queries);
}

void backwardKeys(const AttentionProblem &p, float *scratch, int64_t batch, int64_t group, int64_t index) {
  backwardKeyBlock(p, divide(p, scratch), batch, group, index * block, false);
}

void backwardQueries(const AttentionProblem &p, float *scratch, int64_t batch, int64_t head, int64_t index) {
  Backward s = divide(p, scratch);
  int64_t first = index * block, rows = least(block, p.queries - first), group = head / (p.heads / p.groups);
  s.firstHead = head;
  s.firstQuery = first;
  clearQueries(p, s, batch, head, first, rows);
  packQueries(p, s, batch, head, first);
  const Range blocks = blocksOf(seenByAny(p, batch, first, rows));
  for (int64_t firstKey = blocks.first; firstKey < blocks.end; firstKey += block) {
    Block at{batch, head, first, rows, firstKey, least(block, p.keys - firstKey)};
    packKeys(p, s, batch, group, firstKey);
    backwardBlock(p, s, at, false, true);
  }
  finishQueries(p, s, batch, head, first, rows);
}

} // namespace

const AttentionKernel TESSERA_ATTENTION = {forwardScratch, backwardScratch, forward,
                                           backward,       backwardKeys,    backwardQueries};

} // namespace tessera::cpu
