//===- Float8.cpp - scalar code of 8-bit floats ---------------------------===//
//
// See Float8.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/Float8.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

/// The layout of a format, and its relation to f32.
struct Format {
  int mantissa;      ///< bits
  int bias;          ///< of the exponent
  uint32_t overflow; ///< the bits of what is too large
  uint32_t nan;

  static Format of(Type type) {
    return isa<Float8E4M3FNType>(type) ? Format{3, 7, 0x7f, 0x7f} : Format{2, 15, 0x7c, 0x7f};
  }
  /// Bits of an f32 mantissa that are dropped.
  int dropped() const { return 23 - mantissa; }
  /// The smallest normal number is 2^(1 - bias), and denormal numbers are multiples of 2^(1 - bias - mantissa).
  uint32_t smallestNormal() const { return static_cast<uint32_t>(127 + 1 - bias) << 23; }
  /// The f32 whose last digit counts as much as that of a denormal number.
  uint32_t denormalUnit() const { return static_cast<uint32_t>(127 + 1 - bias - mantissa + 23) << 23; }
};

/// Integer code on 32-bit words.
struct Words {
  OpBuilder &b;
  Location loc;

  Value word(uint32_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(b.getI32Type(), APInt(32, value)));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value mask(Value x, uint32_t bits) { return arith::AndIOp::create(b, loc, x, word(bits)); }
  Value join(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value right(Value x, uint32_t by) { return arith::ShRUIOp::create(b, loc, x, word(by)); }
  Value left(Value x, uint32_t by) { return arith::ShLIOp::create(b, loc, x, word(by)); }
  Value least(Value x, uint32_t limit) { return arith::MinUIOp::create(b, loc, x, word(limit)); }
  Value compare(arith::CmpIPredicate predicate, Value x, uint32_t y) {
    return arith::CmpIOp::create(b, loc, predicate, x, word(y));
  }
  Value select(Value predicate, Value x, Value y) { return arith::SelectOp::create(b, loc, predicate, x, y); }
  Value toBits(Value x) { return arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
  Value toFloat(Value x) { return arith::BitcastOp::create(b, loc, b.getF32Type(), x); }
};

constexpr uint32_t kMagnitude = 0x7fffffff, kInfinityBits = 0x7f800000;

} // namespace

bool isFloat8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type, Float8E8M0FNUType>(type); }

/// The exponent of a number that is not negative, rounded to the nearest power of two, between two to the larger.
static Value toExponent(OpBuilder &builder, Location loc, Value value) {
  Words w{builder, loc};
  Value bits = w.mask(w.toBits(value), kMagnitude);
  Value half = w.select(w.compare(arith::CmpIPredicate::ult, bits, 0x00800000), w.word(0x00200000), w.word(0x00400000));
  Value exponent = w.least(w.right(w.add(bits, half), 23), 0xff);
  return arith::TruncIOp::create(builder, loc, builder.getI8Type(), exponent);
}

/// 2 to the exponent less 127, or NaN.
static Value fromExponent(OpBuilder &builder, Location loc, Value bits) {
  using Predicate = arith::CmpIPredicate;
  Words w{builder, loc};
  Value exponent = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), bits);
  Value number = w.select(w.compare(Predicate::eq, exponent, 0), w.word(0x00400000), w.left(exponent, 23));
  return w.toFloat(w.select(w.compare(Predicate::eq, exponent, 0xff), w.word(0x7fc00000), number));
}

Value emitToFloat8(OpBuilder &builder, Location loc, Value value, Type type) {
  if (isa<Float8E8M0FNUType>(type))
    return toExponent(builder, loc, value);
  Value cast = arith::TruncFOp::create(builder, loc, type, value);
  return arith::BitcastOp::create(builder, loc, builder.getI8Type(), cast);
}

Value emitFromFloat8(OpBuilder &builder, Location loc, Value bits, Type type) {
  if (isa<Float8E8M0FNUType>(type))
    return fromExponent(builder, loc, bits);
  Value number = arith::BitcastOp::create(builder, loc, type, bits);
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), number);
}

