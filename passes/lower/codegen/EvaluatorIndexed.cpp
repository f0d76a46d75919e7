//===- EvaluatorIndexed.cpp - ops that choose where they read at run time -===//
//
// Concatenation, padding, dynamic boxes, gathers and random numbers.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

Scalar Evaluator::guarded(ArrayRef<Scalar> conditions, Type type, llvm::function_ref<Scalar(unsigned)> then,
                          llvm::function_ref<Scalar()> other) {
  if (!emission) {
    Scalar a = then(0), b = other();
    return {{}, std::max(a.level, b.level)};
  }
  Scalar all = conditions.front();
  for (const Scalar &condition : conditions.drop_front()) {
    all.level = std::max(all.level, condition.level);
    all.value = arith::AndIOp::create(emission->at(all.level), loc, all.value, condition.value);
  }
  unsigned inside = emission->openBranch(all.value, type);
  Scalar a = then(inside);
  forget(inside);
  if (!a.value)
    return {}; // it failed, and the kernel is given up
  emission->otherwise(a);
  Scalar b = other();
  forget(inside);
  return b.value ? emission->closeBranch(b) : b;
}

Index Evaluator::clampedStart(Value start, int64_t extent, int64_t size) {
  if (extent == size)
    return Index::constant(0);
  Scalar scalar = evaluate(start, Index::constant(0));
  if (emission && scalar.value) {
    Type i64 = IntegerType::get(loc.getContext(), 64);
    OpBuilder &builder = emission->at(scalar.level);
    Value value = emitConvert(builder, loc, scalar.value, tensorType(start).getElementType(), i64);
    value = arith::MaxSIOp::create(builder, loc, value, integer(0, i64).value);
    scalar.value = arith::MinSIOp::create(builder, loc, value, integer(extent - size, i64).value);
  }
  return opaque(extent - size + 1, scalar);
}

Scalar Evaluator::concat(train::ConcatOp op, Position &position) {
  uint64_t dim = op.getDim();
  SmallVector<Index> from(indices(position, op.getResult()));
  Index along = from[dim];
  int64_t low = along.offset, high = space.maximum(along);
  // Equal parts: the part becomes a digit of its own, whose loop is unrolled when it lies inside the kernel's rows.
  int64_t firstSize = shapeOf(op.getOperands().front())[dim];
  bool equalParts = op.getOperands().size() <= 8 &&
                    llvm::all_of(op.getOperands(), [&](Value operand) { return shapeOf(operand)[dim] == firstSize; });
  if (equalParts && exactOnly && !emission && low / firstSize != high / firstSize) {
    auto exact = space.divide(along, firstSize, seen.cut);
    if (seen.failed())
      return {};
    if (exact && exact->first.offset == 0)
      for (const Index::Term &term : exact->first.terms)
        space.digits[term.digit].unroll = space.digits[term.digit].size <= 8;
  }

  struct Part {
    Value operand;
    int64_t start, size;
  };
  SmallVector<Part> parts;
  int64_t start = 0;
  for (Value operand : op.getOperands()) {
    int64_t size = shapeOf(operand)[dim];
    if (size > 0 && start <= high && start + size > low)
      parts.push_back({operand, start, size});
    start += size;
  }
  if (parts.size() == 1 && low >= parts.front().start) {
    from[dim] = along + -parts.front().start;
    return evaluate(parts.front().operand, Position::at(std::move(from), parts.front().operand));
  }
  Type type = scalarType(tensorType(op.getResult()).getElementType());
  Scalar value = indexScalar(along);
  std::function<Scalar(size_t, unsigned)> choose = [&](size_t number, unsigned inside) -> Scalar {
    const Part &part = parts[number];
    auto read = [&](unsigned level) {
      SmallVector<Index> to(from);
      to[dim] = space.inside(along, std::max(level, value.level)) + -part.start;
      return evaluate(part.operand, Position::at(std::move(to), part.operand));
    };
    if (number + 1 == parts.size())
      return read(inside);
    Scalar condition{{}, std::max(inside, value.level)};
    if (emission)
      condition.value =
          arith::CmpIOp::create(emission->at(condition.level), loc, arith::CmpIPredicate::slt, value.value,
                                integer(part.start + part.size, value.value.getType()).value);
    return guarded(condition, type, read, [&] { return choose(number + 1, emission ? emission->depth() : 0); });
  };
  return choose(0, 0);
}

