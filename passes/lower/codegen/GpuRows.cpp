//===- GpuRows.cpp - kernels that reduce rows and columns -----------------===//
//
// A row that fits is held in registers: its rounds are unrolled, and what one pass has loaded or computed of a position
// the next pass finds in the evaluator's memory. Longer rows are read again in every pass.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr int64_t kWarpsPerBlock = 4;
static constexpr int64_t kMaxThreads = 1024;
/// Elements of a row that a thread holds: of three tensors they fill 96 registers.
static constexpr int64_t kHeld = 32;
/// Threads of a block up to which they hold a row: more would leave too few registers to each.
static constexpr int64_t kHoldingThreads = 512;
/// Bytes of shared memory of a block that columns are summed in.
static constexpr int64_t kColumnBytes = 32 << 10;

// --- Rows ------------------------------------------------------------------------

/// The positions first, first + step, … of `count`; those of the last round may be outside.
SmallVector<GpuKernelEmitter::Round> GpuKernelEmitter::makeRounds(Value first, int64_t step, int64_t count) {
  SmallVector<Round> rounds;
  for (int64_t start = 0; start < count; start += step) {
    Round round;
    round.number = start == 0 ? first : arith::AddIOp::create(at(depth()), loc, first, i32(start)).getResult();
    if (start + step > count) {
      round.isInside = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, round.number, i32(count));
      round.number = arith::SelectOp::create(at(depth()), loc, round.isInside, round.number, i32(count - 1));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

void GpuKernelEmitter::setRound(Round &round) {
  if (round.digits.empty()) {
    setDigits(strided, round.number);
    for (unsigned digit : strided)
      round.digits.push_back(space.digits[digit].value);
  }
  for (auto [digit, value] : llvm::zip_equal(strided, round.digits))
    space.digits[digit].value = value;
}

/// One pass over the rounds. A thread outside the row goes along at the last position, whose value it neither adds nor
/// stores.
GpuKernelEmitter::Values GpuKernelEmitter::emitRounds(unsigned pass, MutableArrayRef<Round> rounds, Values carried) {
  for (auto [number, round] : llvm::enumerate(rounds)) {
    evaluator.instance = number + 1;
    setRound(round);
    Values next = carried;
    SmallVector<Pending> pending;
    emitVector(pass, 0, next, pending);
    if (evaluator.seen.failed())
      break;
    for (auto [value, old] : llvm::zip_equal(next, carried))
      if (round.isInside && value != old)
        value = arith::SelectOp::create(at(depth()), loc, round.isInside, value, old);
    carried = std::move(next);
    if (pending.empty())
      continue;
    if (round.isInside)
      openGuard(round.isInside);
    storeVector(pending);
    if (round.isInside)
      closeGuard();
  }
  evaluator.instance = 0;
  return carried;
}

void GpuKernelEmitter::emitRow() {
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  int64_t rows = product(plan.outer), count = product(strided);
  const int64_t together = product(unrolled);
  int64_t mostRounds = std::max<int64_t>(
      1, std::min(kHeld / together, kMaxUnrolledVisits / (together * std::max<int64_t>(1, plan.visits))));
  bool isWarp = rows > 1 && count <= mostRounds * kWarp;
  bool isHeld = count <= mostRounds * kHoldingThreads;
  if (!isHeld)
    joinPasses();
  makeAccumulators();
  Value row;
  if (isWarp) {
    launch.threadsX = kWarp;
    launch.threadsY = std::min(kWarpsPerBlock, rows);
    launch.blocks = llvm::divideCeilSigned(rows, launch.threadsY);
    threadY = NVVM::ThreadIdYOp::create(at(0), loc, builder.getI32Type());
    row = arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsY)), threadY);
    // The same for all lanes of a warp: they reach every shuffle together.
    openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, row, i32(rows)));
  } else {
    int64_t threads = isHeld ? llvm::divideCeilSigned(count, rows > 1 ? mostRounds : 1) : kMaxThreads;
    launch.threadsX = std::min(kMaxThreads, llvm::divideCeilSigned(threads, kWarp) * kWarp);
    launch.blocks = rows;
    row = block;
  }
  rowLevel = depth();
  setDigits(plan.outer, row);
  SmallVector<Round> rounds;
  launch.blocksAtOnce = isHeld ? 1 : 0;
  if (isHeld) {
    rounds = makeRounds(threadX, launch.threadsX, count);
    for (unsigned digit : strided)
      space.digits[digit].varies = true;
  }

  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried = carriedOf(pass);
    carried = isHeld ? emitRounds(pass, rounds, std::move(carried))
                     : emitInner(pass, threadX, launch.threadsX, Value(), count, std::move(carried));
    size_t next = 0;
    for (Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Values own(llvm::ArrayRef<Value>(carried).slice(next, accumulator.types.size()));
      next += accumulator.types.size();
      if (Online *pair = onlineOf(accumulator); pair && pair->sum == accumulator.reduction->op) {
        auto *top = llvm::find_if(accumulators, [&](const auto &other) { return other.reduction->op == pair->top; });
        own[0] = rescaled(own[0], carried[offsetOf(pass, pair->top)], top->values[0]);
      }
      accumulator.values = isWarp ? reduceWarp(accumulator, std::move(own))
                                  : reduceBlock(accumulator, std::move(own), launch.threadsX / kWarp);
    }
  }
  if (!evaluator.seen.failed())
    storeRowResults();
  if (isWarp)
    closeGuard();
}

