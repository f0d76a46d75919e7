//===- EmitScalar.cpp - scalar code of elementwise ops --------------------===//
//
// Narrow floats are computed in f32 and rounded after each op, as the ops say. Contraction to fused multiply-add is
// allowed, reassociation only in sums, so that an element's value does not depend on where a loop was split.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/Evaluator.h"
#include "passes/lower/codegen/Float8.h"
#include "passes/lower/codegen/GpuMathFunctions.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Gelu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using tessera::train::tensorType;

namespace tessera::codegen {

using FastMath = arith::FastMathFlags;
static constexpr FastMath kFlags = FastMath::contract | FastMath::nsz;

Type scalarType(Type type) {
  if (type.isUnsignedInteger() || isFloat8(type))
    return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth());
  return type;
}

static bool isUnsigned(Type type) { return type.isUnsignedInteger() || type.isInteger(1); }

static bool isNarrow(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32; }

bool isElementwise(Operation *op) {
  return isa<train::ConvertOp, train::NegOp, train::AbsOp, train::ExpOp, train::LogOp, train::SqrtOp, train::RsqrtOp,
             train::Expm1Op, train::Log1pOp, train::SigmoidOp, train::SoftplusOp, train::TanhOp, train::ErfOp,
             train::GeluOp, train::GeluGradOp, train::SinOp, train::CosOp, train::AtanOp, train::AsinOp, train::AcosOp,
             train::RoundOp, train::FloorOp, train::AddOp, train::SubOp, train::MulOp, train::DivOp, train::MaxOp,
             train::PowOp, train::CompareOp, train::SelectOp, train::QuantizeScaleOp>(op);
}

bool isExpensive(Operation *op) {
  return isa<train::ExpOp, train::LogOp, train::Expm1Op, train::Log1pOp, train::SigmoidOp, train::SoftplusOp,
             train::TanhOp, train::ErfOp, train::GeluOp, train::GeluGradOp, train::SinOp, train::CosOp, train::AtanOp,
             train::AsinOp, train::AcosOp, train::PowOp, train::RngUniformOp, train::StochasticRoundOp>(op);
}

Value emitConstant(OpBuilder &builder, Location loc, Type elementType, Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(scalarType(elementType), integer.getValue()));
  if (isFloat8(elementType))
    return arith::ConstantOp::create(
        builder, loc,
        builder.getIntegerAttr(scalarType(elementType), cast<FloatAttr>(value).getValue().bitcastToAPInt()));
  return arith::ConstantOp::create(builder, loc, cast<FloatAttr>(value));
}

Value emitConstant(OpBuilder &builder, Location loc, Type elementType, double value) {
  Type type = scalarType(elementType);
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, static_cast<int64_t>(value)));
}

int64_t bytesOf(Type elementType) { return std::max<int64_t>(1, elementType.getIntOrFloatBitWidth() / 8); }

Value emitConvert(OpBuilder &builder, Location loc, Value value, Type from, Type to) {
  if (from == to)
    return value;
  Type f32 = builder.getF32Type();
  if (isFloat8(from)) {
    Value wide = emitFromFloat8(builder, loc, value, from);
    if (!to.isBF16())
      return emitConvert(builder, loc, wide, f32, to);
    // All digits are in the upper half, so that nothing is to be rounded.
    Value bits = arith::BitcastOp::create(builder, loc, builder.getI32Type(), wide);
    Value shift = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(16));
    Value upper = arith::ShRUIOp::create(builder, loc, bits, shift);
    return arith::BitcastOp::create(builder, loc, to,
                                    arith::TruncIOp::create(builder, loc, builder.getI16Type(), upper));
  }
  if (isFloat8(to))
    return emitToFloat8(builder, loc, emitConvert(builder, loc, value, from, f32), to);
  Type target = scalarType(to);
  if (to.isInteger(1)) {
    if (isa<FloatType>(from))
      return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, value,
                                   emitConstant(builder, loc, from, 0.0));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, emitConstant(builder, loc, from, 0.0));
  }
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(builder, loc, target, value);
    if (from.isF64() && isNarrow(to)) // by way of f32, as PyTorch does; processors have no instruction for it
      value = arith::TruncFOp::create(builder, loc, builder.getF32Type(), value);
    if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(builder, loc, target, value);
    return arith::TruncFOp::create(builder, loc, target,
                                   arith::ExtFOp::create(builder, loc, builder.getF32Type(), value));
  }
  if (isa<FloatType>(from)) {
    if (isNarrow(from))
      value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    if (to.isUnsignedInteger())
      return arith::FPToUIOp::create(builder, loc, target, value);
    return arith::FPToSIOp::create(builder, loc, target, value);
  }
  if (isa<FloatType>(to)) {
    Type wide = isNarrow(to) ? builder.getF32Type() : target;
    value = isUnsigned(from) ? arith::UIToFPOp::create(builder, loc, wide, value).getResult()
                             : arith::SIToFPOp::create(builder, loc, wide, value).getResult();
    return wide == target ? value : arith::TruncFOp::create(builder, loc, target, value);
  }
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(builder, loc, target, value);
  if (fromWidth == toWidth)
    return value;
  if (isUnsigned(from))
    return arith::ExtUIOp::create(builder, loc, target, value);
  return arith::ExtSIOp::create(builder, loc, target, value);
}

