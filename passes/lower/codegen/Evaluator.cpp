//===- Evaluator.cpp - values of train ops, element by element ------------===//

#include "passes/lower/codegen/Evaluator.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// An expression this deep is not one that fusion makes; the limit keeps the walk from exploding.
static constexpr unsigned kMaxVisits = 4096;
/// Of code that is made: what branches forget is evaluated again, and unrolled loops evaluate several positions.
static constexpr unsigned kMaxEmitted = 2 * kMaxUnrolledVisits;

KernelBody KernelBody::ofRegion(Region &region) {
  KernelBody body;
  Block &block = region.front();
  llvm::append_range(body.inputs, block.getArguments());
  llvm::append_range(body.outputs, block.getTerminator()->getOperands());
  for (Operation &op : block.without_terminator())
    body.ops.push_back(&op);
  return body;
}

Evaluator::Evaluator(const KernelBody &body, Space &space, Location loc) : body(body), space(space), loc(loc) {
  inputs.insert(body.inputs.begin(), body.inputs.end());
  members.insert(body.ops.begin(), body.ops.end());
}

void Evaluator::fail(Operation *op, Twine why) {
  if (seen.problem.empty())
    seen.problem = (op->getName().getStringRef() + ": " + why).str();
}

void Evaluator::forget(unsigned level) {
  std::erase_if(memory, [&](const auto &entry) { return entry.second.level >= level; });
}

Scalar Evaluator::integer(int64_t value, Type type) {
  return {emission ? emission->constant(value, type) : Value(), 0};
}

Index Evaluator::opaque(int64_t size, Scalar value) {
  return Index::ofDigit(space.addOpaque(size, value.level, value.value));
}

Evaluator::Key Evaluator::keyOf(Value value, const Index &linear) const {
  bool varies = llvm::any_of(linear.terms, [&](const Index::Term &term) { return space.digits[term.digit].varies; });
  return {value.getAsOpaquePointer(), linear, varies ? instance : 0};
}

Value Evaluator::materialize(const Index &index, unsigned &level) {
  level = space.level(index);
  if (!emission)
    return {};
  // Terms are added from the outermost level inwards, so that what does not change in a loop stays outside it.
  SmallVector<Index::Term> terms(ArrayRef<Index::Term>(index.terms));
  llvm::stable_sort(terms, [&](const Index::Term &a, const Index::Term &b) {
    return space.digits[a.digit].level < space.digits[b.digit].level;
  });
  Type i64 = IntegerType::get(loc.getContext(), 64);
  Value sum;
  unsigned sumLevel = 0;
  bool isLast = constantLast && !terms.empty();
  if (!isLast && (index.offset != 0 || terms.empty()))
    sum = integer(index.offset, i64).value;
  for (const Index::Term &term : terms) {
    const Digit &digit = space.digits[term.digit];
    Value product = digit.value;
    if (term.coefficient != 1)
      product = arith::MulIOp::create(emission->at(digit.level), loc, product, integer(term.coefficient, i64).value);
    sumLevel = std::max(sumLevel, digit.level);
    sum = sum ? arith::AddIOp::create(emission->at(sumLevel), loc, sum, product).getResult() : product;
  }
  if (isLast && index.offset != 0)
    sum = arith::AddIOp::create(emission->at(sumLevel), loc, sum, integer(index.offset, i64).value);
  return sum;
}

Scalar Evaluator::indexScalar(const Index &index) {
  Scalar result;
  result.value = materialize(index, result.level);
  return result;
}

std::pair<Index, Index> Evaluator::divide(const Index &index, int64_t divisor) {
  std::optional<Cut> cut;
  if (auto exact = space.divide(index, divisor, cut))
    return *exact;
  if (exactOnly && !emission && cut)
    seen.cut = cut;
  Scalar value = indexScalar(index), quotient{{}, value.level}, remainder{{}, value.level};
  if (emission) {
    Value by = integer(divisor, value.value.getType()).value;
    quotient.value = arith::DivUIOp::create(emission->at(value.level), loc, value.value, by);
    remainder.value = arith::RemUIOp::create(emission->at(value.level), loc, value.value, by);
  }
  return {opaque(space.maximum(index) / divisor + 1, quotient), opaque(divisor, remainder)};
}

