//===- EmitLoops.cpp - the loop nests of row, column and scatter kernels --===//

#include "passes/lower/codegen/KernelEmitter.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Columns that are summed at a time: the accumulators stay in the first-level cache.
static constexpr int64_t kLaneBlock = 512;

// --- Reductions -------------------------------------------------------------------

KernelEmitter::Values KernelEmitter::neutral(const Accumulator &accumulator) {
  OpBuilder &at0 = at(0);
  Type element = accumulatedType(accumulator.reduction->op);
  if (auto reduce = dyn_cast<train::ReduceOp>(accumulator.reduction->op))
    return {emitNeutral(at0, loc, reduce.getKind(), element)};
  return {emitNeutral(at0, loc, train::ReduceKind::Max, element), emitConstant(at0, loc, accumulator.types[1], 0.0)};
}

KernelEmitter::Values KernelEmitter::combine(const Accumulator &accumulator, ValueRange carried) {
  Operation *op = accumulator.reduction->op;
  Scalar value = evaluator.evaluate(op->getOperand(0), plan.fullIdentity);
  if (evaluator.seen.failed())
    return carried;
  Type element = accumulatedType(accumulator.reduction->op);
  value.value = emitConvert(at(value.level), loc, value.value, tensorType(op->getOperand(0)).getElementType(), element);
  unsigned level = depth();
  if (auto reduce = dyn_cast<train::ReduceOp>(op))
    return {emitCombine(at(level), loc, reduce.getKind(), element, carried[0], value.value)};
  Scalar index = evaluator.along(op->getOperand(0), plan.fullIdentity, cast<train::ArgmaxOp>(op).getDim());
  OpBuilder &inner = at(level);
  Value better = emitGreater(inner, loc, element, value.value, carried[0]);
  return {arith::SelectOp::create(inner, loc, better, value.value, carried[0]),
          arith::SelectOp::create(inner, loc, better, index.value, carried[1])};
}

// --- Stores -------------------------------------------------------------------------

/// All values of a position, and of those that are unrolled beside it, are computed before the first is stored: a
/// result may share an operand's buffer.
void KernelEmitter::storeOutputs(unsigned pass) {
  SmallVector<std::pair<size_t, Scalar>> values;
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    if (output.extent != OutputExtent::Row && output.pass == pass)
      values.emplace_back(number, evaluator.evaluate(output.value, plan.fullIdentity));
  if (evaluator.seen.failed())
    return;
  for (auto &[number, value] : values)
    pending.push_back({number, value, space.substitute(plan.fullIdentity)});
  if (!isUnrolling)
    storePending();
}

void KernelEmitter::storePending() {
  for (const Pending &one : std::exchange(pending, {}))
    if (!evaluator.seen.failed())
      store(plan.outputs[one.output].value, one.output, one.value, one.position);
}

void KernelEmitter::storePerRow() {
  SmallVector<std::pair<size_t, Scalar>> values;
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    if (output.extent == OutputExtent::Row)
      values.emplace_back(number, evaluator.evaluate(output.value, plan.keptIdentity));
  if (evaluator.seen.failed())
    return;
  for (auto &[number, value] : values)
    store(plan.outputs[number].value, number, value, plan.keptIdentity);
}

// --- Rows ----------------------------------------------------------------------------

void KernelEmitter::setOuterDigits(Value linear) {
  unsigned level = depth();
  for (size_t i = plan.outer.size(); i-- > 0;) {
    Digit &digit = space.digits[plan.outer[i]];
    digit.level = level;
    digit.value = linear;
    if (i == 0)
      break;
    Value size = i64(digit.size);
    digit.value = arith::RemUIOp::create(at(level), loc, linear, size);
    linear = arith::DivUIOp::create(at(level), loc, linear, size);
  }
}

void KernelEmitter::emitRows() {
  for (const Reduction &reduction : plan.reductions) {
    Type element = tensorType(reduction.op->getOperand(0)).getElementType();
    Accumulator accumulator{&reduction, {scalarType(train::accumulationType(element))}, {}};
    if (isa<train::ArgmaxOp>(reduction.op))
      accumulator.types.push_back(builder.getI64Type());
    accumulators.push_back(std::move(accumulator));
  }
  for (Value value : plan.scratch)
    scratch[value] = {stackArray(plan.innerElements, tensorType(value).getElementType()), std::nullopt};

  scf::ForOp rows = openLoop(begin, end, 1, {}, plan.inner.empty());
  setOuterDigits(rows.getInductionVar());
  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried;
    for (const Accumulator &accumulator : accumulators)
      if (accumulator.reduction->pass == pass)
        carried.append(neutral(accumulator));
    carried = emitPass(pass, 0, std::move(carried));
    size_t next = 0;
    for (Accumulator &accumulator : accumulators)
      if (accumulator.reduction->pass == pass)
        for (size_t i = 0; i < accumulator.types.size(); ++i)
          accumulator.values.push_back(carried[next++]);
  }
  if (!evaluator.seen.failed())
    storePerRow();
  closeLoop({});
}

