//===- GpuMathFunctions.cpp - f32 functions by a GPU's own units ----------===//
//
// exp, tanh, erf and the sigmoid, for kernels that are to wait for memory only. The units for 2^x and 1/x
// are within 2 and 1 units in the last place (PTX ISA 9.7.3, ex2 and rcp); what is built here keeps, with errors of
// that size, the bounds that docs/codegen.md states and tests/passes/lower/codegen/gpu-accuracy.test asserts. Special
// cases need no code: infinities and NaN go through, and what underflows is rounded by the last product.
//
// log, log1p and expm1 stay arithmetic: lg2.approx is not exact enough near 1, and none of them is computed for each
// element of a large value.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuMathFunctions.h"

#include "passes/lower/codegen/ScalarBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// log2(e), and what its f32 leaves out.
constexpr float kLog2e = 0x1.715476p0f, kLog2eRest = 0x1.4ae0cp-26f;

Value callUnit(ScalarBuilder &s, StringRef intrinsic, Value x) {
  return LLVM::CallIntrinsicOp::create(s.b, s.loc, x.getType(), s.b.getStringAttr(intrinsic), ValueRange{x})
      .getResult(0);
}

Value exp2(ScalarBuilder &s, Value x) { return callUnit(s, kExp2Intrinsic, x); }
Value reciprocal(ScalarBuilder &s, Value x) { return callUnit(s, kReciprocalIntrinsic, x); }

/// 2^f·2^n with n = round(x·log2(e)) and f = x·log2(e) - n. n stays that of a normal number: beyond, f is larger than a
/// half, and the product overflows or is rounded to a subnormal number. 3 units in the last place.
Value expandGpuExp(ScalarBuilder &s, Value x) {
  Value bounded = arith::MaxNumFOp::create(s.b, s.loc, x, s.number(-87.3f));
  bounded = arith::MinNumFOp::create(s.b, s.loc, bounded, s.number(88.0f));
  // Adding 1.5·2^23 rounds to an integer, which with the exponent's bias is then in the low bits.
  Value shift = s.number(0x1.8p23f + ScalarBuilder::kExponentBias);
  Value shifted = s.fma(bounded, s.number(kLog2e), shift);
  Value minusN = s.sub(shift, shifted);
  Value f = s.fma(x, s.number(kLog2e), minusN);
  f = s.fma(x, s.number(kLog2eRest), f);
  return s.mul(exp2(s, f), s.ofBits(s.shiftLeft(s.bits(shifted), ScalarBuilder::kMantissaBits)));
}

/// x + x^3·p(x^2) near 0, else 1 - 2 / (2^(2|x|·log2(e)) + 1) with the sign of x. 4 units in the last place.
Value expandGpuTanh(ScalarBuilder &s, Value x) {
  Value magnitude = s.abs(x), square = s.mul(x, x), one = s.number(1.0f);
  Value p = s.polynomial(square, {1.64375808e-2f, -5.26718125e-2f, 1.33207247e-1f, -3.33329469e-1f});
  Value near = s.fma(s.mul(p, square), x, x);
  Value power = exp2(s, s.mul(magnitude, s.number(2 * kLog2e)));
  Value far = s.fma(s.number(-2.0f), reciprocal(s, s.add(power, one)), one);
  return s.select(s.compare(ScalarBuilder::Float::OLT, magnitude, 0.55f), near, s.withSign(far, x));
}

/// x + x·p(x^2) near 0, else 1 - 2^(|x|·q(|x|)) with the sign of x: Juffa's polynomials, q times log2(e). 3 units in
/// the last place.
Value expandGpuErf(ScalarBuilder &s, Value x) {
  Value magnitude = s.abs(x), square = s.mul(x, x);
  Value p = s.polynomial(
      square, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  Value near = s.fma(p, x, x);
  Value q = s.polynomial(magnitude, {-2.49374843e-5f, 5.52836573e-4f, -5.60337631e-3f, 3.49920243e-2f, -1.54047906e-1f,
                                     -9.15890157e-1f, -1.6283952f});
  Value far = s.withSign(s.sub(s.number(1.0f), exp2(s, s.mul(q, magnitude))), x);
  return s.select(s.compare(ScalarBuilder::Float::OGT, magnitude, 0.927734375f), far, near);
}

/// e·r below 0 and 1 - e·r above, of e = e^-|x| and r = 1 / (1 + e): the unit's error is one of what is small, so that
/// the sigmoid is 1 where it should be, and 1 minus it as exact as rounding allows. 6 units in the last place.
struct ExpandSigmoid : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    auto sum = op.getRhs().getDefiningOp<arith::AddFOp>();
    auto power = sum ? sum.getLhs().getDefiningOp<math::ExpOp>() : math::ExpOp();
    if (!op->hasAttr(kSigmoid) || !op.getType().isF32() || !power)
      return failure();
    ScalarBuilder s{rewriter, op.getLoc()};
    Value negated = power.getOperand(), one = s.number(1.0f);
    Value e = math::ExpOp::create(rewriter, op.getLoc(), s.neg(s.abs(negated)));
    Value r = reciprocal(s, s.add(e, one));
    rewriter.replaceOp(
        op, s.select(s.compare(ScalarBuilder::Float::OGT, negated, 0.0f), s.mul(e, r), s.fma(s.neg(e), r, one)));
    return success();
  }
};
} // namespace

LogicalResult useGpuMath(ModuleOp module) {
  MLIRContext *context = module.getContext();
  // The sigmoid is known by its e^-x.
  RewritePatternSet sigmoid(context), patterns(context);
  sigmoid.add<ExpandSigmoid>(context);
  patterns
      .add<Expand<math::ExpOp, expandGpuExp>, Expand<math::TanhOp, expandGpuTanh>, Expand<math::ErfOp, expandGpuErf>>(
          context);
  const GreedyRewriteConfig config = GreedyRewriteConfig().enableFolding(false);
  if (failed(applyPatternsGreedily(module, std::move(sigmoid), config)))
    return failure();
  return applyPatternsGreedily(module, std::move(patterns), config);
}

} // namespace tessera::codegen
