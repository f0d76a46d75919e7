//===- GpuBlocks.cpp - kernels that reduce the rows and columns of blocks -===//
//
// What quantises a matrix by blocks, in both orientations. Threads hold a block's elements in registers: they reduce
// rows over neighbouring lanes, columns over their own rows and then through shared memory, and compute each element
// from what they hold. Results of the other orientation go through shared memory.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/BlockPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Bytes and elements of one access across the rows.
static constexpr int64_t kAcrossBytes = 16, kAcrossWidth = 8;

/// Joins what threads have of the columns of their rows, `lines` for each column; `stores`: who stores a line, null for
/// all threads.
void GpuKernelEmitter::exchangeColumns(Accumulator &accumulator, Value line, int64_t lines, Value firstColumn,
                                       Value stores) {
  const Type type = accumulator.types.front();
  Value array = shared(type, lines * kBlockColumns);
  auto placeOf = [&](Value line, Value column) {
    return wide(arith::AddIOp::create(at(depth()), loc,
                                      arith::MulIOp::create(at(depth()), loc, line, i32(kBlockColumns)), column));
  };
  auto next = [&](Value place, int64_t offset) {
    return offset == 0 ? place : arith::AddIOp::create(at(depth()), loc, place, i64(offset)).getResult();
  };
  if (stores)
    openGuard(stores);
  Value own = placeOf(line, firstColumn);
  for (auto [number, value] : llvm::enumerate(accumulator.values))
    storeTo(array, type, value, next(own, number));
  if (stores)
    closeGuard();
  barrier();
  openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, threadX, i32(kBlockColumns)));
  Value column = wide(threadX), joined;
  for (int64_t number = 0; number < lines; ++number) {
    Value part = loadFrom(array, type, next(column, number * kBlockColumns), depth());
    joined = joined ? combinePartial(at(depth()), loc, accumulator.reduction->op, joined, part).front() : part;
  }
  storeTo(array, type, joined, column);
  closeGuard();
  barrier();
  Value first = wide(firstColumn);
  for (auto [number, value] : llvm::enumerate(accumulator.values))
    value = loadFrom(array, type, next(first, number), depth());
}

/// `setColumns` sets the digits of the columns from the place in the tile.
void GpuKernelEmitter::storeAcross(size_t result, const Tile &tile, function_ref<void(Value)> setColumns) {
  const int64_t width = std::min(kAcrossWidth, kAcrossBytes / bytesOf(tile.element));
  const int64_t perColumn = product(plan.walked) / width;
  for (int64_t round = 0; round < kBlockColumns * perColumn / kBlockThreads; ++round) {
    OpBuilder &b = at(depth());
    Value number =
        round == 0 ? threadX : arith::AddIOp::create(b, loc, threadX, i32(round * kBlockThreads)).getResult();
    Value column = arith::DivUIOp::create(b, loc, number, i32(perColumn));
    Value row = arith::MulIOp::create(b, loc, arith::RemUIOp::create(b, loc, number, i32(perColumn)), i32(width));
    Values values;
    for (int64_t i = 0; i < width; ++i)
      values.push_back(loadFrom(tile.array, tile.element, tilePlace(tile, row, column, i), depth()));
    setColumns(column);
    setDigits(plan.walked, row);
    unsigned level = 0;
    Value first = evaluator.materialize(plan.outputs[result].position, level);
    for (int64_t i = 0; i < width; ++i) {
      Value place = i == 0 ? first : arith::AddIOp::create(at(depth()), loc, first, i64(i)).getResult();
      storeTo(outputPointers[result], tile.element, values[i], place);
    }
  }
}