/// The loops of one pass from the inner digit `position` on; takes and returns the accumulators' values.
KernelEmitter::Values KernelEmitter::emitPass(unsigned pass, size_t position, Values carried) {
  if (position == plan.inner.size()) {
    size_t next = 0;
    Values combined;
    for (const Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      combined.append(combine(accumulator, ValueRange(carried).slice(next, accumulator.types.size())));
      next += accumulator.types.size();
    }
    storeOutputs(pass);
    return combined;
  }
  // Not a reference: the walk adds digits.
  const Digit &digit = plan.digits[plan.inner[position]];
  bool restIsUnrolled = llvm::all_of(ArrayRef(plan.inner).drop_front(position + 1),
                                     [&](unsigned inner) { return space.digits[inner].unroll; });
  if (digit.unroll) {
    const bool isFirst = restIsUnrolled && !std::exchange(isUnrolling, isUnrolling || restIsUnrolled);
    for (int64_t i = 0; i < digit.size && !evaluator.seen.failed(); ++i) {
      space.digits[plan.inner[position]].known = i;
      carried = emitPass(pass, position + 1, std::move(carried));
    }
    space.digits[plan.inner[position]].known.reset();
    if (isFirst) {
      isUnrolling = false;
      storePending();
    }
    return carried;
  }
  // A loop within another one adds up by itself: what is lost where many terms are added one by one is less.
  const Values own = position > 0 ? neutralOfPass(pass) : Values();
  scf::ForOp loop = openLoop(i64(0), i64(digit.size), 1, own.empty() ? carried : own, /*innermost=*/restIsUnrolled);
  space.digits[plan.inner[position]].value = loop.getInductionVar();
  space.digits[plan.inner[position]].level = depth();
  Values next = emitPass(pass, position + 1, Values(loop.getRegionIterArgs()));
  if (evaluator.seen.failed())
    next = Values(loop.getRegionIterArgs());
  closeLoop(next);
  Values results(loop.getResults());
  if (own.empty())
    return results;
  size_t index = 0;
  for (const Accumulator &accumulator : accumulators)
    if (accumulator.reduction->pass == pass) {
      auto reduce = cast<train::ReduceOp>(accumulator.reduction->op);
      results[index] =
          emitCombine(at(depth()), loc, reduce.getKind(), accumulatedType(reduce), carried[index], results[index]);
      ++index;
    }
  return results;
}

/// What the sums, maxima and so on of a pass start from; empty if there are others.
KernelEmitter::Values KernelEmitter::neutralOfPass(unsigned pass) {
  Values values;
  for (const Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->pass != pass)
      continue;
    if (!isa<train::ReduceOp>(accumulator.reduction->op))
      return {};
    values.append(neutral(accumulator));
  }
  return values;
}

// --- Columns --------------------------------------------------------------------------

void KernelEmitter::emitColumns() {
  for (const Reduction &reduction : plan.reductions) {
    Type element = tensorType(reduction.op->getOperand(0)).getElementType();
    Accumulator accumulator{&reduction, {scalarType(train::accumulationType(element))}, {}};
    if (isa<train::ArgmaxOp>(reduction.op))
      accumulator.types.push_back(builder.getI64Type());
    for (Type type : accumulator.types)
      accumulator.values.push_back(stackArray(std::min(kLaneBlock, plan.digits[*plan.lane].size), type));
    accumulators.push_back(std::move(accumulator));
  }
  if (plan.outer.empty()) {
    emitLanes(begin, end);
    return;
  }
  scf::ForOp outer = openLoop(begin, end, 1, {}, false);
  setOuterDigits(outer.getInductionVar());
  emitLanes(i64(0), i64(plan.digits[*plan.lane].size));
  closeLoop({});
}