Scalar Evaluator::pad(train::PadOp op, Position &position) {
  SmallVector<Index> from(indices(position, op.getResult()));
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  Type i64 = IntegerType::get(loc.getContext(), 64);
  SmallVector<Scalar> conditions;
  SmallVector<Scalar> inner(from.size());
  SmallVector<bool> shifted(from.size(), false);
  for (auto [dim, index] : llvm::enumerate(from)) {
    int64_t low = op.getLow()[dim], stride = op.getInterior()[dim] + 1;
    int64_t span = shape[dim] == 0 ? 0 : (shape[dim] - 1) * stride + 1;
    if (stride == 1 && index.offset >= low && space.maximum(index) < low + span) {
      index = index + -low;
      continue;
    }
    shifted[dim] = true;
    Scalar value = indexScalar(index);
    inner[dim].level = value.level;
    if (!emission)
      continue;
    OpBuilder &builder = emission->at(value.level);
    Value offset = arith::SubIOp::create(builder, loc, value.value, integer(low, i64).value);
    // Below the low edge the unsigned comparison fails too.
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, offset, integer(span, i64).value);
    if (stride != 1) {
      Value by = integer(stride, i64).value;
      Value hit = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        arith::RemSIOp::create(builder, loc, offset, by), integer(0, i64).value);
      inside = arith::AndIOp::create(builder, loc, inside, hit);
      offset = arith::DivSIOp::create(builder, loc, offset, by);
    }
    inner[dim].value = offset;
    conditions.push_back({inside, value.level});
  }
  auto read = [&](unsigned level) {
    SmallVector<Index> to(from);
    for (size_t dim = 0; dim < to.size(); ++dim)
      if (shifted[dim])
        to[dim] = opaque(std::max<int64_t>(shape[dim], 1), {inner[dim].value, std::max(level, inner[dim].level)});
    return evaluate(op.getOperand(), Position::at(std::move(to), op.getOperand()));
  };
  if (llvm::none_of(shifted, [](bool flag) { return flag; }))
    return read(0);
  Type element = tensorType(op.getResult()).getElementType();
  return guarded(conditions, scalarType(element), read, [&]() -> Scalar {
    if (!emission)
      return {};
    return {emitConstant(emission->at(0), loc, element, op.getValue().convertToDouble()), 0};
  });
}

Scalar Evaluator::updateSlice(train::DynamicUpdateSliceOp op, Position &position) {
  SmallVector<Index> from(indices(position, op.getResult()));
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()), box = shapeOf(op.getUpdate());
  Type i64 = IntegerType::get(loc.getContext(), 64);
  SmallVector<Scalar> conditions, inner(from.size());
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (shape[dim] == box[dim])
      continue;
    Index start = clampedStart(op.getStarts()[dim], shape[dim], box[dim]);
    Scalar value = indexScalar(from[dim]), low = indexScalar(start);
    inner[dim].level = std::max(value.level, low.level);
    if (!emission)
      continue;
    OpBuilder &builder = emission->at(inner[dim].level);
    inner[dim].value = arith::SubIOp::create(builder, loc, value.value, low.value);
    conditions.push_back(
        {arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, inner[dim].value, integer(box[dim], i64).value),
         inner[dim].level});
  }
  auto read = [&](unsigned level) {
    SmallVector<Index> to(from);
    for (size_t dim = 0; dim < to.size(); ++dim)
      if (shape[dim] != box[dim])
        to[dim] = opaque(box[dim], {inner[dim].value, std::max(level, inner[dim].level)});
    return evaluate(op.getUpdate(), Position::at(std::move(to), op.getUpdate()));
  };
  if (shape == box)
    return read(0);
  return guarded(conditions, scalarType(tensorType(op.getResult()).getElementType()), read,
                 [&] { return evaluate(op.getOperand(), position); });
}

