//===- Fp8Columns.cpp - columns of weights in a flat unit -----------------===//
//
// See Fp8Columns.h. In the rows of a shard, cut to the length of a weight's row, a column stands at one place, which is
// turned by where the shard begins in the weight.
//
// Blocks of rows are as long as groups of such rows, but a shard may begin in the middle of one. Then each group has
// the end of one block and the beginning of the next, and a shard meets a block more than it has groups.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Fp8Columns.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

/// Places are counted in 32 bits where that is enough: divisions by constants are vectorised then. Up to a block of a
/// weight, as long as the unit at most, is added to them.
static Type placeType(Build &b, int64_t elements) {
  return elements < std::numeric_limits<int32_t>::max() / 2 ? b.builder.getI32Type() : b.builder.getI64Type();
}

static bool areWhole(ArrayRef<ColumnWeight> weights) {
  return llvm::all_of(weights, [](const ColumnWeight &weight) { return weight.blocks() == 1; });
}

UnitShards::UnitShards(Build &b, Value unit, int64_t count)
    : shards(count), elements(tensorType(unit).getNumElements() / count) {
  rows = b.reshape(unit, {shards, elements});
  auto type = RankedTensorType::get({shards, elements}, placeType(b, shards * elements));
  places = b.add(b.scale(b.iota(type, 0), static_cast<double>(elements)), b.iota(type, 1));
}

Value UnitShards::number(Build &b, int64_t value) const {
  RankedTensorType type = tensorType(places);
  return b.constant(DenseElementsAttr::get(type, b.builder.getIntegerAttr(type.getElementType(), value)));
}

Value UnitShards::quotient(Build &b, Value x, int64_t divisor) {
  return b.div(x, b.splatLike(x, static_cast<double>(divisor)));
}

Value UnitShards::modulo(Build &b, Value x, int64_t divisor) {
  return b.sub(x, b.scale(quotient(b, x, divisor), static_cast<double>(divisor)));
}

Value UnitShards::isIn(Build &b, const ColumnWeight &weight) const {
  Value from = b.compare(CompareDirection::Ge, places, number(b, weight.offset));
  Value to = b.compare(CompareDirection::Lt, places, number(b, weight.end()));
  return b.mul(from, to);
}

SmallVector<ColumnWeight> joinBlocks(SmallVector<ColumnWeight> weights) {
  if (areWhole(weights))
    return weights;
  llvm::sort(weights, [](const ColumnWeight &x, const ColumnWeight &y) { return x.offset < y.offset; });
  SmallVector<ColumnWeight> joined;
  for (const ColumnWeight &weight : weights) {
    if (!joined.empty() && joined.back().end() == weight.offset && joined.back().columns == weight.columns)
      joined.back().rows += weight.rows;
    else
      joined.push_back(weight);
  }
  return joined;
}

Value UnitShards::magnitudes(Build &b, const ColumnWeight &weight, int64_t length) {
  Value values = b.unary<AbsOp>(rows);
  values = b.select(isIn(b, weight), values, b.splatLike(values, 0.0));
  const int64_t padding = static_cast<int64_t>(llvm::alignTo(elements, length)) - elements;
  return padding == 0 ? values : b.pad(values, {0, 0}, {0, padding});
}

SmallVector<Value> UnitShards::maxima(Build &b, ArrayRef<ColumnWeight> weights) {
  return areWhole(weights) ? maximaOfColumns(b, weights) : maximaOfBlocks(b, weights);
}

// --- Whole columns ---------------------------------------------------------------

