//===- Solve.cpp - determinants, systems of equations, exponentials ---------===//

#include "frontends/common/Solve.h"

#include "frontends/common/Axis.h"
#include "frontends/common/Functions.h"
#include "frontends/common/Indexing.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
Value multiply(Build &b, Value x, Value y) { return b.dot(x, y, {0}, {0}, {2}, {1}); }

/// Rows [batch, rows, columns] with the one that has the largest first element exchanged with the first, and the sign
/// of the exchange, [batch].
std::pair<Value, Value> withPivotFirst(Build &b, Value rows) {
  const int64_t batch = shapeOf(rows)[0], count = shapeOf(rows)[1];
  auto places = RankedTensorType::get({batch, count}, b.builder.getI64Type());
  Value first = b.unary<AbsOp>(elementAlong(b, rows, 2, 0));
  Value best = ArgmaxOp::create(b.builder, b.loc, RankedTensorType::get({batch}, b.builder.getI64Type()), first, 1);
  Value wide = b.broadcast(best, {batch, count}, {0}), place = b.iota(places, 1), zero = b.splatLike(place, 0);
  Value order = b.select(b.compare(CompareDirection::Eq, place, zero), wide,
                         b.select(b.compare(CompareDirection::Eq, place, wide), zero, place));
  auto type = RankedTensorType::get({batch}, tensorType(rows).getElementType());
  Value sign = b.select(compareWith(b, CompareDirection::Eq, best, 0), b.splat(type, 1), b.splat(type, -1));
  return {pick(b, rows, order), sign};
}
} // namespace

Eliminated eliminate(Build &b, Value matrix, Value right) {
  const int64_t batch = shapeOf(matrix)[0], size = shapeOf(matrix)[1], columns = right ? shapeOf(right)[2] : 0;
  Eliminated made;
  made.sign = b.splat(RankedTensorType::get({batch}, tensorType(matrix).getElementType()), 1);
  Value rest = right ? b.concat({matrix, right}, 2) : matrix;
  for (int64_t k = 0; k < size; ++k) {
    const int64_t left = size - k, width = left + columns;
    if (left > 1) {
      auto [ordered, sign] = withPivotFirst(b, rest);
      rest = ordered;
      made.sign = b.mul(made.sign, sign);
    }
    Value row = elementAlong(b, rest, 1, 0);
    made.rows.push_back(sliceAlong(b, row, 1, 0, left));
    if (right)
      made.right.push_back(sliceAlong(b, row, 1, left, width));
    if (left == 1)
      break;
    // Under a pivot of 0 all elements are 0.
    Value pivot = elementAlong(b, row, 1, 0), one = b.splatLike(pivot, 1);
    pivot = b.select(compareWith(b, CompareDirection::Eq, pivot, 0), one, pivot);
    Value below = sliceAlong(b, rest, 1, 1, left);
    Value factors = b.div(elementAlong(b, below, 2, 0), b.broadcast(pivot, {batch, left - 1}, {0}));
    const SmallVector<int64_t> shape = {batch, left - 1, width - 1};
    Value taken =
        b.mul(b.broadcast(factors, shape, {0, 1}), b.broadcast(sliceAlong(b, row, 1, 1, width), shape, {0, 2}));
    rest = b.sub(sliceAlong(b, below, 2, 1, width), taken);
  }
  return made;
}

Value pivotsOf(Build &b, const Eliminated &of) {
  SmallVector<Value> pivots;
  for (Value row : of.rows)
    pivots.push_back(sliceAlong(b, row, 1, 0, 1));
  return b.concat(pivots, 1);
}

Value solve(Build &b, Value matrix, Value right) {
  const int64_t batch = shapeOf(right)[0], columns = shapeOf(right)[2];
  const Eliminated done = eliminate(b, matrix, right);
  Value found; // rows from k + 1 on
  for (size_t k = done.rows.size(); k-- > 0;) {
    Value rest = done.right[k], row = done.rows[k];
    if (found)
      rest = b.sub(rest, b.dot(sliceAlong(b, row, 1, 1, shapeOf(row)[1]), found, {0}, {0}, {1}, {1}));
    Value each = b.div(rest, b.broadcast(elementAlong(b, row, 1, 0), {batch, columns}, {0}));
    each = b.reshape(each, {batch, 1, columns});
    found = found ? b.concat({each, found}, 1) : each;
  }
  return found;
}

Value unitLike(Build &b, Value matrix) {
  auto index = RankedTensorType::get(shapeOf(matrix), b.builder.getI64Type());
  return b.convert(b.compare(CompareDirection::Eq, b.iota(index, 1), b.iota(index, 2)),
                   tensorType(matrix).getElementType());
}

Value matrixExponential(Build &b, Value matrix) {
  constexpr int kHalvings = 12, kDegree = 18, kBlock = 4;
  const double most = tensorType(matrix).getElementType().isF64() ? 1.09 : 3.01; // of degree 18 (Bader et al. 2019)
  Value size =
      StopGradientOp::create(b.builder, b.loc, b.reduce(ReduceKind::Max, b.sum(b.unary<AbsOp>(matrix), {1}), {1}));
  auto wide = [&](Value x) { return b.broadcast(x, shapeOf(matrix), {0}); };
  Value one = b.splatLike(size, 1), factor = one;
  SmallVector<Value> isHalved; // each once more
  for (int i = 0; i <= kHalvings; ++i)
    isHalved.push_back(compareWith(b, CompareDirection::Gt, size, most * static_cast<double>(1 << i)));
  for (int i = 0; i < kHalvings; ++i)
    factor = b.mul(factor, b.select(isHalved[i], b.splatLike(one, 0.5), one));
  factor = b.select(isHalved[kHalvings], b.splatLike(one, std::numeric_limits<double>::quiet_NaN()), factor);
  // Powers up to the fourth, and the polynomial in them.
  SmallVector<Value> powers = {unitLike(b, matrix), b.mul(matrix, wide(factor))};
  for (int i = 2; i <= kBlock; ++i)
    powers.push_back(multiply(b, powers.back(), powers[1]));
  double coefficients[kDegree + 1] = {1};
  for (int i = 1; i <= kDegree; ++i)
    coefficients[i] = coefficients[i - 1] / i;
  Value sum;
  for (int block = kDegree / kBlock; block >= 0; --block) {
    sum = sum ? multiply(b, powers[kBlock], sum) : sum;
    for (int i = 0; i < kBlock && block * kBlock + i <= kDegree; ++i) {
      Value term = b.scale(powers[i], coefficients[block * kBlock + i]);
      sum = sum ? b.add(sum, term) : term;
    }
  }
  for (int i = kHalvings - 1; i >= 0; --i)
    sum = b.select(wide(isHalved[i]), multiply(b, sum, sum), sum);
  return sum;
}

} // namespace tessera::frontend
