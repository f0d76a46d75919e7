//===- GpuTiles.cpp - kernels that transpose through shared memory --------===//
//
// A block takes a tile of a matrix: columns are the innermost digit, and rows the digit that is innermost in inputs and
// results of the other orientation. Such inputs are read along the rows' digit into shared memory, elements are
// computed along the columns, and results of the other orientation go through shared memory too.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/TilePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

static constexpr int64_t kTileThreads = 256;
/// Bytes and elements of one access along the rows' digit.
static constexpr int64_t kRowBytes = 16, kRowWidth = 8;

static int64_t tilesOf(int64_t size) { return (size + kTile - 1) / kTile; }

GpuKernelEmitter::Tile GpuKernelEmitter::makeTile(Type element) {
  const int64_t pitch = tilePitch(element);
  return {element, shared(scalarType(element), kTile * pitch), pitch};
}

/// Elements that a thread takes together along the rows' digit.
int64_t GpuKernelEmitter::crossWidth(Type element) const {
  int64_t width = std::min(kRowWidth, kRowBytes / bytesOf(element));
  while (origin.rows % width != 0)
    width /= 2;
  return width;
}

/// Calls `body` with each vector of `width` elements that the thread takes. Vectors that lie along the rows' digit have
/// a column as their line, others a row.
void GpuKernelEmitter::forTileVectors(int64_t width, bool alongRow,
                                      llvm::function_ref<void(const TileVector &, unsigned)> body) {
  const int64_t perLine = kTile / width, rounds = kTile * perLine / kTileThreads;
  for (int64_t round = 0; round < rounds && !evaluator.seen.failed(); ++round) {
    OpBuilder &b = at(depth());
    Value number = round == 0 ? threadX : arith::AddIOp::create(b, loc, threadX, i32(round * kTileThreads)).getResult();
    Value inLine = arith::RemUIOp::create(b, loc, number, i32(perLine));
    TileVector vector{arith::DivUIOp::create(b, loc, number, i32(perLine)),
                      arith::MulIOp::create(b, loc, inLine, i32(width)), Value()};
    auto check = [&](Value first, Value own, int64_t count) {
      if (count % kTile == 0)
        return;
      Value place = arith::AddIOp::create(b, loc, first, own);
      Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, i32(count));
      vector.isInside = vector.isInside ? arith::AndIOp::create(b, loc, vector.isInside, fits).getResult() : fits;
    };
    check(origin.row, alongRow ? vector.place : vector.line, origin.rows);
    check(origin.column, alongRow ? vector.line : vector.place, origin.columns);
    if (vector.isInside)
      openGuard(vector.isInside);
    body(vector, round);
    if (vector.isInside)
      closeGuard();
  }
}

/// Place `place` of line `line`, `lines` further down.
Value GpuKernelEmitter::tilePlace(const Tile &tile, Value line, Value place, int64_t lines) {
  OpBuilder &b = at(depth());
  Value start = wide(arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, line, i32(tile.pitch)), place));
  return lines == 0 ? start : arith::AddIOp::create(at(depth()), loc, start, i64(lines * tile.pitch)).getResult();
}

/// Where a tensor has the first element of a vector along the rows' digit; `index` is that of any element.
Value GpuKernelEmitter::rowPlace(const Index &index, const TileVector &vector) {
  const unsigned last = plan.digits.size() - 1, column = unrolled.empty() ? last : last - 1;
  Index outside = Index::constant(index.offset);
  int64_t stride = 0;
  for (const Index::Term &term : index.terms) {
    if (term.digit == last)
      stride = term.coefficient;
    else if (term.digit != column && term.digit != plan.tiles->row)
      outside.terms.push_back(term);
  }
  unsigned level = 0;
  Value start = evaluator.materialize(outside, level);
  Value columnNumber = wide(arith::AddIOp::create(at(depth()), loc, origin.column, vector.line));
  Value rowNumber = wide(arith::AddIOp::create(at(depth()), loc, origin.row, vector.place));
  Value by = i64(stride);
  OpBuilder &b = at(depth());
  Value line = arith::AddIOp::create(b, loc, start, arith::MulIOp::create(b, loc, columnNumber, by));
  return arith::AddIOp::create(b, loc, line, rowNumber);
}

/// Lines of the tile are columns.
void GpuKernelEmitter::loadTile(const TileRead &read, const Tile &tile) {
  struct Loaded {
    Value start;
    Values values;
  };
  SmallVector<Loaded> loaded;
  auto keep = [&] {
    for (const Loaded &vector : std::exchange(loaded, {}))
      for (auto [i, value] : llvm::enumerate(vector.values)) {
        Value place = i == 0 ? vector.start : arith::AddIOp::create(at(depth()), loc, vector.start, i64(i)).getResult();
        storeTo(tile.array, tile.element, value, place);
      }
  };
  const int64_t width = crossWidth(tile.element);
  forTileVectors(width, /*alongRow=*/true, [&](const TileVector &vector, unsigned) {
    Value first = rowPlace(read.index, vector);
    Values values;
    for (int64_t i = 0; i < width; ++i) {
      Value place = i == 0 ? first : arith::AddIOp::create(at(depth()), loc, first, i64(i)).getResult();
      values.push_back(load(read.input, place, depth()));
    }
    loaded.push_back({tilePlace(tile, vector.line, vector.place, 0), std::move(values)});
    // What is always inside is loaded before the first of it is stored.
    if (vector.isInside)
      keep();
  });
  keep();
}

