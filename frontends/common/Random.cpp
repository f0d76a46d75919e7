//===- Random.cpp - the random numbers of one call ------------------------===//
//
// See Random.h. frontends/python/tessera/draws.py computes the same numbers for comparisons with PyTorch.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Random.h"

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"

#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

/// 24 bits as a number from 0 to below 1.
Value Random::next(ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, b.builder.getF32Type());
  return RngUniformOp::create(b.builder, b.loc, type, step.seed(), ValueRange{}, stream++, DenseI64ArrayAttr());
}

Value Random::nextBits(ArrayRef<int64_t> shape) {
  return b.convert(b.scale(next(shape), 0x1p24), b.builder.getI64Type());
}

/// Two numbers in one, of 48 bits. f32 has all of them near 0, and may round up to 1.
Value Random::fine(ArrayRef<int64_t> shape, Type type) {
  Value high = b.convert(next(shape), type), low = b.convert(next(shape), type);
  return b.add(high, b.scale(low, 0x1p-24));
}

Value Random::uniform(ArrayRef<int64_t> shape, Type type) { return type.isF64() ? fine(shape, type) : next(shape); }

Value Random::normal(ArrayRef<int64_t> shape, Type type) {
  Value u = uniform(shape, type), v = uniform(shape, type);
  Value logarithm = b.unary<LogOp>(b.sub(b.splatLike(u, 1), u)); // of what is above 0
  return b.mul(b.unary<SqrtOp>(b.scale(logarithm, -2)), b.unary<CosOp>(b.scale(v, 2 * std::numbers::pi)));
}

Value Random::exponential(ArrayRef<int64_t> shape, Type type) {
  Value u = fine(shape, type);
  Value isNothing = compareWith(b, CompareDirection::Eq, u, 0);
  u = b.select(isNothing, b.splatLike(u, 0x1p-49), u); // the middle of the grid's first step
  if (!type.isF64())
    u = atMost(b, u, 1 - 0x1p-24);
  return b.neg(b.unary<Log1pOp>(b.neg(u)));
}

Value Random::cauchy(ArrayRef<int64_t> shape, Type type) {
  // Between the points of the grid, exactly.
  Value u = uniform(shape, type);
  Value angle = b.scale(plus(b, plus(b, u, -0.5), type.isF64() ? 0x1p-49 : 0x1p-25), std::numbers::pi);
  return b.div(b.unary<CosOp>(angle), b.unary<SinOp>(angle));
}

/// The complement is what a dropout of that rate compares with.
Value Random::isBelow(Value probability) {
  Value u = uniform(shapeOf(probability), tensorType(probability).getElementType());
  return b.compare(CompareDirection::Ge, u, b.sub(b.splatLike(u, 1), probability));
}
Value Random::isBelow(ArrayRef<int64_t> shape, Type type, double probability) {
  return compareWith(b, CompareDirection::Ge, uniform(shape, type), 1 - probability);
}

Value Random::bits(ArrayRef<int64_t> shape) {
  Value high = nextBits(shape), low = nextBits(shape);
  return b.add(b.scale(high, 0x1p24), low);
}

Value Random::below(ArrayRef<int64_t> shape, uint64_t count) {
  const bool isExact = llvm::isPowerOf2_64(count);
  auto fits = [&](unsigned width) {
    return isExact ? count <= uint64_t{1} << width : count <= uint64_t{1} << (width - 24);
  };
  if (count == 0 || !fits(63))
    return {};
  Value number;
  if (fits(24))
    number = nextBits(shape);
  else if (fits(48))
    number = bits(shape);
  else {
    Value most = bits(shape), more = nextBits(shape);
    number = b.add(b.scale(most, 0x1p15), b.div(more, b.splatLike(more, 0x1p9)));
  }
  if (count == uint64_t{1} << 63)
    return number;
  Value divisor = b.splatLike(number, static_cast<double>(count)); // of at most 39 bits, or a power of two
  return b.sub(number, b.mul(b.div(number, divisor), divisor));
}

} // namespace tessera::frontend