/// Results of one element a row, by the first thread of those that share the row.
void GpuKernelEmitter::storeRowResults() {
  auto isOfRows = [](const Output &output) { return output.extent == OutputExtent::Row; };
  if (llvm::none_of(plan.outputs, isOfRows))
    return;
  // One that lies in an operand's buffer waits until every warp has read that.
  if (llvm::any_of(
          plan.outputs,
          [&](const Output &output) { return output.extent == OutputExtent::Row && !output.mayOverwrite.empty(); }) &&
      launch.threadsX > kWarp)
    barrier();
  openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, threadX, i32(0)));
  storePerRow();
  closeGuard();
}

// --- Columns ---------------------------------------------------------------------

void GpuKernelEmitter::emitColumn() {
  makeAccumulators();
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  // The columns that a thread takes together follow the lane's digit.
  if (*plan.lane + 1 < plan.digits.size())
    columnDigit = *plan.lane + 1;
  int64_t columns = plan.digits[*plan.lane].size, tiles = llvm::divideCeilSigned(columns, kWarp),
          count = product(strided);
  int64_t bytes = 0;
  for (const Accumulator &accumulator : accumulators)
    for (Type type : accumulator.types)
      bytes +=
          kWarp * static_cast<int64_t>(slots(accumulator)) * std::max<int64_t>(1, type.getIntOrFloatBitWidth() / 8);
  launch.threadsX = kWarp;
  launch.threadsY = count >= 512 && !columnDigit ? 16 : count >= 64 ? 8 : 1;
  while (launch.threadsY > 1 && launch.threadsY * bytes > kColumnBytes)
    launch.threadsY /= 2;
  launch.blocks = product(plan.outer) * tiles;
  threadY = NVVM::ThreadIdYOp::create(at(0), loc, builder.getI32Type());
  Value tile = arith::RemUIOp::create(at(0), loc, block, i32(tiles));
  Value group = arith::DivUIOp::create(at(0), loc, block, i32(tiles));
  Value column = arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, tile, i32(kWarp)), threadX);
  // Threads beyond the last column go along with it, idle, so that all of a block meet at the barriers.
  Value isColumn, limit;
  if (columns % kWarp != 0) {
    isColumn = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, column, i32(columns));
    column = arith::SelectOp::create(at(0), loc, isColumn, column, i32(columns - 1));
    limit = arith::SelectOp::create(at(0), loc, isColumn, i32(count), i32(0));
  }
  setDigits(plan.outer, group);
  space.digits[*plan.lane].value = wide(column);
  space.digits[*plan.lane].level = 0;

  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried = emitInner(pass, threadY, launch.threadsY, limit, count, carriedOf(pass));
    size_t next = 0;
    for (Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Values own(llvm::ArrayRef<Value>(carried).slice(next, slots(accumulator) * accumulator.types.size()));
      next += own.size();
      accumulator.values = reduceDown(accumulator, std::move(own));
    }
  }
  if (evaluator.seen.failed())
    return;
  Value stores = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::eq, threadY, i32(0));
  if (isColumn)
    stores = arith::AndIOp::create(at(0), loc, stores, isColumn);
  openGuard(stores);
  storeColumns();
  closeGuard();
}

/// The results of one element a column.
void GpuKernelEmitter::storeColumns() {
  SmallVector<Pending> pending;
  int64_t slots = columnDigit ? plan.digits[*columnDigit].size : 1;
  for (int64_t slot = 0; slot < slots && !evaluator.seen.failed(); ++slot) {
    if (columnDigit)
      space.digits[*columnDigit].known = slot;
    for (auto [number, output] : llvm::enumerate(plan.outputs))
      if (output.extent == OutputExtent::Row && !evaluator.seen.failed())
        pending.push_back(
            {number, evaluator.evaluate(output.value, plan.keptIdentity), space.substitute(plan.keptIdentity)});
  }
  if (columnDigit)
    space.digits[*columnDigit].known.reset();
  storeVector(pending);
}

} // namespace tessera::codegen