namespace {

/// Code for one op whose operands are of type `type` (never a narrow float).
struct ScalarEmitter {
  OpBuilder &b;
  Location loc;
  Type type;
  ArrayRef<Value> x;

  bool isFloat() const { return isa<FloatType>(type); }

  template <typename FloatOp> Value unary() { return FloatOp::create(b, loc, x[0], kFlags); }
  template <typename FloatOp, typename IntOp> Value binary() {
    if (isFloat())
      return FloatOp::create(b, loc, x[0], x[1], kFlags);
    return IntOp::create(b, loc, x[0], x[1]);
  }

  /// Of two products only one could be contracted, and which one would depend on what else the kernel computes.
  template <typename FloatOp, typename IntOp> Value sum() {
    if (x[0].getDefiningOp<arith::MulFOp>() && x[1].getDefiningOp<arith::MulFOp>())
      return FloatOp::create(b, loc, x[0], x[1], FastMath::nsz);
    return binary<FloatOp, IntOp>();
  }

  Value negate() {
    if (isFloat())
      return arith::NegFOp::create(b, loc, x[0], kFlags);
    return arith::SubIOp::create(b, loc, emitConstant(b, loc, type, 0.0), x[0]);
  }

  Value absolute() {
    if (isFloat())
      return math::AbsFOp::create(b, loc, x[0], kFlags);
    if (isUnsigned(type))
      return x[0];
    return arith::MaxSIOp::create(b, loc, x[0], negate());
  }

  Value divide() {
    if (isFloat())
      return arith::DivFOp::create(b, loc, x[0], x[1], kFlags);
    if (isUnsigned(type))
      return arith::DivUIOp::create(b, loc, x[0], x[1]);
    return arith::DivSIOp::create(b, loc, x[0], x[1]);
  }

  Value rsqrt() {
    Value root = math::SqrtOp::create(b, loc, x[0], kFlags);
    return arith::DivFOp::create(b, loc, emitConstant(b, loc, type, 1.0), root, kFlags);
  }

  Value constant(double value) { return emitConstant(b, loc, type, value); }

