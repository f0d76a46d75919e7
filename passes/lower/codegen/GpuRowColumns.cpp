//===- GpuRowColumns.cpp - kernels that reduce rows and sum columns -------===//
//
// The gradients of a norm: what is computed of each row, and sums over rows. One block walks the rows of its chunk. It
// holds a row in registers while that row's passes run, and beside it the sums of its columns, which it stores after
// the last row: a row of partial sums a chunk.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Threads of a block at most: more would leave too few registers to each.
static constexpr int64_t kMostThreads = 512;

void GpuKernelEmitter::emitRowColumns() {
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  int64_t count = product(strided);
  heldRounds = llvm::divideCeilSigned(count, kMostThreads);
  launch.threadsX = llvm::divideCeilSigned(llvm::divideCeilSigned(count, heldRounds), kWarp) * kWarp;
  launch.blocks = product(plan.outer);
  launch.blocksAtOnce = 1;
  const int64_t warps = launch.threadsX / kWarp;
  makeAccumulators();
  setDigits(plan.outer, block);
  // What depends on columns alone, a norm's weight, is read once for all rows.
  SmallVector<Round> rounds = makeRounds(threadX, launch.threadsX, count);
  heldRounds = rounds.size();
  for (Round &round : rounds)
    setRound(round);
  for (unsigned digit : strided)
    space.digits[digit].varies = true;

  Values sums;
  for (const Accumulator &accumulator : accumulators)
    for (size_t slot = 0; accumulator.reduction->ofColumns && slot < slots(accumulator); ++slot)
      sums.append(neutral(accumulator));
  auto setSums = [&](ValueRange values) {
    for (Accumulator &accumulator : accumulators) {
      if (!accumulator.reduction->ofColumns)
        continue;
      accumulator.values.assign(values.begin(), values.begin() + slots(accumulator));
      values = values.drop_front(slots(accumulator));
    }
  };

  Value low = i32(0), high = i32(product(plan.walked)), by = i32(1);
  auto loop = scf::ForOp::create(at(depth()), loc, low, high, by, sums);
  levels.back().nested = loop;
  levels.push_back({loop.getBody(), nullptr, nullptr, {}});
  setSums(loop.getRegionIterArgs());
  rowLevel = depth();
  setDigits(plan.walked, loop.getInductionVar());
  Value half = wide(arith::MulIOp::create(
      at(depth()), loc, arith::AndIOp::create(at(depth()), loc, loop.getInductionVar(), i32(1)), i32(kWarp)));
  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried = emitRounds(pass, rounds, carriedOf(pass));
    size_t next = 0;
    SmallVector<const Accumulator *> reduced;
    SmallVector<Values> values;
    for (Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Values own(ArrayRef<Value>(carried).slice(next, slots(accumulator) * accumulator.types.size()));
      next += own.size();
      if (accumulator.reduction->ofColumns) {
        accumulator.values = std::move(own);
        continue;
      }
      reduced.push_back(&accumulator);
      values.push_back(std::move(own));
    }
    values = reduceBlock(reduced, std::move(values), warps, half);
    size_t number = 0;
    for (Accumulator &accumulator : accumulators)
      if (accumulator.reduction->pass == pass && !accumulator.reduction->ofColumns)
        accumulator.values = std::move(values[number++]);
  }
  if (!evaluator.seen.failed())
    storeRowResults();
  Values next;
  for (const Accumulator &accumulator : accumulators)
    if (accumulator.reduction->ofColumns)
      next.append(accumulator.values);
  if (evaluator.seen.failed())
    next = Values(loop.getRegionIterArgs());
  closeLoop(next);
  setSums(loop.getResults());
  if (!evaluator.seen.failed())
    storeColumnSums(rounds);
}

void GpuKernelEmitter::storeColumnSums(MutableArrayRef<Round> rounds) {
  auto sumOf = [&](Value output) -> const Accumulator & {
    while (auto reshape = output.getDefiningOp<train::ReshapeOp>())
      output = reshape.getOperand();
    return *llvm::find_if(accumulators,
                          [&](const Accumulator &other) { return other.reduction->op == output.getDefiningOp(); });
  };
  const int64_t width = product(unrolled);
  for (auto [number, round] : llvm::enumerate(rounds)) {
    setRound(round);
    if (round.isInside)
      openGuard(round.isInside);
    SmallVector<Pending> pending;
    for (int64_t position = 0; position < width; ++position) {
      int64_t rest = position;
      for (unsigned digit : llvm::reverse(unrolled)) {
        space.digits[digit].known = rest % plan.digits[digit].size;
        rest /= plan.digits[digit].size;
      }
      for (auto [output, result] : llvm::enumerate(plan.outputs)) {
        if (result.extent != OutputExtent::Column)
          continue;
        const Accumulator &sum = sumOf(result.value);
        Type type = scalarType(tensorType(result.value).getElementType());
        Value value = emitConvert(at(depth()), loc, sum.values[number * width + position], sum.types[0], type);
        pending.push_back({output, {value, depth()}, space.substitute(plan.columnIdentity)});
      }
    }
    for (unsigned digit : unrolled)
      space.digits[digit].known.reset();
    storeVector(pending);
    if (round.isInside)
      closeGuard();
  }
}

} // namespace tessera::codegen