Scalar Evaluator::gather(train::GatherRowsOp op, Position &position) {
  SmallVector<Index> from(indices(position, op.getResult()));
  ArrayRef<int64_t> indexShape = shapeOf(op.getIndices());
  SmallVector<Index> lookup(ArrayRef<Index>(from).take_front(indexShape.size()));
  Scalar row = evaluate(op.getIndices(), Position::at(std::move(lookup), op.getIndices()));
  if (emission && row.value)
    row.value = emitConvert(emission->at(row.level), loc, row.value, tensorType(op.getIndices()).getElementType(),
                            IntegerType::get(loc.getContext(), 64));
  SmallVector<Index> to = {opaque(shapeOf(op.getTable()).front(), row)};
  llvm::append_range(to, ArrayRef<Index>(from).drop_front(indexShape.size()));
  return evaluate(op.getTable(), Position::at(std::move(to), op.getTable()));
}

Scalar Evaluator::random(train::RngUniformOp op, Position &position) {
  Type i64 = IntegerType::get(loc.getContext(), 64);
  Scalar seed = evaluate(op.getSeed(), Index::constant(0));
  Scalar index;
  if (op.getOffsets().empty()) {
    index = indexScalar(position.linear);
  } else {
    // The row-major index in the global tensor.
    SmallVector<Index> from(indices(position, op.getResult()));
    ArrayRef<int64_t> shape = op.getGlobalShape() ? *op.getGlobalShape() : shapeOf(op.getResult());
    Index global = Index::constant(0);
    for (auto [local, offset, size] : llvm::zip_equal(from, op.getOffsets(), shape)) {
      Scalar start = evaluate(offset, Index::constant(0));
      if (emission && start.value)
        start.value =
            emitConvert(emission->at(start.level), loc, start.value, tensorType(offset).getElementType(), i64);
      global = global * size + local + opaque(size, start);
    }
    index = indexScalar(global);
  }
  Scalar result{{}, std::max(seed.level, index.level)};
  if (emission && !seen.failed()) {
    OpBuilder &builder = emission->at(result.level);
    Value key = emitConvert(builder, loc, seed.value, tensorType(op.getSeed()).getElementType(), i64);
    Value uniform = emitUniform(builder, loc, emitPhilox(builder, loc, key, index.value, op.getStream(), 0));
    result.value =
        emitConvert(builder, loc, uniform, builder.getF32Type(), tensorType(op.getResult()).getElementType());
  }
  return result;
}

Scalar Evaluator::roundStochastically(train::StochasticRoundOp op, Position &position) {
  Type i64 = IntegerType::get(loc.getContext(), 64);
  auto wide = [&](Value operand) {
    Scalar scalar = evaluate(operand, Index::constant(0));
    if (emission && scalar.value)
      scalar.value =
          emitConvert(emission->at(scalar.level), loc, scalar.value, tensorType(operand).getElementType(), i64);
    return scalar;
  };
  Scalar x = evaluate(op.getOperand(), position), seed = wide(op.getSeed()), index = indexScalar(position.linear);
  Scalar offset = op.getOffset() ? wide(op.getOffset()) : Scalar();
  Scalar result{{}, std::max({x.level, seed.level, index.level, offset.level})};
  if (emission && !seen.failed()) {
    OpBuilder &builder = emission->at(result.level);
    Value global =
        offset.value ? arith::AddIOp::create(builder, loc, index.value, offset.value).getResult() : index.value;
    const auto lane = static_cast<unsigned>(op.getLane());
    Value word = emitPhilox(builder, loc, seed.value, global, op.getStream(), lane / 2);
    result.value = emitStochasticRound(builder, loc, x.value, word, lane % 2 == 1);
  }
  return result;
}

} // namespace tessera::codegen
