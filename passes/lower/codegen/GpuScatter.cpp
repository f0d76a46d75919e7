//===- GpuScatter.cpp - rows added to the rows of a table -----------------===//
//
// The gradient of an embedding. A block owns a few rows of the table, one a warp, which sums its row in registers. All
// threads of the block look through the indices once and note in shared memory, a bit an index, which of them are rows
// of the block; each warp then looks at those alone. No atomics: a row is added up in the order of its indices.
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
/// Columns that a lane sums at most.
static constexpr int64_t kLaneColumns = 24;

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
  launch.needsRegisters = true;
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
  auto openFor = [&](Value low, int64_t high, int64_t step, ValueRange carried) {
    auto loop = scf::ForOp::create(at(depth()), loc, low, i32(high), i32(step), carried);
    levels.back().nested = loop;
    levels.push_back({loop.getBody(), nullptr, nullptr, {}});
    return loop;
  };

  Values sums;
  forColumns([&](size_t) {
    Scalar initial = evaluator.evaluate(op.getInit(), plan.keptIdentity);
    if (!evaluator.seen.failed())
      sums.push_back(emitConvert(at(depth()), loc, initial.value, element, accumulate));
  });
  if (evaluator.seen.failed())
    return;
  int64_t masks = std::min(kMasks, (rows + kWarp - 1) / kWarp);
  Value array = shared(builder.getI32Type(), masks);
  auto tiles = openFor(i32(0), rows, masks * kWarp, sums);
  Value tile = tiles.getInductionVar();

  auto notes = openFor(threadY, masks, launch.threadsY, {});
  Value candidate = add(add(tile, times(notes.getInductionVar(), kWarp)), threadX);
  Value index = indexAt(candidate);
  if (evaluator.seen.failed())
    return;
  Value distance = arith::SubIOp::create(at(depth()), loc, index, wideBase);
  Value isBlocks = both(isBelow(distance, i64(launch.threadsY)),
                        arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::sge, index, i64(0)));
  Value note = ballot(isBlocks);
  openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, threadX, i32(0)));
  storeTo(array, builder.getI32Type(), note, wide(notes.getInductionVar()));
  closeGuard();
  closeLoop({});
  barrier();

  auto groups = openFor(i32(0), masks, kWarp, tiles.getRegionIterArgs());
  Value place = add(groups.getInductionVar(), threadX), isMask = isBelow(place, i32(masks));
  Value mask = loadFrom(array, builder.getI32Type(), wide(choose(isMask, place, i32(0))), depth());
  Value isNoted = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ne, mask, i32(0));
  Value noted = ballot(both(isNoted, isMask));
  auto lowest = [&](ValueRange arguments) {
    return LLVM::CountTrailingZerosOp::create(at(depth()), loc, builder.getI32Type(), arguments[0],
                                              /*is_zero_poison=*/true)
        .getResult();
  };
  ValueRange words = openBits(noted, groups.getRegionIterArgs());
  Value word = add(tile, times(add(groups.getInductionVar(), lowest(words)), kWarp));
  index = indexAt(add(word, threadX));
  if (evaluator.seen.failed())
    return;
  Value hits = ballot(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, index, wideOwn));

  ValueRange found = openBits(hits, words.drop_front());
  space.digits[0].value = wide(add(word, lowest(found)));
  space.digits[0].level = depth();
  Values next;
  forColumns([&](size_t number) {
    Scalar update = evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
    if (evaluator.seen.failed())
      return;
    OpBuilder &inner = at(depth());
    next.push_back(emitCombine(inner, loc, train::ReduceKind::Sum, accumulate, found[1 + number],
                               emitConvert(inner, loc, update.value, updateType, accumulate)));
  });
  if (evaluator.seen.failed())
    return;
  closeLoop(closeBits(closeBits(next)));
  barrier();
  closeLoop(groups.getResults());

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
