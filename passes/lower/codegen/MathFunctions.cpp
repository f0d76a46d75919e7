//===- MathFunctions.cpp - f32 functions as arithmetic --------------------===//
//
// Each function is arithmetic without branches or calls, which LLVM vectorises, and is within 2 units in the last place
// of the exact value for every f32: subnormal numbers, results that overflow or underflow, infinities and NaN.
//
// Reduction, and the polynomials of exp, log and tanh: Cephes (Moshier, expf.c, logf.c, tanhf.c). Those of erf: Juffa,
// "A fast, accurate and vectorizable erff". Their errors are measured by tests/passes/lower/codegen/accuracy.mlir.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/MathFunctions.h"

#include "passes/lower/codegen/ScalarBuilder.h"

#include <limits>

using namespace mlir;

namespace tessera::codegen {
namespace {
constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

/// log(2) in two parts: the product of the first with an exponent is exact.
constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;

/// x = n·log(2) + r with |r| <= log(2)/2, and exp(r) - 1.
struct Reduced {
  Value n, expm1;
};

Reduced reduce(ScalarBuilder &s, Value x) {
  // Adding 1.5·2^23 rounds to an integer, which is then in the low bits.
  Value shift = s.number(0x1.8p23f);
  Value shifted = s.fma(x, s.number(1.44269504088896341f), shift);
  Value n = s.subInt(s.bits(shifted), s.bits(shift)), whole = s.sub(shifted, shift);
  Value r = s.fma(whole, s.number(-kLog2High), x);
  r = s.fma(whole, s.number(-kLog2Low), r);
  Value tail = s.polynomial(
      r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  return {n, s.fma(tail, s.mul(r, r), r)};
}

/// x·2^n, in two steps: n may be larger than an exponent, and the result subnormal.
Value scale(ScalarBuilder &s, Value x, Value n) {
  Value half = s.shiftRight(n, 1);
  return s.mul(s.mul(x, s.powerOfTwo(half)), s.powerOfTwo(s.subInt(n, half)));
}

Value expandExp(ScalarBuilder &s, Value x) {
  // Beyond the bounds the result is 0 and infinite.
  Reduced reduced = reduce(s, s.clamp(x, -105.0f, 89.0f));
  return scale(s, s.add(reduced.expm1, s.number(1.0f)), reduced.n);
}

/// exp(x) - 1 = 2^n·(exp(r) - 1 + (1 - 2^-n)).
Value expandExpm1(ScalarBuilder &s, Value x) {
  // Below the bound the result is -1.
  Reduced reduced = reduce(s, s.clamp(x, -18.0f, 89.0f));
  Value inverse = s.powerOfTwo(s.subInt(s.integer(0), s.least(reduced.n, 126)));
  return scale(s, s.add(reduced.expm1, s.sub(s.number(1.0f), inverse)), reduced.n);
}

/// A positive number as mantissa·2^exponent, with the mantissa in [sqrt(1/2), sqrt(2)).
struct Split {
  Value mantissa, exponent;
};

Split split(ScalarBuilder &s, Value x) {
  Value subnormal = s.compare(ScalarBuilder::Float::OLT, x, 0x1p-126f);
  Value bits = s.bits(s.select(subnormal, s.mul(x, s.number(0x1p23f)), x));
  Value exponent = s.shiftRight(s.subInt(bits, s.integer(0x3f3504f3)), ScalarBuilder::kMantissaBits);
  Value mantissa = s.ofBits(s.subInt(bits, s.shiftLeft(exponent, ScalarBuilder::kMantissaBits)));
  return {mantissa, s.subInt(exponent, s.select(subnormal, s.integer(ScalarBuilder::kMantissaBits), s.integer(0)))};
}

/// log(1 + f) + exponent·log(2) for 1 + f in [sqrt(1/2), sqrt(2)); `x` is the number of which it is the logarithm.
Value logarithm(ScalarBuilder &s, Value f, Value exponent, Value x) {
  Value square = s.mul(f, f), e = s.toFloat(exponent);
  Value tail =
      s.polynomial(f, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                       -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  Value y = s.mul(s.mul(tail, f), square);
  y = s.fma(e, s.number(kLog2Low), y);
  y = s.fma(s.number(-0.5f), square, y);
  y = s.fma(e, s.number(kLog2High), s.add(f, y));
  y = s.select(s.compare(ScalarBuilder::Float::OEQ, x, 0.0f), s.number(-kFloatInfinity), y);
  y = s.select(s.compare(ScalarBuilder::Float::OLT, x, 0.0f), s.number(std::numeric_limits<float>::quiet_NaN()), y);
  // Infinity and NaN stay.
  return s.select(s.compare(ScalarBuilder::Float::UGE, x, kFloatInfinity), x, y);
}

Value expandLog(ScalarBuilder &s, Value x) {
  Split parts = split(s, x);
  return logarithm(s, s.sub(parts.mantissa, s.number(1.0f)), parts.exponent, x);
}

/// The logarithm of u = 1 + x, with what the sum lost to rounding added to its mantissa.
Value expandLog1p(ScalarBuilder &s, Value x) {
  Value one = s.number(1.0f), u = s.add(x, one), lost = s.sub(x, s.sub(u, one));
  Split parts = split(s, u);
  Value n = s.least(s.most(parts.exponent, -126), 126);
  lost = s.mul(lost, s.powerOfTwo(s.subInt(s.integer(0), n)));
  lost = s.select(s.compare(ScalarBuilder::Float::UGE, u, 0x1p24f), s.number(0.0f), lost);
  return logarithm(s, s.add(s.sub(parts.mantissa, one), lost), parts.exponent, u);
}

/// x + x^3·p(x^2) near 0, else 1 - 2 / (exp(2|x|) + 1) with the sign of x.
Value expandTanh(ScalarBuilder &s, Value x) {
  Value magnitude = s.abs(x), square = s.mul(x, x), one = s.number(1.0f);
  Value p = s.polynomial(
      square, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f});
  Value near = s.fma(s.mul(p, square), x, x);
  Value power = expandExp(s, s.add(magnitude, magnitude));
  Value far = s.sub(one, s.div(s.number(2.0f), s.add(power, one)));
  return s.select(s.compare(ScalarBuilder::Float::OLT, magnitude, 0.625f), near, s.withSign(far, x));
}

/// x + x·p(x^2) near 0, else 1 - exp(q(|x|)) with the sign of x.
Value expandErf(ScalarBuilder &s, Value x) {
  Value magnitude = s.abs(x), square = s.mul(x, x);
  Value near = s.polynomial(
      square, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  near = s.fma(near, x, x);
  Value q = s.fma(s.number(-1.72853470e-5f), magnitude, s.number(3.83197126e-4f));
  q = s.fma(q, square, s.fma(s.number(-3.88396438e-3f), magnitude, s.number(2.42546219e-2f)));
  q = s.fma(q, magnitude, s.number(-1.06777877e-1f));
  q = s.fma(q, magnitude, s.number(-6.34846687e-1f));
  q = s.fma(q, magnitude, s.number(-1.28717512e-1f));
  q = s.fma(q, magnitude, s.neg(magnitude));
  Value far = s.withSign(s.sub(s.number(1.0f), expandExp(s, q)), x);
  return s.select(s.compare(ScalarBuilder::Float::OGT, magnitude, 0.927734375f), far, near);
}

} // namespace

void addMathFunctions(RewritePatternSet &patterns) {
  patterns.add<Expand<math::ExpOp, expandExp>, Expand<math::ExpM1Op, expandExpm1>, Expand<math::LogOp, expandLog>,
               Expand<math::Log1pOp, expandLog1p>, Expand<math::TanhOp, expandTanh>, Expand<math::ErfOp, expandErf>>(
      patterns.getContext());
}

} // namespace tessera::codegen