  /// 1 / (1 + e^-x): both ends are exact, as e^-x is 0 or infinite there.
  Value sigmoid() {
    Value power = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x[0], kFlags), kFlags);
    auto result = arith::DivFOp::create(b, loc, constant(1.0),
                                        arith::AddFOp::create(b, loc, power, constant(1.0), kFlags), kFlags);
    result->setAttr(kSigmoid, b.getUnitAttr());
    return result;
  }

  /// max(x, 0) + log1p(e^-|x|), which does not overflow.
  Value softplus() {
    Value down = arith::NegFOp::create(b, loc, math::AbsFOp::create(b, loc, x[0], kFlags), kFlags);
    Value tail = math::Log1pOp::create(b, loc, math::ExpOp::create(b, loc, down, kFlags), kFlags);
    return arith::AddFOp::create(b, loc, arith::MaximumFOp::create(b, loc, x[0], constant(0.0), kFlags), tail, kFlags);
  }

  Value product(Value a, Value c) { return arith::MulFOp::create(b, loc, a, c, kFlags); }
  Value product(Value a, double factor) { return product(a, constant(factor)); }
  Value total(Value a, Value c) {
    Value terms[] = {a, c};
    return ScalarEmitter{b, loc, type, terms}.sum<arith::AddFOp, arith::AddIOp>();
  }

  /// What GELU of v is the product of, v / 2 and 1 + inner, and what its gradient needs besides.
  struct Gelu {
    Value half, inner, factor, square;
  };
  Gelu geluParts(train::GeluForm form, Value v) {
    Gelu parts;
    if (form == train::GeluForm::Exact) {
      parts.inner = math::ErfOp::create(b, loc, product(v, std::numbers::sqrt2 / 2), kFlags);
    } else {
      parts.square = product(v, v);
      Value cube = product(product(parts.square, v), train::kGeluCubic);
      parts.inner = math::TanhOp::create(b, loc, product(total(v, cube), train::kGeluSlope), kFlags);
    }
    parts.factor = total(parts.inner, constant(1.0));
    parts.half = product(v, 0.5);
    return parts;
  }

  Value gelu(train::GeluForm form) {
    Gelu parts = geluParts(form, x[0]);
    return product(parts.half, parts.factor);
  }

  /// The terms in the order of the chain rule.
  Value geluGrad(train::GeluForm form) {
    Value g = x[0], v = x[1];
    Gelu parts = geluParts(form, v);
    Value direct = product(product(g, parts.factor), 0.5), throughInner = product(g, parts.half);
    if (form == train::GeluForm::Exact) {
      Value scaled = product(v, std::numbers::sqrt2 / 2);
      Value exponent = arith::NegFOp::create(b, loc, product(scaled, scaled), kFlags);
      Value density = product(math::ExpOp::create(b, loc, exponent, kFlags), 2 * std::numbers::inv_sqrtpi);
      return total(direct, product(product(throughInner, density), std::numbers::sqrt2 / 2));
    }
    Value slope = arith::SubFOp::create(b, loc, constant(1.0), product(parts.inner, parts.inner), kFlags);
    Value linear = product(product(throughInner, slope), train::kGeluSlope), cubic = product(linear, train::kGeluCubic);
    Value bySquare = product(product(cubic, v), v);
    return total(total(total(total(direct, linear), product(cubic, parts.square)), bySquare), bySquare);
  }

  Value maximum() {
    if (isFloat())
      return arith::MaximumFOp::create(b, loc, x[0], x[1], kFlags);
    if (type.isInteger(1))
      return arith::OrIOp::create(b, loc, x[0], x[1]);
    if (isUnsigned(type))
      return arith::MaxUIOp::create(b, loc, x[0], x[1]);
    return arith::MaxSIOp::create(b, loc, x[0], x[1]);
  }

  Value compare(train::CompareDirection direction) {
    using Float = arith::CmpFPredicate;
    using Int = arith::CmpIPredicate;
    static constexpr Float floats[] = {Float::OEQ, Float::UNE, Float::OLT, Float::OLE, Float::OGT, Float::OGE};
    static constexpr Int ints[] = {Int::eq, Int::ne, Int::slt, Int::sle, Int::sgt, Int::sge};
    static constexpr Int unsignedInts[] = {Int::eq, Int::ne, Int::ult, Int::ule, Int::ugt, Int::uge};
    auto which = static_cast<unsigned>(direction);
    if (isFloat())
      return arith::CmpFOp::create(b, loc, floats[which], x[0], x[1]);
    return arith::CmpIOp::create(b, loc, (isUnsigned(type) ? unsignedInts : ints)[which], x[0], x[1]);
  }

  Value emit(Operation *op) {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](train::NegOp) { return negate(); })
        .Case([&](train::AbsOp) { return absolute(); })
        .Case([&](train::ExpOp) { return unary<math::ExpOp>(); })
        .Case([&](train::LogOp) { return unary<math::LogOp>(); })
        .Case([&](train::SqrtOp) { return unary<math::SqrtOp>(); })
        .Case([&](train::RsqrtOp) { return rsqrt(); })
        .Case([&](train::TanhOp) { return unary<math::TanhOp>(); })
        .Case([&](train::ErfOp) { return unary<math::ErfOp>(); })
        .Case([&](train::GeluOp op) { return gelu(op.getForm()); })
        .Case([&](train::GeluGradOp op) { return geluGrad(op.getForm()); })
        .Case([&](train::SinOp) { return unary<math::SinOp>(); })
        .Case([&](train::CosOp) { return unary<math::CosOp>(); })
        .Case([&](train::Expm1Op) { return unary<math::ExpM1Op>(); })
        .Case([&](train::Log1pOp) { return unary<math::Log1pOp>(); })
        .Case([&](train::SigmoidOp) { return sigmoid(); })
        .Case([&](train::SoftplusOp) { return softplus(); })
        .Case([&](train::AtanOp) { return unary<math::AtanOp>(); })
        .Case([&](train::AsinOp) { return unary<math::AsinOp>(); })
        .Case([&](train::AcosOp) { return unary<math::AcosOp>(); })
        .Case([&](train::RoundOp) { return unary<math::RoundEvenOp>(); })
        .Case([&](train::FloorOp) { return unary<math::FloorOp>(); })
        .Case([&](train::AddOp) { return sum<arith::AddFOp, arith::AddIOp>(); })
        .Case([&](train::SubOp) { return sum<arith::SubFOp, arith::SubIOp>(); })
        .Case([&](train::MulOp) { return binary<arith::MulFOp, arith::MulIOp>(); })
        .Case([&](train::DivOp) { return divide(); })
        .Case([&](train::MaxOp) { return maximum(); })
        .Case([&](train::PowOp) -> Value { return math::PowFOp::create(b, loc, x[0], x[1], kFlags); })
        .Case([&](train::CompareOp op) { return compare(op.getDirection()); })
        .Default([](Operation *) { return Value(); });
  }
};

} // namespace

