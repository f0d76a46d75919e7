//===- GpuScatter.cpp - rows added to the rows of a table -----------------===//
//
// The gradient of an embedding. A block owns a few rows of the table, one a warp, which sums its row in registers. All
// threads of the block look through the indices once and note in shared memory, a bit an index, which of them are rows
// of the block; each warp then looks at those alone. A row that many indices name (a frequent token) is added up by all
// warps of the block, each for masks of its own, and their sums are joined in a fixed order. No atomics: the order of a
// sum follows from the indices and their positions alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/GpuKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Rows of the table that a block owns: every index is read once by every block.
static constexpr int64_t kTableRows = 16;
/// Masks of 32 indices that a block keeps at a time.
static constexpr int64_t kMasks = 1024;
/// Masks that a warp makes at a time: its loads of indices are under way together.
static constexpr int64_t kMasksAtOnce = 4;
/// Columns that a lane sums at most.
static constexpr int64_t kLaneColumns = 24;
/// Indices of a tile that one warp adds to its row by itself; a row with more of them is that of all warps.
static constexpr int64_t kOwnIndices = 32;
/// Columns of a lane that the warps exchange at a time.
static constexpr int64_t kExchanged = 8;

Value GpuKernelEmitter::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(at(depth()), loc, builder.getI32Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

ValueRange GpuKernelEmitter::openBits(Value bits, ValueRange carried) {
  Values start = {bits};
  llvm::append_range(start, carried);
  SmallVector<Type> types(ValueRange(start).getTypes());
  SmallVector<Location> locations(types.size(), loc);
  Value zero = i32(0);
  auto loop = scf::WhileOp::create(at(depth()), loc, types, start);
  Block *before = builder.createBlock(&loop.getBefore(), {}, types, locations);
  Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, before->getArgument(0), zero);
  scf::ConditionOp::create(builder, loc, any, before->getArguments());
  Block *after = builder.createBlock(&loop.getAfter(), {}, types, locations);
  levels.back().nested = loop;
  levels.push_back({after, nullptr, nullptr, {}});
  return after->getArguments();
}

/// Goes on without the lowest bit.
GpuKernelEmitter::Values GpuKernelEmitter::closeBits(ValueRange carried) {
  Value bits = levels.back().block->getArgument(0);
  auto loop = cast<scf::WhileOp>(levels.back().block->getParentOp());
  Value less = arith::SubIOp::create(at(depth()), loc, bits, i32(1));
  Values next = {arith::AndIOp::create(at(depth()), loc, bits, less)};
  llvm::append_range(next, carried);
  scf::YieldOp::create(at(depth()), loc, next);
  evaluator.forget(depth());
  levels.pop_back();
  levels.back().nested = nullptr;
  return Values(loop.getResults().drop_front());
}

/// Adds up the `parts` of all warps, those of the upper half to those of the lower one until there is one, and the
/// result to the `sums` of the warp that `takes` it, by way of the shared array `exchange`.
GpuKernelEmitter::Values GpuKernelEmitter::joinWarps(Values parts, ValueRange sums, Value takes, Value exchange) {
  const int64_t warps = launch.threadsY, half = static_cast<int64_t>(llvm::PowerOf2Ceil(warps)) / 2;
  Type type = parts.front().getType();
  auto isBelow = [&](int64_t bound) {
    return arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, threadY, i32(bound)).getResult();
  };
  auto slot = [&](Value warp, size_t column) {
    Value line = arith::MulIOp::create(at(depth()), loc, warp, i32(kExchanged * kWarp));
    line = arith::AddIOp::create(at(depth()), loc, line, i32(static_cast<int64_t>(column) * kWarp));
    return wide(arith::AddIOp::create(at(depth()), loc, line, threadX));
  };
  Values next(sums);
  // The last stage hands the result of warp 0 to its warp.
  for (int64_t stage = half; stage >= 0; stage = stage > 1 ? stage / 2 : stage - 1) {
    const bool isLast = stage == 0;
    Value gives =
        isLast ? isBelow(1)
               : arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::uge, threadY, i32(stage)).getResult();
    if (!isLast && stage < half)
      gives = arith::AndIOp::create(at(depth()), loc, gives, isBelow(2 * stage));
    openGuard(gives);
    Value line = isLast ? i32(0) : arith::SubIOp::create(at(depth()), loc, threadY, i32(stage)).getResult();
    for (auto [column, part] : llvm::enumerate(parts))
      storeTo(exchange, type, part, slot(line, column));
    closeGuard();
    barrier();
    Value receives = isLast ? takes : isBelow(std::min(stage, warps - stage));
    line = isLast ? i32(0) : arith::SelectOp::create(at(depth()), loc, receives, threadY, i32(0)).getResult();
    for (size_t column = 0; column < parts.size(); ++column) {
      Value &to = isLast ? next[column] : parts[column];
      Value value = loadFrom(exchange, type, slot(line, column), depth());
      Value sum = emitCombine(at(depth()), loc, train::ReduceKind::Sum, type, to, value);
      to = arith::SelectOp::create(at(depth()), loc, receives, sum, to);
    }
    barrier();
  }
  return next;
}

