//===- AttentionKernel.cpp - blocked attention for one instruction set -----===//
//
// Dao et al., FlashAttention-2 (2023): an online softmax over blocks of keys, so that memory is linear in the sequence.
// Blocks are packed into scratch with zero padding, so that the products below have no edges. Built with
// TESSERA_ATTENTION (the table's name) and TESSERA_VECTOR_BYTES.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/AttentionKernel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t lanes = TESSERA_VECTOR_BYTES / sizeof(float);
using Floats = float __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));
using Ints = int32_t __attribute__((vector_size(TESSERA_VECTOR_BYTES), may_alias));

constexpr int64_t block = attentionBlock;
constexpr int64_t rowTile = 4;                         // rows of a register tile
constexpr int64_t columnVectors = lanes == 16 ? 4 : 2; // vectors of a register tile's row
constexpr float infinity = __builtin_inff();

int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
Floats load(const float *p) { return *reinterpret_cast<const Floats *>(p); }
void store(float *p, Floats value) { *reinterpret_cast<Floats *>(p) = value; }
Floats splat(float value) { return Floats{} + value; }

/// exp(x) for x <= about 88 within 2 ulp; 0 below -87.3 (Cephes' polynomial).
Floats exponential(Floats x) {
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

float sum(Floats value) {
  float total = 0;
  for (int64_t lane = 0; lane < lanes; ++lane)
    total += value[lane];
  return total;
}

/// c[4, V*lanes] (+)= a[4, k] b[k, V*lanes]; a has any strides.
template <int V, bool Accumulate>
void multiplyTile(int64_t k, const float *a, int64_t rowStride, int64_t kStride, const float *b, int64_t ldb, float *c,
                  int64_t ldc) {
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
void multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t rowStride, int64_t kStride, const float *b,
              int64_t ldb, float *c, int64_t ldc) {
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

float widen(float value) { return value; }
float widen(Half half) { return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16); }
void put(float *to, float value) { *to = value; }
void put(Half *to, float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  *to = static_cast<Half>(value == value ? rounded : bits >> 16 | 0x40);
}

template <typename T> T *rowOf(const Strided &tensor, int64_t batch, int64_t head, int64_t row) {
  return static_cast<T *>(tensor.data) + batch * tensor.strides[0] + head * tensor.strides[1] + row * tensor.strides[2];
}

/// Copies `rows` rows of `depth` to [capacity, padded(depth)], zeros elsewhere.
template <typename T>
void packAs(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t capacity,
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
void pack(const AttentionProblem &p, const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows,
          int64_t capacity, int64_t depth, float *target) {
  (p.isHalf ? packAs<Half> : packAs<float>)(tensor, batch, head, first, rows, capacity, depth, target);
}

/// The same, transposed to [depth, block].
template <typename T>
void packTransposedAs(const Strided &tensor, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t depth,
                      float *target) {
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
void packTransposed(const AttentionProblem &p, const Strided &tensor, int64_t batch, int64_t head, int64_t first,
                    int64_t rows, int64_t depth, float *target) {
  (p.isHalf ? packTransposedAs<Half> : packTransposedAs<float>)(tensor, batch, head, first, rows, depth, target);
}

/// Writes row `row` of a result.
template <typename T>
void unpackAs(const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth, const float *from,
              float factor) {
  T *to = rowOf<T>(tensor, batch, head, row);
  for (int64_t column = 0; column < depth; ++column)
    put(to + column * tensor.strides[3], from[column] * factor);
}
void unpack(const AttentionProblem &p, const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth,
            const float *from, float factor = 1) {
  (p.isHalf ? unpackAs<Half> : unpackAs<float>)(tensor, batch, head, row, depth, from, factor);
}

template <typename T>
float dotAs(const Strided &tensor, int64_t batch, int64_t head, int64_t row, int64_t depth, const float *with) {
  const T *from = rowOf<T>(tensor, batch, head, row);
  float sum = 0;
  for (int64_t column = 0; column < depth; ++column)
    sum += with[column] * widen(from[column * tensor.strides[3]]);
  return sum;
}

/// Queries [firstQuery, +rows) attend to keys [firstKey, +columns) of one head.
struct Block {
  int64_t batch, head, firstQuery, rows, firstKey, columns;
};

bool isSkipped(const AttentionProblem &p, int64_t firstQuery, int64_t rows, int64_t firstKey) {
  return p.causal && firstKey > firstQuery + rows - 1 + p.keys - p.queries;
}

/// Scales a row of products and applies the masks; columns beyond the keys become -inf.
void finishScores(const AttentionProblem &p, const Block &at, int64_t row, float *scores) {
  for (int64_t column = 0; column < block; column += lanes)
    store(scores + column, load(scores + column) * p.scale);
  int64_t query = at.firstQuery + row, columns = at.columns;
  if (p.causal) {
    int64_t last = query + p.keys - p.queries; // inclusive
    columns = least(columns, last - at.firstKey + 1);
    columns = columns < 0 ? 0 : columns;
  }
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
  pack(p, p.q, batch, head, firstRow, rows, attentionRows, p.depth, queries);
  for (int64_t index = 0; index < attentionRows * valueDepth; ++index)
    sums[index] = 0;
  for (int64_t row = 0; row < attentionRows; ++row) {
    largest[row] = -infinity;
    total[row] = 0;
  }
  for (int64_t firstKey = 0; firstKey < p.keys; firstKey += block) {
    if (isSkipped(p, firstRow, rows, firstKey))
      break;
    int64_t columns = least(block, p.keys - firstKey);
    packTransposed(p, p.k, batch, group, firstKey, columns, p.depth, keys);
    pack(p, p.v, batch, group, firstKey, columns, block, p.valueDepth, values);
    for (int64_t first = 0; first < rows; first += block) {
      Block at{batch, head, firstRow + first, least(block, rows - first), firstKey, columns};
      if (isSkipped(p, at.firstQuery, at.rows, firstKey))
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
    unpack(p, p.out, batch, head, firstRow + row, p.valueDepth, sums + row * valueDepth, inverse);
    *rowOf<float>(p.lse, batch, head, firstRow + row) =
        total[row] > 0 ? largest[row] + __builtin_logf(total[row]) : -infinity;
  }
}

/// Scratch of a backward task.
struct Backward {
  float *keysT, *valuesT, *keys, *dkeys, *dvalues; ///< of a block of keys
  float *queries, *dout, *lse, *delta;             ///< of a block of queries
  float *probabilities, *dscores, *dqueries;
  /// bf16 only: where gradients of queries are added up, [heads, queries, depth] from a head and a query on.
  float *sums;
  int64_t firstHead, firstQuery;
};

/// Floats that sum the gradients of all queries of a group, which are rounded at the end.
int64_t querySums(const AttentionProblem &p) {
  return p.isHalf ? p.heads / p.groups * ((p.queries + block - 1) / block * block) * padded(p.depth) : 0;
}

size_t backwardScratch(const AttentionProblem &p) {
  int64_t depth = padded(p.depth), valueDepth = padded(p.valueDepth);
  return block * (depth * 5 + valueDepth * 3 + 2 + 2 * block) + querySums(p);
}

Backward divide(const AttentionProblem &p, float *scratch) {
  int64_t depth = padded(p.depth) * block, valueDepth = padded(p.valueDepth) * block;
  Backward part;
  float **pieces[] = {&part.keysT, &part.keys, &part.dkeys, &part.queries, &part.dqueries};
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
  part.sums = part.delta + block;
  part.firstHead = part.firstQuery = 0;
  return part;
}

void packKeys(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t group, int64_t firstKey) {
  int64_t columns = least(block, p.keys - firstKey);
  packTransposed(p, p.k, batch, group, firstKey, columns, p.depth, s.keysT);
  packTransposed(p, p.v, batch, group, firstKey, columns, p.valueDepth, s.valuesT);
  pack(p, p.k, batch, group, firstKey, columns, block, p.depth, s.keys);
}

void packQueries(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first) {
  int64_t rows = least(block, p.queries - first), width = padded(p.valueDepth);
  pack(p, p.q, batch, head, first, rows, block, p.depth, s.queries);
  pack(p, p.dout, batch, head, first, rows, block, p.valueDepth, s.dout);
  for (int64_t row = 0; row < block; ++row) {
    s.delta[row] = 0;
    s.lse[row] = infinity; // probability 0
    if (row >= rows)
      continue;
    float delta =
        (p.isHalf ? dotAs<Half> : dotAs<float>)(p.out, batch, head, first + row, p.valueDepth, s.dout + row * width);
    float lse = *rowOf<float>(p.lse, batch, head, first + row);
    s.delta[row] = delta;
    s.lse[row] = lse == -infinity ? infinity : lse;
  }
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
      Floats e = exponential(load(probability + column) - s.lse[row]);
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
      bool isSummed = p.isHalf;
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
    float *to = p.isHalf ? sumOf(p, s, head, row) : rowOf<float>(p.dq, batch, head, row);
    int64_t stride = p.isHalf ? 1 : p.dq.strides[3];
    for (int64_t column = 0; column < p.depth; ++column)
      to[column * stride] = 0;
  }
}

/// Rounds the sums of gradients of queries, where they were not added up in place.
void finishQueries(const AttentionProblem &p, const Backward &s, int64_t batch, int64_t head, int64_t first,
                   int64_t rows) {
  for (int64_t row = first; p.isHalf && row < first + rows; ++row)
    unpack(p, p.dq, batch, head, row, p.depth, sumOf(p, s, head, row));
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
      if (isSkipped(p, first, at.rows, firstKey))
        continue;
      packQueries(p, s, batch, head, first);
      backwardBlock(p, s, at, true, wantQueries);
    }
  for (int64_t row = 0; row < columns; ++row) {
    unpack(p, p.dk, batch, group, firstKey + row, p.depth, s.dkeys + row * depth);
    unpack(p, p.dv, batch, group, firstKey + row, p.valueDepth, s.dvalues + row * valueDepth);
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
  for (int64_t firstKey = 0; firstKey < p.keys; firstKey += block) {
    Block at{batch, head, first, rows, firstKey, least(block, p.keys - firstKey)};
    if (isSkipped(p, first, rows, firstKey))
      break;
    packKeys(p, s, batch, group, firstKey);
    backwardBlock(p, s, at, false, true);
  }
  finishQueries(p, s, batch, head, first, rows);
}

} // namespace

const AttentionKernel TESSERA_ATTENTION = {forwardScratch, backwardScratch, forward,
                                           backward,       backwardKeys,    backwardQueries};

} // namespace tessera::cpu
