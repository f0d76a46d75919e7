//===- GpuFloat8.cpp - 8-bit floats by a GPU's own instructions -----------===//
//
// `cvt.rn.satfinite.e4m3x2.f32` rounds two numbers to the nearest, ties to even, and gives the largest number for what
// is beyond it, infinities included. The next encoding is that of overflow, NaN in e4m3 and infinity in e5m2, so that 1
// is added where an operand is too large. Quantising clamps first; there the instruction alone does the same.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuFloat8.h"

#include "passes/lower/codegen/Float8.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

double largestOf(Type type) { return APFloat::getLargest(cast<FloatType>(type).getFloatSemantics()).convertToDouble(); }

/// The number that `value` always is.
std::optional<double> numberOf(Value value) {
  if (auto negated = value.getDefiningOp<arith::NegFOp>()) {
    std::optional<double> number = numberOf(negated.getOperand());
    return number ? std::optional(-*number) : std::nullopt;
  }
  APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number)) ? std::optional(number.convertToDouble()) : std::nullopt;
}

/// x of max(x, limit), where NaN stays.
Value atLeast(Value value, double limit) {
  auto maximum = value.getDefiningOp<arith::MaximumFOp>();
  if (!maximum)
    return {};
  if (numberOf(maximum.getRhs()) == limit)
    return maximum.getLhs();
  return numberOf(maximum.getLhs()) == limit ? maximum.getRhs() : Value();
}

Value negatedOf(Value value) {
  auto negated = value ? value.getDefiningOp<arith::NegFOp>() : arith::NegFOp();
  return negated ? negated.getOperand() : Value();
}

/// x of max(-max(-x, -limit), -limit), as quantising clamps.
Value unclamped(Value value, double limit) {
  Value inner = negatedOf(atLeast(value, -limit));
  return inner ? negatedOf(atLeast(inner, -limit)) : Value();
}

/// Moves what `value` is computed by, and comes after `place` in its block, in front of it. Whether that is possible:
/// nothing between is written, nor waits for other threads.
bool hoist(Value value, Operation *place) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> open;
  bool isApart = true;
  auto need = [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    isApart &= op != place;
    if (op && op->getBlock() == place->getBlock() && place->isBeforeInBlock(op) && needed.insert(op))
      open.push_back(op);
  };
  need(value);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (op->getNumRegions() != 0 || (!isMemoryEffectFree(op) && !isa<LLVM::LoadOp>(op)))
      return false;
    llvm::for_each(op->getOperands(), need);
  }
  if (!isApart)
    return false;
  SmallVector<Operation *> order(needed.begin(), needed.end());
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  const bool reads = llvm::any_of(order, [](Operation *op) { return isa<LLVM::LoadOp>(op); });
  if (reads)
    for (Operation *op = place; op != order.back(); op = op->getNextNode())
      if (op->getNumRegions() != 0 || isa<LLVM::StoreOp, NVVM::Barrier0Op>(op))
        return false;
  for (Operation *op : order)
    op->moveBefore(place);
  return true;
}

/// Code in front of one cast, for it and perhaps for a second one.
struct Pair {
  OpBuilder &b;
  Location loc;
  Type type;

