//===- Fp8Columns.cpp - columns of weights in a flat unit -----------------===//
//
// See Fp8Columns.h. In the rows of a shard, cut to the length of a weight's row, a column stands at one place, which is
// turned by where the shard begins in the weight.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Fp8Columns.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

/// Places are counted in 32 bits where that is enough: divisions by constants are vectorised then.
static Type placeType(Build &b, int64_t elements) {
  return elements < std::numeric_limits<int32_t>::max() / 2 ? b.builder.getI32Type() : b.builder.getI64Type();
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

Value UnitShards::modulo(Build &b, Value x, int64_t divisor) {
  RankedTensorType type = tensorType(x);
  Value by = b.constant(DenseElementsAttr::get(type, b.builder.getIntegerAttr(type.getElementType(), divisor)));
  return b.sub(x, b.mul(b.div(x, by), by));
}

Value UnitShards::isIn(Build &b, const ColumnWeight &weight) const {
  Value from = b.compare(CompareDirection::Ge, places, number(b, weight.offset));
  Value to = b.compare(CompareDirection::Lt, places, number(b, weight.end()));
  return b.mul(from, to);
}

Value UnitShards::turnedMaxima(Build &b, const ColumnWeight &weight) {
  const int64_t columns = weight.columns;
  Value magnitudes = b.unary<AbsOp>(rows);
  magnitudes = b.select(isIn(b, weight), magnitudes, b.splatLike(magnitudes, 0.0));
  const int64_t length = static_cast<int64_t>(llvm::alignTo(elements, columns));
  if (length != elements)
    magnitudes = b.pad(magnitudes, {0, 0}, {0, length - elements});
  return b.reduce(ReduceKind::Max, b.reshape(magnitudes, {shards, length / columns, columns}), {1});
}

SmallVector<Value> UnitShards::columnMaxima(Build &b, ArrayRef<ColumnWeight> weights) {
  SmallVector<Value> turned, maxima;
  int64_t width = 0, begin = 0;
  for (const ColumnWeight &weight : weights) {
    turned.push_back(turnedMaxima(b, weight));
    width += weight.columns;
  }
  Value table = b.reshape(turned.size() == 1 ? turned.front() : b.concat(turned, 1), {shards * width});
  for (const ColumnWeight &weight : weights) {
    // Shard p begins at place p * elements, which is of column (p * elements - offset) modulo columns.
    const int64_t columns = weight.columns;
    auto type = RankedTensorType::get({shards, columns}, tensorType(places).getElementType());
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

Value UnitShards::scalesOfElements(Build &b, ArrayRef<ColumnWeight> weights, ArrayRef<Value> scales) {
  SmallVector<Value> table(scales);
  int64_t begin = 0;
  for (const ColumnWeight &weight : weights)
    begin += weight.columns;
  table.push_back(b.splat(RankedTensorType::get({1}, b.builder.getF32Type()), 1.0));
  Value index = number(b, begin);
  for (const ColumnWeight &weight : llvm::reverse(weights)) {
    begin -= weight.columns;
    // In front of the weight the difference is negative, and not used.
    Value column = modulo(b, b.sub(places, number(b, weight.offset)), weight.columns);
    index = b.select(isIn(b, weight), b.add(column, number(b, begin)), index);
  }
  return b.gatherRows(b.concat(table, 0), index);
}

} // namespace tessera::precision