ArrayRef<Index> Evaluator::indices(Position &position, Value value) {
  if (!position.indices) {
    ArrayRef<int64_t> shape = shapeOf(value);
    SmallVector<Index> indices(shape.size());
    Index rest = position.linear;
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim > 0; --dim)
      std::tie(rest, indices[dim]) = divide(rest, shape[dim]);
    if (!shape.empty())
      indices[0] = rest;
    position.indices = std::move(indices);
  }
  return *position.indices;
}

Position Position::at(SmallVector<Index> indices, Value value) {
  return {linearize(indices, shapeOf(value)), std::move(indices)};
}

Scalar Evaluator::along(Value value, const Index &linear, int64_t dim) {
  Position position{space.substitute(linear), {}};
  return indexScalar(indices(position, value)[dim]);
}

Scalar Evaluator::evaluate(Value value, const Index &linear) { return evaluate(value, Position{linear, {}}); }

Scalar Evaluator::evaluate(Value value, Position position) {
  if (seen.failed())
    return {};
  position.linear = space.substitute(position.linear);
  if (position.indices)
    for (Index &index : *position.indices)
      index = space.substitute(index);
  Key key = keyOf(value, position.linear);
  if (auto it = memory.find(key); it != memory.end())
    return it->second;
  if (++seen.visits > (emission ? kMaxEmitted : kMaxVisits) || ++nesting > 512) {
    seen.problem = "expression is too large";
    return {};
  }
  if (seen.onVisit)
    seen.onVisit(value, position.linear);

  Scalar result;
  Operation *op = value.getDefiningOp();
  if (inputs.contains(value)) {
    if (seen.onRead)
      seen.onRead(value, position.linear);
    if (std::optional<Scalar> held = emission ? emission->held(value, position.linear) : std::nullopt) {
      result = *held;
    } else {
      Scalar index = indexScalar(position.linear);
      result.level = index.level;
      if (emission)
        result.value = emission->load(value, index.value, index.level);
    }
  } else if (!op || !members.contains(op)) {
    seen.problem = "value is not part of the kernel";
  } else if (isa<train::ReduceOp, train::ArgmaxOp>(op)) {
    auto own = ownIdentity.find(op);
    if (!(position.linear == space.substitute(own == ownIdentity.end() ? keptIdentity : own->second)))
      fail(op, "a reduction is read at another position than its own");
    else if (emission)
      result = emission->reduced(op);
    else
      result.level = space.level(position.linear);
  } else {
    std::optional<Scalar> kept;
    if (emission)
      kept = emission->kept(value, position.linear);
    if (kept) {
      result = *kept;
    } else {
      result = compute(op, position);
      if (emission && !seen.failed())
        emission->computed(value, position.linear, result);
    }
  }
  --nesting;
  memory[key] = result;
  return result;
}