SmallVector<Value> UnitShards::maximaOfColumns(Build &b, ArrayRef<ColumnWeight> weights) {
  SmallVector<Value> turned, maxima;
  int64_t width = 0, begin = 0;
  for (const ColumnWeight &weight : weights) {
    const int64_t columns = weight.columns;
    const int64_t count = static_cast<int64_t>(llvm::divideCeil(elements, columns));
    Value parts = b.reshape(magnitudes(b, weight, columns), {shards, count, columns});
    turned.push_back(b.reduce(ReduceKind::Max, parts, {1}));
    width += columns;
  }
  Value table = b.reshape(turned.size() == 1 ? turned.front() : b.concat(turned, 1), {shards * width});
  for (const ColumnWeight &weight : weights) {
    // Shard p begins at place p * elements, which is of column (p * elements - offset) modulo columns.
    const int64_t columns = weight.columns;
    auto type = RankedTensorType::get({shards, columns}, placeType(b, shards * std::max(elements, width)));
    const int64_t shift = static_cast<int64_t>(llvm::alignTo(shards * elements, columns)) + weight.offset % columns;
    Value first = b.scale(b.iota(type, 0), static_cast<double>(elements % columns));
    Value at = modulo(b, b.add(b.sub(b.iota(type, 1), first), b.splat(type, static_cast<double>(shift))), columns);
    Value row = b.scale(b.iota(type, 0), static_cast<double>(width));
    Value place = b.add(b.add(row, at), b.splat(type, static_cast<double>(begin)));
    maxima.push_back(b.reduce(ReduceKind::Max, b.gatherRows(table, place), {0}));
    begin += columns;
  }
  return maxima;
}

// --- Blocks of rows --------------------------------------------------------------

UnitShards::Cut::Cut(const ColumnWeight &weight, int64_t elements)
    : weight(weight), length(weight.blockRows * weight.columns),
      shift(static_cast<int64_t>(llvm::alignTo(weight.offset, length)) - weight.offset),
      isEven(shift == 0 && elements % length == 0), groups(static_cast<int64_t>(llvm::divideCeil(elements, length))) {}

/// `x * factor + term`.
static Value linear(Build &b, Value x, int64_t factor, int64_t term) {
  return b.add(b.scale(x, static_cast<double>(factor)), b.splatLike(x, static_cast<double>(term)));
}

Value UnitShards::turnedMaxima(Build &b, const Cut &cut) {
  const int64_t columns = cut.weight.columns, blockRows = cut.weight.blockRows;
  Value parts = b.reshape(magnitudes(b, cut.weight, cut.length), {shards, cut.groups, blockRows, columns});
  if (cut.isEven)
    return b.reduce(ReduceKind::Max, parts, {2});
  // In each group comes the end of one block, as long as what the shard has of its first one, then the beginning of the
  // next.
  Type integer = tensorType(places).getElementType();
  auto type = RankedTensorType::get(shapeOf(parts), integer);
  Value first = linear(b, b.iota(RankedTensorType::get({shards}, integer), 0), elements, cut.shift);
  Value begun = modulo(b, first, cut.length);
  Value ending = b.sub(b.splatLike(begun, static_cast<double>(cut.length)), begun);
  Value at = b.add(b.scale(b.iota(type, 2), static_cast<double>(columns)), b.iota(type, 3));
  Value isEnd = b.compare(CompareDirection::Lt, at, b.broadcast(ending, type.getShape(), {0}));
  Value zeros = b.splatLike(parts, 0.0);
  Value ends = b.reduce(ReduceKind::Max, b.select(isEnd, parts, zeros), {2});
  Value begins = b.reduce(ReduceKind::Max, b.select(isEnd, zeros, parts), {2});
  return b.max(b.pad(ends, {0, 0, 0}, {0, 1, 0}), b.pad(begins, {0, 1, 0}, {0, 0, 0}));
}