Value emitScalar(OpBuilder &builder, Operation *op, ArrayRef<Value> operands) {
  Location loc = op->getLoc();
  Type from = tensorType(op->getOperand(0)).getElementType(), to = tensorType(op->getResult(0)).getElementType();
  if (isa<train::ConvertOp>(op))
    return emitConvert(builder, loc, operands[0], from, to);
  if (isa<train::SelectOp>(op))
    return arith::SelectOp::create(builder, loc, operands[0], operands[1], operands[2]);
  if (auto scale = dyn_cast<train::QuantizeScaleOp>(op))
    return emitQuantizeScale(builder, scale, operands[0]);
  SmallVector<Value> wide(operands);
  Type type = from;
  if (isNarrow(from)) {
    type = builder.getF32Type();
    for (Value &value : wide)
      value = emitConvert(builder, loc, value, from, type);
  }
  Value result = ScalarEmitter{builder, loc, type, wide}.emit(op);
  return result && isNarrow(to) && result.getType() != to ? emitConvert(builder, loc, result, type, to) : result;
}

Type accumulatedType(Operation *reduction) {
  return train::accumulationType(tensorType(reduction->getOperand(0)).getElementType());
}

Value emitGreater(OpBuilder &builder, Location loc, Type element, Value a, Value b) {
  if (isa<FloatType>(element))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, a, b);
  const auto predicate = isUnsigned(element) ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

Value emitCombine(OpBuilder &builder, Location loc, train::ReduceKind kind, Type element, Value accumulator,
                  Value value) {
  bool isFloat = isa<FloatType>(element);
  // Without nsz, which would let LLVM take factors out of sums.
  FastMath flags = FastMath::contract | FastMath::reassoc;
  switch (kind) {
  case train::ReduceKind::Sum:
    return isFloat ? arith::AddFOp::create(builder, loc, accumulator, value, flags).getResult()
                   : arith::AddIOp::create(builder, loc, accumulator, value).getResult();
  case train::ReduceKind::Mul:
    return isFloat ? arith::MulFOp::create(builder, loc, accumulator, value, flags).getResult()
                   : arith::MulIOp::create(builder, loc, accumulator, value).getResult();
  case train::ReduceKind::Max:
    return isFloat               ? arith::MaximumFOp::create(builder, loc, accumulator, value).getResult()
           : isUnsigned(element) ? arith::MaxUIOp::create(builder, loc, accumulator, value).getResult()
                                 : arith::MaxSIOp::create(builder, loc, accumulator, value).getResult();
  case train::ReduceKind::Min:
    return isFloat               ? arith::MinimumFOp::create(builder, loc, accumulator, value).getResult()
           : isUnsigned(element) ? arith::MinUIOp::create(builder, loc, accumulator, value).getResult()
                                 : arith::MinSIOp::create(builder, loc, accumulator, value).getResult();
  }
  return {};
}