Scalar Evaluator::compute(Operation *op, Position &position) {
  if (isElementwise(op))
    return elementwise(op, position);
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case([&](train::ReshapeOp op) { return evaluate(op.getOperand(), position.linear); })
      .Case([&](train::StopGradientOp op) { return evaluate(op.getOperand(), position); })
      .Case([&](train::TransposeOp op) {
        ArrayRef<Index> from = indices(position, op.getResult());
        SmallVector<Index> to(from.size());
        for (auto [i, dim] : llvm::enumerate(op.getPermutation()))
          to[dim] = from[i];
        return evaluate(op.getOperand(), Position::at(std::move(to), op.getOperand()));
      })
      .Case([&](train::BroadcastOp op) {
        // A scalar is the same everywhere: the position needs no digits.
        SmallVector<Index> to(shapeOf(op.getOperand()).size(), Index::constant(0));
        if (elementsOf(shapeOf(op.getOperand())) != 1) {
          ArrayRef<Index> from = indices(position, op.getResult());
          for (auto [i, dim] : llvm::enumerate(op.getBroadcastDimensions()))
            if (shapeOf(op.getOperand())[i] != 1)
              to[i] = from[dim];
        }
        return evaluate(op.getOperand(), Position::at(std::move(to), op.getOperand()));
      })
      .Case([&](train::SliceOp op) {
        SmallVector<Index> to;
        for (auto [index, start, stride] :
             llvm::zip_equal(indices(position, op.getResult()), op.getStarts(), op.getStrides()))
          to.push_back(index * stride + start);
        return evaluate(op.getOperand(), Position::at(std::move(to), op.getOperand()));
      })
      .Case([&](train::DynamicSliceOp op) {
        SmallVector<Index> from(indices(position, op.getResult())), to;
        for (auto [index, start, extent, size] :
             llvm::zip_equal(from, op.getStarts(), shapeOf(op.getOperand()), op.getSizes()))
          to.push_back(index + clampedStart(start, extent, size));
        return evaluate(op.getOperand(), Position::at(std::move(to), op.getOperand()));
      })
      .Case([&](train::ConcatOp op) { return concat(op, position); })
      .Case([&](train::PadOp op) { return pad(op, position); })
      .Case([&](train::DynamicUpdateSliceOp op) { return updateSlice(op, position); })
      .Case([&](train::GatherRowsOp op) { return gather(op, position); })
      .Case([&](train::RngUniformOp op) { return random(op, position); })
      .Case([&](train::StochasticRoundOp op) { return roundStochastically(op, position); })
      .Case([&](train::ConstantOp op) { return constant(op, position); })
      .Case([&](train::IotaOp op) { return iota(op, position); })
      .Default([&](Operation *op) {
        fail(op, "has no generated code");
        return Scalar();
      });
}

Scalar Evaluator::elementwise(Operation *op, Position &position) {
  SmallVector<Value> operands;
  Scalar result;
  for (Value operand : op->getOperands()) {
    Scalar scalar = evaluate(operand, position);
    operands.push_back(scalar.value);
    result.level = std::max(result.level, scalar.level);
  }
  if (emission && !seen.failed()) {
    result.value = emitScalar(emission->at(result.level), op, operands);
    if (!result.value)
      fail(op, "has no generated code for its element type");
  }
  return result;
}

Scalar Evaluator::constant(train::ConstantOp op, Position &position) {
  if (!op.getValue().isSplat()) {
    Scalar index = indexScalar(position.linear);
    if (emission)
      return {emission->loadConstant(op, index.value, index.level), index.level};
    return {{}, index.level};
  }
  if (!emission)
    return {};
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements) {
    fail(op, "has no dense value");
    return {};
  }
  return {emitConstant(emission->at(0), loc, tensorType(op.getResult()).getElementType(),
                       elements.getSplatValue<Attribute>()),
          0};
}

Scalar Evaluator::iota(train::IotaOp op, Position &position) {
  Type type = tensorType(op.getResult()).getElementType();
  Scalar result = indexScalar(indices(position, op.getResult())[op.getDim()]);
  Type i64 = IntegerType::get(loc.getContext(), 64);
  if (Value offset = op.getOffset()) {
    Scalar start = evaluate(offset, Index::constant(0));
    result.level = std::max(result.level, start.level);
    if (emission && start.value) {
      OpBuilder &builder = emission->at(result.level);
      start.value = emitConvert(builder, loc, start.value, tensorType(offset).getElementType(), i64);
      result.value = arith::AddIOp::create(builder, loc, result.value, start.value);
    }
  }
  if (emission && result.value)
    result.value = emitConvert(emission->at(result.level), loc, result.value, i64, type);
  return result;
}

} // namespace tessera::codegen