/// Elements of a row that a lane takes together.
static int64_t rowVector(const KernelBody &body, int64_t columns, int64_t elements) {
  int64_t bytes = 4;
  for (Value value : llvm::concat<const Value>(body.inputs, body.outputs))
    if (elementsOf(shapeOf(value)) >= elements)
      bytes = std::min<int64_t>(bytes, (tensorType(value).getElementTypeBitWidth() + 7) / 8);
  int64_t width = bytes == 4 ? 4 : 8;
  while (columns % width != 0)
    width /= 2;
  return width;
}

void GpuKernelEmitter::emitTable() {
  auto op = cast<train::ScatterAddRowsOp>(plan.outputs.front().value.getDefiningOp());
  Type element = tensorType(op.getResult()).getElementType();
  Type accumulate = scalarType(train::accumulationType(element));
  Type updateType = tensorType(op.getUpdates()).getElementType();
  Type indexType = tensorType(op.getIndices()).getElementType(), i64Type = builder.getI64Type();
  int64_t rows = plan.digits[0].size, columns = plan.digits[1].size, tableRows = plan.digits[2].size;
  int64_t width = rowVector(body, columns, std::min(rows, tableRows) * columns);
  int64_t vectors = (columns + kWarp * width - 1) / (kWarp * width);
  // As equal parts as there can be.
  int64_t most = std::max<int64_t>(1, kLaneColumns / width), parts = (vectors + most - 1) / most;
  int64_t perLane = (vectors + parts - 1) / parts;
  launch.blocksAtOnce = 1;
  launch.threadsX = kWarp;
  launch.threadsY = std::min(kTableRows, tableRows);
  launch.blocks = (tableRows + launch.threadsY - 1) / launch.threadsY * parts;

  auto add = [&](Value a, Value b) { return arith::AddIOp::create(at(depth()), loc, a, b).getResult(); };
  auto times = [&](Value a, int64_t b) { return arith::MulIOp::create(at(depth()), loc, a, i32(b)).getResult(); };
  auto isBelow = [&](Value a, Value b) {
    return arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, a, b).getResult();
  };
  auto choose = [&](Value condition, Value a, Value b) {
    return arith::SelectOp::create(at(depth()), loc, condition, a, b).getResult();
  };
  auto both = [&](Value a, Value b) { return arith::AndIOp::create(at(depth()), loc, a, b).getResult(); };
  threadY = NVVM::ThreadIdYOp::create(at(0), loc, builder.getI32Type());
  Value base = times(arith::DivUIOp::create(at(0), loc, block, i32(parts)), launch.threadsY);
  Value part = arith::RemUIOp::create(at(0), loc, block, i32(parts));
  // A warp without a row, and a lane without columns, goes along for the barriers and votes.
  Value own = add(base, threadY), isRow = isBelow(own, i32(tableRows));
  Value wideOwn = wide(own), wideBase = wide(base);
  space.digits[2].value = wide(choose(isRow, own, i32(tableRows - 1)));
  space.digits[2].level = 0;

  struct Columns {
    Value isInside;
    Values numbers;
  };
  SmallVector<Columns> lanes;
  for (int64_t vector = 0; vector < perLane; ++vector) {
    Value first = times(add(times(add(times(part, perLane), i32(vector)), kWarp), threadX), width);
    Columns lane;
    if (columns % (kWarp * width * perLane) != 0) {
      lane.isInside = isBelow(first, i32(columns));
      first = choose(lane.isInside, first, i32(columns - width));
    }
    for (int64_t i = 0; i < width; ++i)
      lane.numbers.push_back(arith::AddIOp::create(at(0), loc, wide(first), i64(i)));
    lanes.push_back(std::move(lane));
  }
  space.digits[1].level = 0;
  space.digits[1].varies = true;
  // Calls back for each column of the lane.
  auto forColumns = [&](llvm::function_ref<void(size_t)> call) {
    size_t number = 0;
    for (const Columns &lane : lanes)
      for (Value column : lane.numbers) {
        space.digits[1].value = column;
        evaluator.instance = ++number;
        if (!evaluator.seen.failed())
          call(number - 1);
      }
    evaluator.instance = 0;
  };
  /// The index in place `number` of all indices, -1 behind the last.
  auto indexAt = [&](Value number) {
    Value isInside = isBelow(number, i32(rows));
    space.digits[0].value = wide(choose(isInside, number, i32(rows - 1)));
    space.digits[0].level = depth();
    Scalar index = evaluator.evaluate(op.getIndices(), Index::ofDigit(0));
    // What was computed of this row does not hold for another.
    evaluator.forget(depth());
    if (evaluator.seen.failed())
      return number;
    return choose(isInside, emitConvert(at(depth()), loc, index.value, indexType, i64Type), i64(-1));
  };
  auto openFor = [&](Value low, Value high, int64_t step, ValueRange carried) {
    auto loop = scf::ForOp::create(at(depth()), loc, low, high, i32(step), carried);
    levels.back().nested = loop;
    levels.push_back({loop.getBody(), nullptr, nullptr, {}});
    return loop;
  };
  auto isAbove = [&](Value a, int64_t b) {
    return arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ugt, a, i32(b)).getResult();
  };
  auto ones = [&](Value bits) { return LLVM::CtPopOp::create(at(depth()), loc, bits).getResult(); };
  auto lowest = [&](Value bits) {
    return LLVM::CountTrailingZerosOp::create(at(depth()), loc, builder.getI32Type(), bits, /*is_zero_poison=*/true)
        .getResult();
  };

  Values sums;
  forColumns([&](size_t) {
    Scalar initial = evaluator.evaluate(op.getInit(), plan.keptIdentity);
    if (!evaluator.seen.failed())
      sums.push_back(emitConvert(at(depth()), loc, initial.value, element, accumulate));
  });
  if (evaluator.seen.failed())
    return;
  const int64_t warps = launch.threadsY,
                masks = std::min<int64_t>(kMasks, llvm::alignTo((rows + kWarp - 1) / kWarp, kMasksAtOnce));
  const bool isJoint = warps > 1; // whether there are other warps to help with a row
  Type i32Type = builder.getI32Type();
  Value array = shared(i32Type, masks);
  auto tiles = openFor(i32(0), i32(rows), masks * kWarp, sums);
  Value tile = tiles.getInductionVar();
  auto onLaneZero = [&](Value to, Value value, Value slot) {
    openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, threadX, i32(0)));
    storeTo(to, i32Type, value, wide(slot));
    closeGuard();
  };

  auto notes = openFor(times(threadY, kMasksAtOnce), i32(masks), kMasksAtOnce * warps, {i32(0)});
  Values indices;
  for (int64_t number = 0; number < kMasksAtOnce; ++number) {
    Value place = times(add(notes.getInductionVar(), i32(number)), kWarp);
    indices.push_back(indexAt(add(add(tile, place), threadX)));
    if (evaluator.seen.failed())
      return;
  }
  Value noted = notes.getRegionIterArgs()[0];
  for (int64_t number = 0; number < kMasksAtOnce; ++number) {
    Value distance = arith::SubIOp::create(at(depth()), loc, indices[number], wideBase);
    Value isBlocks = both(isBelow(distance, i64(warps)),
                          arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::sge, indices[number], i64(0)));
    Value note = ballot(isBlocks);
    onLaneZero(array, note, add(notes.getInductionVar(), i32(number)));
    noted = add(noted, ones(note));
  }
  closeLoop(noted);

  // Calls back for each 32 indices of the tile of which any is `row`, in the masks from `low` on, with the place of the
  // first of them, a bit for each that is, and what is carried, of which it returns the next.
  using Visit = llvm::function_ref<Values(Value, Value, ValueRange)>;
  auto forIndicesOf = [&](Value row, Value low, Value high, int64_t step, ValueRange carried, Visit visit) {
    auto groups = openFor(low, high, step, carried);
    Value place = add(groups.getInductionVar(), threadX), isMask = isBelow(place, i32(masks));
    Value mask = loadFrom(array, i32Type, wide(choose(isMask, place, i32(0))), depth());
    Value isNoted = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ne, mask, i32(0));
    ValueRange words = openBits(ballot(both(isNoted, isMask)), groups.getRegionIterArgs());
    Value word = add(tile, times(add(groups.getInductionVar(), lowest(words[0])), kWarp));
    Value index = indexAt(add(word, threadX));
    Value hits = ballot(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, index, row));
    closeLoop(closeBits(visit(word, hits, words.drop_front())));
    return Values(groups.getResults());
  };
  auto addUpdates = [&](size_t first, Value word, Value hits, ValueRange carried) {
    ValueRange found = openBits(hits, carried);
    space.digits[0].value = wide(add(word, lowest(found[0])));
    space.digits[0].level = depth();
    Values next(found.drop_front());
    forColumns([&](size_t column) {
      const size_t number = column - first;
      if (column < first || number >= next.size())
        return;
      Scalar update = evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
      if (evaluator.seen.failed())
        return;
      OpBuilder &inner = at(depth());
      next[number] = emitCombine(inner, loc, train::ReduceKind::Sum, accumulate, next[number],
                                 emitConvert(inner, loc, update.value, updateType, accumulate));
    });
    return closeBits(next);
  };

  // Whether any row of the block can have many indices in this tile, and which has.
  Value noneLong = i32(masks), counts, isBusy;
  if (isJoint) {
    Value found = shared(i32Type, warps);
    counts = shared(i32Type, warps);
    onLaneZero(found, notes.getResult(0), threadY);
    barrier();
    Value total = loadFrom(found, i32Type, i64(0), depth());
    for (int64_t warp = 1; warp < warps; ++warp)
      total = add(total, loadFrom(found, i32Type, i64(warp), depth()));
    isBusy = isAbove(total, kOwnIndices);
    Values own =
        forIndicesOf(wideOwn, i32(0), choose(isBusy, i32(masks), i32(0)), kWarp, {i32(0)},
                     [&](Value, Value hits, ValueRange carried) { return Values{add(carried[0], ones(hits))}; });
    onLaneZero(counts, own[0], threadY);
    noneLong = choose(isAbove(own[0], kOwnIndices), i32(0), i32(masks));
  }
  barrier();
  Values totals =
      forIndicesOf(wideOwn, i32(0), noneLong, kWarp, tiles.getRegionIterArgs(),
                   [&](Value word, Value hits, ValueRange carried) { return addUpdates(0, word, hits, carried); });
  if (evaluator.seen.failed())
    return;
  if (isJoint) {
    // Rows with many indices, one after the other: each warp adds up the masks that are its own, then the sums meet. As
    // many columns at a time as there is place for, in registers too.
    Value exchange = shared(accumulate, static_cast<int64_t>(llvm::PowerOf2Ceil(warps)) / 2 * kExchanged * kWarp);
    auto each = openFor(i32(0), choose(isBusy, i32(warps), i32(0)), 1, totals);
    Value number = each.getInductionVar();
    Value isLong = isAbove(loadFrom(counts, i32Type, wide(number), depth()), kOwnIndices);
    auto once = openFor(i32(0), choose(isLong, i32(1), i32(0)), 1, each.getRegionIterArgs());
    Value row = arith::AddIOp::create(at(depth()), loc, wideBase, wide(number));
    Value takes = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, threadY, number);
    Value zero = arith::ConstantOp::create(at(0), loc, builder.getZeroAttr(accumulate));
    Values joint;
    for (size_t first = 0; first < totals.size(); first += kExchanged) {
      const size_t count = std::min<size_t>(kExchanged, totals.size() - first);
      Values parts = forIndicesOf(
          row, times(threadY, kWarp), i32(masks), kWarp * warps, Values(count, zero),
          [&](Value word, Value hits, ValueRange carried) { return addUpdates(first, word, hits, carried); });
      if (evaluator.seen.failed())
        return;
      llvm::append_range(joint,
                         joinWarps(parts, ValueRange(once.getRegionIterArgs()).slice(first, count), takes, exchange));
    }
    closeLoop(joint);
    closeLoop(once.getResults());
    totals = Values(each.getResults());
  }
  barrier();
  closeLoop(totals);

  openGuard(isRow);
  size_t number = 0;
  for (const Columns &lane : lanes) {
    if (lane.isInside)
      openGuard(lane.isInside);
    for (Value column : lane.numbers) {
      space.digits[1].value = column;
      Value value = tiles.getResult(number++);
      store(op.getResult(), 0, {emitConvert(at(depth()), loc, value, accumulate, element), depth()}, plan.keptIdentity);
    }
    if (lane.isInside)
      closeGuard();
  }
  closeGuard();
}

} // namespace tessera::codegen