namespace {

/// The bits of an f32 rounded to `type`.
Value roundedBits(OpBuilder &builder, Location loc, Value value, Type type) {
  using Predicate = arith::CmpIPredicate;
  const Format format = Format::of(type);
  Words w{builder, loc};
  Value bits = w.toBits(value), magnitude = w.mask(bits, kMagnitude);
  // Half a unit less one, and one more where the last digit kept is odd.
  Value odd = w.mask(w.right(magnitude, format.dropped()), 1);
  Value rounded = w.right(w.add(w.add(magnitude, w.word((1u << (format.dropped() - 1)) - 1)), odd), format.dropped());
  Value normal =
      w.least(w.sub(rounded, w.word(static_cast<uint32_t>(127 - format.bias) << format.mantissa)), format.overflow);
  // The addition rounds to multiples of the smallest denormal number, whose count is what is left in the last digits.
  Value sum = arith::AddFOp::create(builder, loc, w.toFloat(magnitude), w.toFloat(w.word(format.denormalUnit())));
  Value denormal = w.sub(w.toBits(sum), w.word(format.denormalUnit()));
  Value result = w.select(w.compare(Predicate::ult, magnitude, format.smallestNormal()), denormal, normal);
  result = w.select(w.compare(Predicate::ugt, magnitude, kInfinityBits), w.word(format.nan), result);
  result = w.join(result, w.mask(w.right(bits, 24), 0x80));
  return arith::TruncIOp::create(builder, loc, builder.getI8Type(), result);
}

/// The f32 of the bits of a `type`.
Value widened(OpBuilder &builder, Location loc, Value value, Type type) {
  using Predicate = arith::CmpIPredicate;
  const Format format = Format::of(type);
  Words w{builder, loc};
  Value bits = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), value);
  Value magnitude = w.mask(bits, 0x7f), moved = w.left(magnitude, format.dropped());
  Value normal = w.add(moved, w.word(static_cast<uint32_t>(127 - format.bias) << 23));
  // The digits of a denormal number behind a one, less that one. No operand is a denormal f32: those take some
  // processors a hundred times as long.
  Value least = w.word(format.smallestNormal());
  Value digits = arith::SubFOp::create(builder, loc, w.toFloat(w.join(moved, least)), w.toFloat(least));
  Value number = w.select(w.compare(Predicate::ult, magnitude, 1u << format.mantissa), w.toBits(digits), normal);
  const uint32_t first = isa<Float8E4M3FNType>(type) ? format.nan : format.overflow;
  const uint32_t special = isa<Float8E4M3FNType>(type) ? 0x7fc00000 : kInfinityBits;
  Value result = w.select(w.compare(Predicate::uge, magnitude, first), w.join(moved, w.word(special)), number);
  return w.toFloat(w.join(result, w.left(w.mask(bits, 0x80), 24)));
}

} // namespace

Float8Casts findFloat8Casts(Block &block) {
  Float8Casts casts;
  for (Operation &op : block) {
    if (auto cast = dyn_cast<arith::TruncFOp>(op); cast && isFloat8(cast.getType()))
      casts.narrowing.push_back({cast, *cast->user_begin()});
    else if (auto cast = dyn_cast<arith::ExtFOp>(op); cast && isFloat8(cast.getIn().getType()))
      casts.widening.push_back({cast.getIn().getDefiningOp(), cast});
  }
  return casts;
}

void replaceFloat8Cast(const Float8Cast &cast, Value made) {
  cast.last->getResult(0).replaceAllUsesWith(made);
  cast.last->erase();
  cast.first->erase();
}

void expandFloat8(ModuleOp module) {
  module.walk([](Block *block) {
    const Float8Casts casts = findFloat8Casts(*block);
    for (const Float8Cast &cast : casts.narrowing) {
      OpBuilder builder(cast.last);
      replaceFloat8Cast(cast, roundedBits(builder, cast.last->getLoc(), cast.operand(), cast.type()));
    }
    for (const Float8Cast &cast : casts.widening) {
      OpBuilder builder(cast.last);
      replaceFloat8Cast(cast, widened(builder, cast.last->getLoc(), cast.operand(), cast.type()));
    }
  });
}

Value emitQuantizeScale(OpBuilder &builder, train::QuantizeScaleOp op, Value amax) {
  using Predicate = arith::CmpIPredicate;
  Location loc = op.getLoc();
  Words w{builder, loc};
  const auto format = cast<FloatType>(op.getFormat());
  const APFloat largest = APFloat::getLargest(format.getFloatSemantics());
  Value scale;
  if (op.getRounding() == train::ScaleRounding::E8M0) {
    Value limit = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(largest.convertToFloat()));
    Value bits = w.toBits(arith::DivFOp::create(builder, loc, amax, limit));
    // The exponent of the quotient, one more where digits follow; of a denormal number 2^-127, where it is not above
    // that. That of the inverse counts down from 254.
    Value field = w.right(w.mask(bits, kInfinityBits), 23), digits = w.mask(bits, 0x007fffff);
    Value isAbove = w.select(w.compare(Predicate::eq, field, 0), w.compare(Predicate::ugt, digits, 0x00400000),
                             w.compare(Predicate::ne, digits, 0));
    Value exponent = w.add(field, w.select(isAbove, w.word(1), w.word(0)));
    Value inverse = w.toFloat(w.left(w.sub(w.word(254), w.least(exponent, 253)), 23));
    Value isFinite = w.compare(Predicate::ult, w.mask(bits, kMagnitude), kInfinityBits);
    scale = w.select(isFinite, inverse, w.toFloat(w.word(0x7fc00000)));
  } else {
    auto wide = [&](double value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(value));
    };
    Value divisor = arith::MaximumFOp::create(
        builder, loc, arith::ExtFOp::create(builder, loc, builder.getF64Type(), amax), wide(1e-12));
    Value quotient = arith::DivFOp::create(builder, loc, wide(largest.convertToDouble()), divisor);
    scale = arith::TruncFOp::create(builder, loc, builder.getF32Type(), quotient);
    if (op.getRounding() == train::ScaleRounding::Down) {
      // Without its digits; NaN would become infinite.
      Value isNumber = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, scale, scale);
      scale = w.select(isNumber, w.toFloat(w.mask(w.toBits(scale), kInfinityBits)), scale);
    }
  }
  if (!op.getOneIfNotFinite())
    return scale;
  Value isFinite = w.compare(Predicate::ult, w.mask(w.toBits(amax), kMagnitude), kInfinityBits);
  return w.select(isFinite, scale, arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f)));
}

} // namespace tessera::codegen