void GpuKernelEmitter::emitBlocks() {
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  SmallVector<unsigned> down, across;
  for (unsigned digit : plan.outer)
    (digit < plan.walked.front() ? down : across).push_back(digit);
  const int64_t width = product(unrolled), blockWidth = product(plan.inner), height = product(plan.walked);
  // Threads of a row, and of a row of one block; rows that are taken at once.
  const int64_t perRow = kBlockColumns / width, perBlock = blockWidth / width, rowsAtOnce = kBlockThreads / perRow;
  const int64_t blocksAcross = kBlockColumns / blockWidth, tilesAcross = product(across) / blocksAcross;
  heldRounds = height / rowsAtOnce;
  launch.threadsX = kBlockThreads;
  launch.blocks = product(down) * tilesAcross;
  launch.blocksAtOnce = 2;
  makeAccumulators();

  OpBuilder &b = at(0);
  setDigits(down, arith::DivUIOp::create(b, loc, block, i32(tilesAcross)));
  Value firstBlock =
      arith::MulIOp::create(at(0), loc, arith::RemUIOp::create(at(0), loc, block, i32(tilesAcross)), i32(blocksAcross));
  auto setBlock = [&](Value number) { setDigits(across, arith::AddIOp::create(at(depth()), loc, firstBlock, number)); };
  Value row = arith::DivUIOp::create(at(0), loc, threadX, i32(perRow));
  Value vector = arith::RemUIOp::create(at(0), loc, threadX, i32(perRow));
  Value firstColumn = arith::MulIOp::create(at(0), loc, vector, i32(width));
  setBlock(arith::DivUIOp::create(at(0), loc, vector, i32(perBlock)));
  Value inBlock = arith::RemUIOp::create(at(0), loc, vector, i32(perBlock));
  setDigits(strided, inBlock);
  for (unsigned digit : plan.walked)
    space.digits[digit].varies = true;
  Values rows;
  for (size_t round = 0; round < heldRounds; ++round)
    rows.push_back(round == 0 ? row : arith::AddIOp::create(at(0), loc, row, i32(round * rowsAtOnce)).getResult());
  auto forRounds = [&](function_ref<void(size_t)> body) {
    for (size_t round = 0; round < heldRounds && !evaluator.seen.failed(); ++round) {
      evaluator.instance = round + 1;
      setDigits(plan.walked, rows[round]);
      body(round);
    }
    evaluator.instance = 0;
  };

  pass = 0;
  Values carried = carriedOf(0);
  forRounds([&](size_t) {
    SmallVector<Pending> pending;
    emitVector(0, 0, carried, pending);
    storeVector(pending);
  });
  if (evaluator.seen.failed())
    return;
  size_t next = 0;
  for (Accumulator &accumulator : accumulators) {
    const size_t count = slots(accumulator);
    accumulator.values.assign(carried.begin() + next, carried.begin() + next + count);
    next += count;
    const bool ofColumns = accumulator.reduction->ofColumns;
    for (Value &value : accumulator.values)
      for (int64_t lanes = ofColumns ? perRow : 1, end = ofColumns ? kWarp : perBlock; lanes < end; lanes *= 2)
        value = combinePartial(at(0), loc, accumulator.reduction->op, value, shuffle(value, lanes)).front();
    if (!ofColumns)
      continue;
    const int64_t threadsOfLine = std::max(perRow, kWarp);
    Value line = arith::DivUIOp::create(at(0), loc, threadX, i32(threadsOfLine)), stores;
    if (perRow < kWarp) {
      Value lane = arith::RemUIOp::create(at(0), loc, threadX, i32(kWarp));
      stores = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, lane, i32(perRow));
    }
    exchangeColumns(accumulator, line, kBlockThreads / threadsOfLine, firstColumn, stores);
  }

  // Results of one element a row of a block, or a column.
  SmallVector<SmallVector<Pending>> ofRows(heldRounds);
  SmallVector<Pending> ofColumns;
  auto evaluateAll = [&](OutputExtent extent, SmallVectorImpl<Pending> &pending) {
    for (auto [number, output] : llvm::enumerate(plan.outputs))
      if (output.extent == extent && !evaluator.seen.failed())
        pending.push_back(
            {number, evaluator.evaluate(output.value, output.position), space.substitute(output.position)});
  };
  forRounds([&](size_t round) { evaluateAll(OutputExtent::Row, ofRows[round]); });
  for (int64_t position = 0; position < width; ++position) {
    if (!unrolled.empty())
      space.digits[unrolled.front()].known = position;
    evaluateAll(OutputExtent::Column, ofColumns);
  }
  if (!unrolled.empty())
    space.digits[unrolled.front()].known.reset();
  if (evaluator.seen.failed())
    return;
  if (!ofRows.front().empty()) {
    openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::eq, inBlock, i32(0)));
    forRounds([&](size_t round) { storeVector(ofRows[round]); });
    closeGuard();
  }
  if (!ofColumns.empty()) {
    openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::eq, row, i32(0)));
    storeVector(ofColumns);
    closeGuard();
  }
  if (plan.passes < 2)
    return;

  pass = 1;
  SmallVector<std::optional<Tile>> tiles(plan.outputs.size());
  for (auto [tile, output] : llvm::zip_equal(tiles, plan.outputs)) {
    if (!output.isAcross)
      continue;
    Type element = tensorType(output.value).getElementType();
    tile = Tile{element, shared(scalarType(element), height * kBlockPitch), kBlockPitch};
  }
  forRounds([&](size_t round) {
    Values none;
    SmallVector<Pending> pending, direct;
    emitVector(1, 0, none, pending);
    if (evaluator.seen.failed())
      return;
    SmallVector<int64_t> lanes(plan.outputs.size());
    for (const Pending &one : pending) {
      const std::optional<Tile> &tile = tiles[one.output];
      if (!tile) {
        direct.push_back(one);
        continue;
      }
      Value place = tilePlace(*tile, rows[round], firstColumn, 0);
      if (const int64_t lane = lanes[one.output]++)
        place = arith::AddIOp::create(at(depth()), loc, place, i64(lane));
      storeTo(tile->array, tile->element, one.value.value, place);
    }
    storeVector(direct);
  });
  if (evaluator.seen.failed() || llvm::none_of(tiles, [](const auto &tile) { return tile.has_value(); }))
    return;
  barrier();
  for (auto [number, tile] : llvm::enumerate(tiles))
    if (tile)
      storeAcross(number, *tile, [&](Value column) {
        setBlock(arith::DivUIOp::create(at(depth()), loc, column, i32(blockWidth)));
        setDigits(plan.inner, arith::RemUIOp::create(at(depth()), loc, column, i32(blockWidth)));
      });
}

} // namespace tessera::codegen