Value emitNeutral(OpBuilder &builder, Location loc, train::ReduceKind kind, Type element) {
  Type type = scalarType(element);
  if (kind == train::ReduceKind::Sum || kind == train::ReduceKind::Mul)
    return emitConstant(builder, loc, type, kind == train::ReduceKind::Sum ? 0.0 : 1.0);
  bool isMax = kind == train::ReduceKind::Max;
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(floating, APFloat::getInf(floating.getFloatSemantics(), isMax)));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt limit = isUnsigned(element) ? (isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                    : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, limit));
}

Value emitPhilox(OpBuilder &builder, Location loc, Value seed, Value index, int64_t stream, unsigned output) {
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto word = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(i32, APInt(32, value)));
  };
  auto low = [&](Value value) -> Value { return arith::TruncIOp::create(builder, loc, i32, value); };
  auto high = [&](Value value) -> Value {
    Value by = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
    return low(arith::ShRUIOp::create(builder, loc, value, by));
  };
  auto exclusive = [&](Value a, Value b) -> Value { return arith::XOrIOp::create(builder, loc, a, b); };
  auto unsignedStream = static_cast<uint64_t>(stream);
  Value counter[4] = {low(index), high(index), word(unsignedStream), word(unsignedStream >> 32)};
  Value key[2] = {low(seed), high(seed)};
  for (int round = 0; round < 10; ++round) {
    auto product = [&](uint32_t factor, Value value) -> Value {
      Value wide = arith::ExtUIOp::create(builder, loc, i64, value);
      Value by = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(factor));
      return arith::MulIOp::create(builder, loc, wide, by);
    };
    Value p0 = product(0xD2511F53u, counter[0]), p1 = product(0xCD9E8D57u, counter[2]);
    Value next[4] = {exclusive(exclusive(high(p1), counter[1]), key[0]), low(p1),
                     exclusive(exclusive(high(p0), counter[3]), key[1]), low(p0)};
    llvm::copy(next, counter);
    key[0] = arith::AddIOp::create(builder, loc, key[0], word(0x9E3779B9u));
    key[1] = arith::AddIOp::create(builder, loc, key[1], word(0xBB67AE85u));
  }
  return counter[output];
}

static Value wordConstant(OpBuilder &builder, Location loc, uint32_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(builder.getI32Type(), APInt(32, value)));
}

Value emitUniform(OpBuilder &builder, Location loc, Value word) {
  Value top = arith::ShRUIOp::create(builder, loc, word, wordConstant(builder, loc, 8));
  Value number = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), top);
  Value step = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0x1p-24f));
  return arith::MulFOp::create(builder, loc, number, step);
}

Value emitStochasticRound(OpBuilder &builder, Location loc, Value x, Value word, bool upperHalf) {
  Type i16 = builder.getIntegerType(16), i32 = builder.getI32Type(), bf16 = builder.getBF16Type();
  auto constant = [&](uint32_t value) { return wordConstant(builder, loc, value); };
  Value random = upperHalf ? arith::ShRUIOp::create(builder, loc, word, constant(16)).getResult()
                           : arith::AndIOp::create(builder, loc, word, constant(0xffff)).getResult();
  Value bits = arith::BitcastOp::create(builder, loc, i32, x);
  Value sum = arith::AddIOp::create(builder, loc, bits, random);
  Value half = arith::TruncIOp::create(builder, loc, i16, arith::ShRUIOp::create(builder, loc, sum, constant(16)));
  Value rounded = arith::BitcastOp::create(builder, loc, bf16, half);
  // Infinities, and what is no number, have no neighbours.
  Value exponent = arith::AndIOp::create(builder, loc, bits, constant(0x7f800000u));
  Value isFinite = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, exponent, constant(0x7f800000u));
  return arith::SelectOp::create(builder, loc, isFinite, rounded, arith::TruncFOp::create(builder, loc, bf16, x));
}

} // namespace tessera::codegen