/// Columns [low, high), a block at a time.
void KernelEmitter::emitLanes(Value low, Value high) {
  scf::ForOp blocks = openLoop(low, high, kLaneBlock, {}, false);
  laneBase = blocks.getInductionVar();
  Value limit = arith::AddIOp::create(at(depth()), loc, laneBase, i64(kLaneBlock));
  limit = arith::MinSIOp::create(at(depth()), loc, limit, high);
  auto openLaneLoop = [&] {
    scf::ForOp loop = openLoop(laneBase, limit, 1, {}, true);
    space.digits[*plan.lane].value = loop.getInductionVar();
    space.digits[*plan.lane].level = depth();
  };
  openLaneLoop();
  for (const Accumulator &accumulator : accumulators) {
    Value slot = arith::SubIOp::create(at(depth()), loc, space.digits[*plan.lane].value, laneBase);
    for (auto [array, type, value] : llvm::zip(accumulator.values, accumulator.types, neutral(accumulator)))
      storeTo(array, type, value, slot);
  }
  closeLoop({});
  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass)
    emitColumnPass(pass, 0, laneBase, limit);
  openLaneLoop();
  if (!evaluator.seen.failed())
    storePerRow();
  closeLoop({});
  closeLoop({});
}

void KernelEmitter::emitColumnPass(unsigned pass, size_t position, Value low, Value high) {
  bool last = position == plan.inner.size();
  unsigned number = last ? *plan.lane : plan.inner[position];
  scf::ForOp loop =
      last ? openLoop(low, high, 1, {}, true) : openLoop(i64(0), i64(space.digits[number].size), 1, {}, false);
  space.digits[number].value = loop.getInductionVar();
  space.digits[number].level = depth();
  if (!last) {
    emitColumnPass(pass, position + 1, low, high);
  } else {
    for (const Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Value slot = arith::SubIOp::create(at(depth()), loc, loop.getInductionVar(), laneBase);
      Values carried;
      for (auto [array, type] : llvm::zip(accumulator.values, accumulator.types))
        carried.push_back(loadFrom(array, type, slot, depth()));
      Values next = combine(accumulator, carried);
      for (auto [array, type, value] : llvm::zip(accumulator.values, accumulator.types, next))
        storeTo(array, type, value, slot);
    }
    storeOutputs(pass);
  }
  closeLoop({});
}

// --- Scatter ----------------------------------------------------------------------------

/// Columns [begin, end) of the table: first the initial values, then the updated rows in their order.
void KernelEmitter::emitScatter() {
  auto op = cast<train::ScatterAddRowsOp>(plan.outputs.front().value.getDefiningOp());
  Type element = tensorType(op.getResult()).getElementType();
  int64_t columns = plan.digits[1].size;
  auto openDigit = [&](unsigned number, Value low, Value high, bool innermost) {
    scf::ForOp loop = openLoop(low, high, 1, {}, innermost);
    space.digits[number].value = loop.getInductionVar();
    space.digits[number].level = depth();
  };
  Value copyInit;
  if (auto it = inputPointers.find(op.getInit()); it != inputPointers.end()) {
    // The table may be updated in place.
    Value differ = LLVM::ICmpOp::create(at(0), loc, LLVM::ICmpPredicate::ne, it->second, outputPointers.front());
    Value tableRows = i64(plan.digits[2].size);
    copyInit = arith::SelectOp::create(at(0), loc, differ, tableRows, i64(0));
  } else {
    copyInit = i64(plan.digits[2].size);
  }
  openDigit(2, i64(0), copyInit, false);
  openDigit(1, begin, end, true);
  Scalar initial = evaluator.evaluate(op.getInit(), plan.keptIdentity);
  if (!evaluator.seen.failed())
    store(op.getResult(), 0, initial, plan.keptIdentity);
  closeLoop({});
  closeLoop({});

  openDigit(0, i64(0), i64(plan.digits[0].size), false);
  Scalar row = evaluator.evaluate(op.getIndices(), Index::ofDigit(0));
  if (evaluator.seen.failed())
    return;
  row.value =
      emitConvert(at(row.level), loc, row.value, tensorType(op.getIndices()).getElementType(), builder.getI64Type());
  Value start = arith::MulIOp::create(at(depth()), loc, row.value, i64(columns));
  openDigit(1, begin, end, true);
  Scalar update = evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
  if (evaluator.seen.failed())
    return;
  Value target = arith::AddIOp::create(at(depth()), loc, start, space.digits[1].value);
  Value old = loadFrom(outputPointers.front(), element, target, depth());
  Type wide = scalarType(train::accumulationType(element));
  Value sum = emitCombine(at(depth()), loc, train::ReduceKind::Sum, wide, emitConvert(builder, loc, old, element, wide),
                          emitConvert(builder, loc, update.value, element, wide));
  storeTo(outputPointers.front(), element, emitConvert(at(depth()), loc, sum, wide, element), target);
  closeLoop({});
  closeLoop({});
}

} // namespace tessera::codegen