  Value half(int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(b.getI16Type(), value)); }
  Value number(double value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value))); }
  Value byte(Value bits, unsigned which) {
    if (which == 1)
      bits = arith::ShRUIOp::create(b, loc, bits, half(8));
    return arith::TruncIOp::create(b, loc, b.getI8Type(), bits);
  }

  /// What is added to the bits of the largest number.
  Value overflow(Value x, int64_t one) {
    const bool isE4M3 = isa<Float8E4M3FNType>(type);
    // Half way to the next number, which a tie goes to in e5m2, the largest number of e4m3 being even.
    Value magnitude = math::AbsFOp::create(b, loc, x);
    Value isBeyond = arith::CmpFOp::create(b, loc, isE4M3 ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OGE,
                                           magnitude, number(isE4M3 ? 464 : 61440));
    return arith::SelectOp::create(b, loc, isBeyond, half(one), half(0));
  }

  /// One number or two in 8 bits each, the first one below.
  Value narrow(Value low, Value high) {
    const double largest = largestOf(type);
    Value lowInside = unclamped(low, largest), highInside = high ? unclamped(high, largest) : Value();
    Value lower = lowInside ? lowInside : low, upper = highInside ? highInside : high;
    Value bits = NVVM::ConvertF32x2ToF8x2Op::create(b, loc, b.getI16Type(), upper ? upper : number(0), lower,
                                                    NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
                                                    /*relu=*/false, type);
    if (!lowInside)
      bits = arith::AddIOp::create(b, loc, bits, overflow(low, 1));
    if (high && !highInside)
      bits = arith::AddIOp::create(b, loc, bits, overflow(high, 0x100));
    return bits;
  }

  /// Two f16, which hold the same numbers; of one number the second is zero.
  Value widen(Value low, Value high) {
    auto place = [&](int64_t which) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(which)); };
    Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
    Type bytesType = VectorType::get(2, b.getI8Type());
    // As a vector: of shifts and an `or` of two loads LLVM would make a third load.
    Value bytes = LLVM::UndefOp::create(b, loc, bytesType);
    bytes = LLVM::InsertElementOp::create(b, loc, bytes, low, place(0));
    bytes = LLVM::InsertElementOp::create(b, loc, bytes, high ? high : zero, place(1));
    return NVVM::ConvertF8x2ToF16x2Op::create(b, loc, VectorType::get(2, b.getF16Type()), bytes, /*relu=*/false, type);
  }
  Value part(Value halves, int64_t which) {
    Value place = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(which));
    Value value = LLVM::ExtractElementOp::create(b, loc, halves, place);
    return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
};

/// Calls `replace` with each cast and the next one of its type, if both can be one instruction.
void forPairs(SmallVector<Float8Cast> casts, llvm::function_ref<void(const Float8Cast &, const Float8Cast *)> replace) {
  llvm::stable_sort(casts, [](const Float8Cast &a, const Float8Cast &b) {
    return isa<Float8E4M3FNType>(a.type()) && isa<Float8E5M2Type>(b.type());
  });
  for (size_t i = 0; i < casts.size();) {
    // What was hoisted for an earlier pair may have changed the order.
    if (i + 1 < casts.size() && casts[i + 1].first->isBeforeInBlock(casts[i].first))
      std::swap(casts[i], casts[i + 1]);
    const bool isPair =
        i + 1 < casts.size() && casts[i].type() == casts[i + 1].type() && hoist(casts[i + 1].operand(), casts[i].first);
    replace(casts[i], isPair ? &casts[i + 1] : nullptr);
    i += isPair ? 2 : 1;
  }
}

} // namespace

bool useGpuFloat8(ModuleOp module) {
  bool any = false;
  module.walk([&](Block *block) {
    const Float8Casts casts = findFloat8Casts(*block);
    any |= !casts.narrowing.empty() || !casts.widening.empty();
    forPairs(casts.narrowing, [](const Float8Cast &first, const Float8Cast *second) {
      OpBuilder builder(first.first);
      Pair pair{builder, first.first->getLoc(), first.type()};
      Value bits = pair.narrow(first.operand(), second ? second->operand() : Value());
      Value low = pair.byte(bits, 0), high = second ? pair.byte(bits, 1) : Value();
      replaceFloat8Cast(first, low);
      if (second)
        replaceFloat8Cast(*second, high);
    });
    forPairs(casts.widening, [](const Float8Cast &first, const Float8Cast *second) {
      OpBuilder builder(first.first);
      Pair pair{builder, first.first->getLoc(), first.type()};
      Value halves = pair.widen(first.operand(), second ? second->operand() : Value());
      Value low = pair.part(halves, 0), high = second ? pair.part(halves, 1) : Value();
      replaceFloat8Cast(first, low);
      if (second)
        replaceFloat8Cast(*second, high);
    });
  });
  return any;
}

} // namespace tessera::codegen
