//===- ScalarBuilder.h - f32 arithmetic in a few words ----------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_SCALARBUILDER_H
#define TESSERA_PASSES_LOWER_CODEGEN_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Builds f32 and i32 arithmetic at one place.
struct ScalarBuilder {
  using Float = mlir::arith::CmpFPredicate;
  static constexpr int kExponentBias = 127, kMantissaBits = 23;

  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value number(float value) { return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  mlir::Value integer(int32_t value) { return mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddFOp::create(b, loc, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubFOp::create(b, loc, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return mlir::arith::MulFOp::create(b, loc, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return mlir::arith::DivFOp::create(b, loc, x, y); }
  mlir::Value neg(mlir::Value x) { return mlir::arith::NegFOp::create(b, loc, x); }
  mlir::Value abs(mlir::Value x) { return mlir::math::AbsFOp::create(b, loc, x); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) { return mlir::math::FmaOp::create(b, loc, x, y, z); }
  mlir::Value withSign(mlir::Value magnitude, mlir::Value sign) {
    return mlir::math::CopySignOp::create(b, loc, magnitude, sign);
  }
  mlir::Value compare(Float predicate, mlir::Value x, float y) {
    return mlir::arith::CmpFOp::create(b, loc, predicate, x, number(y));
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  mlir::Value addInt(mlir::Value x, mlir::Value y) { return mlir::arith::AddIOp::create(b, loc, x, y); }
  mlir::Value subInt(mlir::Value x, mlir::Value y) { return mlir::arith::SubIOp::create(b, loc, x, y); }
  mlir::Value shiftLeft(mlir::Value x, int32_t by) { return mlir::arith::ShLIOp::create(b, loc, x, integer(by)); }
  mlir::Value shiftRight(mlir::Value x, int32_t by) { return mlir::arith::ShRSIOp::create(b, loc, x, integer(by)); }
  mlir::Value least(mlir::Value x, int32_t y) { return mlir::arith::MinSIOp::create(b, loc, x, integer(y)); }
  mlir::Value most(mlir::Value x, int32_t y) { return mlir::arith::MaxSIOp::create(b, loc, x, integer(y)); }
  mlir::Value bits(mlir::Value x) { return mlir::arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
  mlir::Value ofBits(mlir::Value x) { return mlir::arith::BitcastOp::create(b, loc, b.getF32Type(), x); }
  mlir::Value toFloat(mlir::Value x) { return mlir::arith::SIToFPOp::create(b, loc, b.getF32Type(), x); }

  /// The polynomial in x with these coefficients, the highest first.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<float> coefficients) {
    mlir::Value sum = number(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(coefficient));
    return sum;
  }
  /// x within [low, high]; NaN stays.
  mlir::Value clamp(mlir::Value x, float low, float high) {
    x = select(compare(Float::OLT, x, low), number(low), x);
    return select(compare(Float::OGT, x, high), number(high), x);
  }
  /// 2^n for n in [-126, 127].
  mlir::Value powerOfTwo(mlir::Value n) { return ofBits(shiftLeft(addInt(n, integer(kExponentBias)), kMantissaBits)); }
};

/// A function of f32 as what `expand` makes of it.
template <typename Op, mlir::Value (*expand)(ScalarBuilder &, mlir::Value)> struct Expand : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  llvm::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return llvm::failure();
    ScalarBuilder scalar{rewriter, op.getLoc()};
    rewriter.replaceOp(op, expand(scalar, op.getOperand()));
    return llvm::success();
  }
};

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_SCALARBUILDER_H