UnitShards::Lookup UnitShards::lookUp(Build &b, int64_t width, const Cut &cut) {
  const ColumnWeight &weight = cut.weight;
  const int64_t columns = weight.columns;
  // A block lies in one shard, or begins in one and goes on in the next ones.
  const int64_t meeting = cut.isEven ? 1 : std::min<int64_t>(shards, llvm::divideCeil(cut.length, elements) + 1);
  auto type =
      RankedTensorType::get({meeting, weight.blocks(), columns}, placeType(b, shards * std::max(elements, width)));
  Value block = b.iota(type, 1), column = b.iota(type, 2);
  Value shard = b.add(quotient(b, linear(b, block, cut.length, weight.offset), elements), b.iota(type, 0));
  // Where there are no more, the last one again.
  Value last = b.splat(type, static_cast<double>(shards - 1));
  shard = b.select(b.compare(CompareDirection::Lt, shard, last), shard, last);
  Value first = linear(b, shard, elements, cut.shift); // of the shard
  // How many blocks the shard began before this one; a shard behind the block has none of it.
  Value skipped = quotient(b, first, cut.length);
  Value at = b.sub(linear(b, block, 1, (weight.offset + cut.shift) / cut.length), skipped);
  Value meets = b.compare(CompareDirection::Ge, at, b.splatLike(at, 0.0));
  Value turned = modulo(b, b.sub(linear(b, column, 1, columns), modulo(b, first, columns)), columns);
  Value place = b.add(b.add(linear(b, shard, width, cut.begin), b.scale(at, static_cast<double>(columns))), turned);
  return {b.select(meets, place, b.splatLike(place, 0.0)), meets};
}

SmallVector<Value> UnitShards::maximaOfBlocks(Build &b, ArrayRef<ColumnWeight> weights) {
  // A shard has a maximum for `blockRows` elements, so that a part of it has about the same part of its maxima: those
  // of one weight lie where the others have zeros, and all are one table. A weight that another one follows ends with a
  // block, so that its maxima end too late by what the shard misses of its first block: less than one for each column.
  SmallVector<Cut> cuts;
  int64_t width = 0, begin = 0;
  for (const ColumnWeight &weight : weights) {
    Cut cut(weight, elements);
    cut.begin = begin;
    width = std::max(width, cut.end());
    begin += cut.isEven ? 0 : weight.columns;
    cuts.push_back(cut);
  }
  Value table;
  for (const Cut &cut : cuts) {
    Value own = b.reshape(turnedMaxima(b, cut), {shards, cut.end() - cut.begin});
    if (cut.end() - cut.begin != width)
      own = b.pad(own, {0, cut.begin}, {0, width - cut.end()});
    table = table ? b.max(table, own) : own;
  }
  // All is looked up at once: alone, a small part of the table would not be worth gathering it.
  SmallVector<Lookup> lookups;
  SmallVector<Value> at, maxima;
  for (const Cut &cut : cuts) {
    lookups.push_back(lookUp(b, width, cut));
    at.push_back(b.reshape(lookups.back().places, {tensorType(lookups.back().places).getNumElements()}));
  }
  Value found = b.gatherRows(b.reshape(table, {shards * width}), at.size() == 1 ? at.front() : b.concat(at, 0));
  begin = 0;
  for (const Lookup &lookup : lookups) {
    const ArrayRef<int64_t> shape = shapeOf(lookup.places);
    const int64_t end = begin + tensorType(lookup.places).getNumElements();
    Value own = b.reshape(b.slice(found, {begin}, {end}), shape);
    own = b.select(lookup.meets, own, b.splatLike(own, 0.0));
    maxima.push_back(b.reshape(shape[0] == 1 ? own : b.reduce(ReduceKind::Max, own, {0}), {shape[1] * shape[2]}));
    begin = end;
  }
  return maxima;
}

// --- Scales ----------------------------------------------------------------------

Value UnitShards::scalesOfElements(Build &b, ArrayRef<ColumnWeight> weights, ArrayRef<Value> scales) {
  SmallVector<Value> table(scales);
  int64_t begin = 0;
  for (const ColumnWeight &weight : weights)
    begin += weight.scales();
  table.push_back(b.splat(RankedTensorType::get({1}, b.builder.getF32Type()), 1.0));
  Value index = number(b, begin);
  for (const ColumnWeight &weight : llvm::reverse(weights)) {
    begin -= weight.scales();
    // In front of the weight the difference is negative, and not used.
    Value place = b.sub(places, number(b, weight.offset));
    Value own = modulo(b, place, weight.columns);
    if (weight.blocks() != 1) {
      Value block = quotient(b, place, weight.blockRows * weight.columns);
      own = b.add(own, b.mul(block, number(b, weight.columns)));
    }
    index = b.select(isIn(b, weight), b.add(own, number(b, begin)), index);
  }
  return b.gatherRows(b.concat(table, 0), index);
}

} // namespace tessera::precision
