//===- GpuForms.cpp - elementwise and table kernels -----------------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

static constexpr int64_t kElementwiseThreads = 256;
static constexpr int64_t kWarpsPerBlock = 4;

// --- Elementwise -----------------------------------------------------------------

void GpuKernelEmitter::emitElementwise() {
  for (unsigned digit : llvm::concat<const unsigned>(plan.outer, plan.inner))
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  llvm::sort(strided);
  llvm::sort(unrolled);
  int64_t threads = product(strided);
  launch.threadsX = std::clamp((threads + kWarp - 1) / kWarp * kWarp, kWarp, kElementwiseThreads);
  launch.blocks = std::max<int64_t>((threads + launch.threadsX - 1) / launch.threadsX, 1);
  Value number =
      arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsX)), threadX);
  openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, number, i32(threads)));
  rowLevel = depth();
  setDigits(strided, number);
  Values none;
  SmallVector<Pending> pending;
  emitVector(0, 0, none, pending);
  storeVector(pending);
  closeGuard();
}

// --- Scatter ---------------------------------------------------------------------

/// One warp a row of the table: it writes the initial row, then looks through all indices, 32 at a time, and adds the
/// rows that are its own in their order. No atomics, so that the sum is always the same.
void GpuKernelEmitter::emitTable() {
  auto op = cast<train::ScatterAddRowsOp>(plan.outputs.front().value.getDefiningOp());
  Type element = tensorType(op.getResult()).getElementType(), i32Type = builder.getI32Type();
  int64_t rows = plan.digits[0].size, columns = plan.digits[1].size, tableRows = plan.digits[2].size;
  launch.threadsX = kWarp;
  launch.threadsY = std::min<int64_t>(2 * kWarpsPerBlock, tableRows);
  launch.blocks = (tableRows + launch.threadsY - 1) / launch.threadsY;
  threadY = NVVM::ThreadIdYOp::create(at(0), loc, i32Type);
  Value own =
      arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsY)), threadY);
  openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, own, i32(tableRows)));
  space.digits[2].value = wide(own);
  space.digits[2].level = depth();
  auto openFor = [&](Value low, Value high, int64_t step) {
    auto loop = scf::ForOp::create(at(depth()), loc, low, high, i32(step));
    levels.back().nested = loop;
    levels.push_back({loop.getBody(), nullptr, nullptr, {}});
    return loop;
  };
  auto openColumns = [&] {
    auto loop = openFor(threadX, i32(columns), kWarp);
    space.digits[1].value = wide(loop.getInductionVar());
    space.digits[1].level = depth();
  };
  Value start = arith::MulIOp::create(at(depth()), loc, space.digits[2].value, i64(columns));
  openColumns();
  Scalar initial = evaluator.evaluate(op.getInit(), plan.keptIdentity);
  if (evaluator.seen.failed())
    return;
  store(op.getResult(), 0, initial, plan.keptIdentity);
  closeLoop({});

  auto chunks = openFor(i32(0), i32(rows), kWarp);
  Value candidate = arith::AddIOp::create(at(depth()), loc, chunks.getInductionVar(), threadX);
  Value isRow = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, candidate, i32(rows));
  Value clamped = arith::SelectOp::create(at(depth()), loc, isRow, candidate, i32(rows - 1));
  space.digits[0].value = wide(clamped);
  space.digits[0].level = depth();
  Scalar index = evaluator.evaluate(op.getIndices(), Index::ofDigit(0));
  if (evaluator.seen.failed())
    return;
  Type indexType = tensorType(op.getIndices()).getElementType();
  Value target = emitConvert(at(depth()), loc, index.value, indexType, builder.getI64Type());
  Value hit = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, target, space.digits[2].value);
  hit = arith::AndIOp::create(at(depth()), loc, hit, isRow);
  Value hits = NVVM::VoteSyncOp::create(at(depth()), loc, i32Type, i32(-1), hit, NVVM::VoteSyncKind::ballot);
  // What was computed of the candidate does not hold for the row of a hit.
  evaluator.forget(depth());

  // while (hits) { row = lowest bit; add; clear it }
  auto loop = scf::WhileOp::create(at(depth()), loc, TypeRange{i32Type}, ValueRange{hits});
  Block *before = builder.createBlock(&loop.getBefore(), {}, {i32Type}, {loc});
  Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, before->getArgument(0), i32(0));
  builder.setInsertionPointToEnd(before);
  scf::ConditionOp::create(builder, loc, any, before->getArguments());
  Block *after = builder.createBlock(&loop.getAfter(), {}, {i32Type}, {loc});
  levels.back().nested = loop;
  levels.push_back({after, nullptr, nullptr, {}});
  Value bits = after->getArgument(0);
  Value lowest = LLVM::CountTrailingZerosOp::create(at(depth()), loc, i32Type, bits, /*is_zero_poison=*/true);
  Value row = arith::AddIOp::create(at(depth()), loc, chunks.getInductionVar(), lowest);
  space.digits[0].value = wide(row);
  space.digits[0].level = depth();
  openColumns();
  Scalar update = evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
  if (evaluator.seen.failed())
    return;
  Value place = arith::AddIOp::create(at(depth()), loc, start, space.digits[1].value);
  Value old = loadFrom(outputPointers.front(), element, place, depth());
  Type accumulate = scalarType(train::accumulationType(element));
  OpBuilder &inner = at(depth());
  Value sum = emitCombine(inner, loc, train::ReduceKind::Sum, emitConvert(inner, loc, old, element, accumulate),
                          emitConvert(inner, loc, update.value, element, accumulate));
  storeTo(outputPointers.front(), element, emitConvert(at(depth()), loc, sum, accumulate, element), place);
  closeLoop({});
  Value rest = arith::AndIOp::create(at(depth()), loc, bits, arith::SubIOp::create(at(depth()), loc, bits, i32(1)));
  scf::YieldOp::create(at(depth()), loc, ValueRange{rest});
  evaluator.forget(depth());
  levels.pop_back();
  levels.back().nested = nullptr;
  closeLoop({});
  closeGuard();
}

} // namespace tessera::codegen