std::optional<Scalar> GpuKernelEmitter::held(Value input, const Index &linear) {
  for (size_t number = 0; number < readTiles.size(); ++number) {
    const TileRead &read = plan.tiles->reads[number];
    if (read.input != input || !(space.substitute(read.index) == linear))
      continue;
    const Tile &tile = readTiles[number];
    const int64_t lane = unrolled.empty() ? 0 : space.digits[unrolled.back()].known.value_or(0);
    Value place = tilePlace(tile, ownVector.place, ownVector.line, lane);
    return Scalar{loadFrom(tile.array, tile.element, place, depth()), depth()};
  }
  return std::nullopt;
}

/// Computes the elements of the tile along its columns; `results` are those of the other orientation, with rows as
/// lines.
void GpuKernelEmitter::computeTile(ArrayRef<Tile> results) {
  const unsigned column = plan.digits.size() - 1 - unrolled.size();
  const int64_t width = product(unrolled);
  space.digits[plan.tiles->row].varies = space.digits[column].varies = true;
  forTileVectors(width, /*alongRow=*/false, [&](const TileVector &vector, unsigned round) {
    ownVector = vector;
    evaluator.instance = round + 1;
    Value columnNumber = arith::AddIOp::create(at(depth()), loc, origin.column, vector.place);
    space.digits[plan.tiles->row].value = wide(arith::AddIOp::create(at(depth()), loc, origin.row, vector.line));
    space.digits[column].value = wide(arith::DivUIOp::create(at(depth()), loc, columnNumber, i32(width)));
    space.digits[plan.tiles->row].level = space.digits[column].level = depth();
    Values none;
    SmallVector<Pending> pending, direct;
    emitVector(0, 0, none, pending);
    if (evaluator.seen.failed())
      return;
    SmallVector<int64_t> lanes(results.size());
    for (const Pending &one : pending) {
      auto tiled = llvm::find(plan.tiles->results, one.output);
      if (tiled == plan.tiles->results.end()) {
        direct.push_back(one);
        continue;
      }
      const size_t number = tiled - plan.tiles->results.begin();
      Value place = tilePlace(results[number], vector.line, vector.place, 0);
      if (const int64_t lane = lanes[number]++)
        place = arith::AddIOp::create(at(depth()), loc, place, i64(lane));
      storeTo(results[number].array, results[number].element, one.value.value, place);
    }
    storeVector(direct);
  });
}

void GpuKernelEmitter::storeTile(size_t result, const Tile &tile) {
  const int64_t width = crossWidth(tile.element);
  forTileVectors(width, /*alongRow=*/true, [&](const TileVector &vector, unsigned) {
    Values values;
    for (int64_t i = 0; i < width; ++i)
      values.push_back(loadFrom(tile.array, tile.element, tilePlace(tile, vector.place, vector.line, i), depth()));
    Value first = rowPlace(plan.outputs[result].position, vector);
    for (int64_t i = 0; i < width; ++i) {
      Value place = i == 0 ? first : arith::AddIOp::create(at(depth()), loc, first, i64(i)).getResult();
      storeTo(outputPointers[result], tile.element, values[i], place);
    }
  });
}

void GpuKernelEmitter::emitTiles() {
  SmallVector<unsigned> outside;
  for (auto [number, digit] : llvm::enumerate(plan.digits))
    if (digit.unroll)
      unrolled.push_back(number);
    else if (number != plan.tiles->row)
      outside.push_back(number);
  const unsigned column = outside.pop_back_val();
  origin.rows = plan.digits[plan.tiles->row].size;
  origin.columns = plan.digits[column].size * product(unrolled);
  const int64_t down = tilesOf(origin.rows), across = tilesOf(origin.columns);
  launch.threadsX = kTileThreads;
  launch.blocks = product(outside) * down * across;
  OpBuilder &b = at(0);
  Value tileNumber = arith::DivUIOp::create(b, loc, block, i32(across));
  origin.column = arith::MulIOp::create(b, loc, arith::RemUIOp::create(b, loc, block, i32(across)), i32(kTile));
  origin.row = arith::MulIOp::create(b, loc, arith::RemUIOp::create(b, loc, tileNumber, i32(down)), i32(kTile));
  setDigits(outside, arith::DivUIOp::create(at(0), loc, tileNumber, i32(down)));

  for (const TileRead &read : plan.tiles->reads)
    readTiles.push_back(makeTile(tensorType(read.input).getElementType()));
  for (auto [read, tile] : llvm::zip_equal(plan.tiles->reads, readTiles))
    loadTile(read, tile);
  if (!readTiles.empty())
    barrier();
  SmallVector<Tile> results;
  for (size_t result : plan.tiles->results)
    results.push_back(makeTile(tensorType(plan.outputs[result].value).getElementType()));
  computeTile(results);
  if (results.empty() || evaluator.seen.failed())
    return;
  barrier();
  for (auto [result, tile] : llvm::zip_equal(plan.tiles->results, results))
    storeTile(result, tile);
}

} // namespace tessera::codegen
