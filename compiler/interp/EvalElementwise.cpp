//===- EvalElementwise.cpp - leaf and elementwise ops ---------------------===//

#include "compiler/interp/Eval.h"
#include "compiler/interp/Random.h"

#include "compiler/dialect/train/Gelu.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

/// Adds an op that maps each floating point element.
template <typename Op> static void addUnary(EvalTable &table, double (*fn)(double)) {
  table.add<Op>([fn](Op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.set(i, fn(in[0]->at(i)));
    return one(std::move(result));
  });
}

/// Adds an op on two tensors: one function for floating point elements, one for integers and booleans.
template <typename Op>
static void addBinary(EvalTable &table, double (*onFloats)(double, double), int64_t (*onInts)(int64_t, int64_t)) {
  table.add<Op>([=](Op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    bool floating = result.isFloat();
    for (int64_t i = 0, end = result.size(); i < end; ++i) {
      if (floating)
        result.set(i, onFloats(in[0]->at(i), in[1]->at(i)));
      else
        result.setInt(i, onInts(in[0]->intAt(i), in[1]->intAt(i)));
    }
    return one(std::move(result));
  });
}

static int64_t wrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static int64_t wrappingSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
static int64_t wrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

static double maxOrNan(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return a > b ? a : b;
}

template <typename T> static bool holds(CompareDirection direction, T a, T b) {
  switch (direction) {
  case CompareDirection::Eq:
    return a == b;
  case CompareDirection::Ne:
    return a != b;
  case CompareDirection::Lt:
    return a < b;
  case CompareDirection::Le:
    return a <= b;
  case CompareDirection::Gt:
    return a > b;
  case CompareDirection::Ge:
    return a >= b;
  }
  llvm_unreachable("unknown comparison");
}

static FailureOr<Results> divide(DivOp, EvalContext context, Operands in) {
  Tensor result(context.resultType());
  bool floating = result.isFloat();
  for (int64_t i = 0, end = result.size(); i < end; ++i) {
    if (floating) {
      result.set(i, in[0]->at(i) / in[1]->at(i));
      continue;
    }
    int64_t divisor = in[1]->intAt(i);
    if (divisor == 0)
      return context.error() << "integer division by zero at " << printIndex(delinearize(i, result.getShape()));
    result.setInt(i, divisor == -1 ? wrappingSub(0, in[0]->intAt(i)) : in[0]->intAt(i) / divisor);
  }
  return one(std::move(result));
}

// --- Random numbers ------------------------------------------------------------

static FailureOr<Results> rngUniform(RngUniformOp op, EvalContext context, Operands in) {
  Tensor result(context.resultType());
  SmallVector<int64_t> strides = stridesOf(op.getGlobalShape().value_or(result.getShape()));
  SmallVector<int64_t> offsets(result.getRank(), 0);
  for (auto [offset, operand] : llvm::zip(offsets, in.drop_front()))
    offset = operand->intAt(0);
  forEachIndex(result.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    int64_t global = linearIndex(index, strides) + linearIndex(offsets, strides);
    uint32_t word = philox(in[0]->intAt(0), global, op.getStream())[0];
    result.set(linear, (word >> 8) * 0x1p-24);
  });
  return one(std::move(result));
}

// --- The table -----------------------------------------------------------------

static void addLeafOps(EvalTable &table) {
  table.add<ConstantOp>([](ConstantOp op, EvalContext context, Operands) -> FailureOr<Results> {
    if (!Tensor::canRead(op.getValue()))
      return context.error() << "cannot evaluate a constant whose elements are not in the module";
    return one(Tensor::fromAttr(op.getValue()));
  });
  table.add<IotaOp>([](IotaOp op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    int64_t offset = in.empty() ? 0 : in[0]->intAt(0);
    forEachIndex(result.getShape(),
                 [&](ArrayRef<int64_t> index, int64_t linear) { result.setInt(linear, index[op.getDim()] + offset); });
    return one(std::move(result));
  });
  table.add<RngUniformOp>(rngUniform);
}

void addElementwise(EvalTable &table) {
  addLeafOps(table);
  table.add<ConvertOp>([](ConvertOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i) {
      if (in[0]->isFloat())
        result.set(i, in[0]->at(i));
      else
        result.setInt(i, in[0]->intAt(i));
    }
    return one(std::move(result));
  });
  table.add<NegOp>([](NegOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.isFloat() ? result.set(i, -in[0]->at(i)) : result.setInt(i, wrappingSub(0, in[0]->intAt(i)));
    return one(std::move(result));
  });
  table.add<AbsOp>([](AbsOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i) {
      if (result.isFloat())
        result.set(i, std::fabs(in[0]->at(i)));
      else
        result.setInt(i, in[0]->intAt(i) < 0 ? wrappingSub(0, in[0]->intAt(i)) : in[0]->intAt(i));
    }
    return one(std::move(result));
  });
  addUnary<ExpOp>(table, [](double x) { return std::exp(x); });
  addUnary<LogOp>(table, [](double x) { return std::log(x); });
  addUnary<SqrtOp>(table, [](double x) { return std::sqrt(x); });
  addUnary<RsqrtOp>(table, [](double x) { return 1.0 / std::sqrt(x); });
  addUnary<TanhOp>(table, [](double x) { return std::tanh(x); });
  addUnary<ErfOp>(table, [](double x) { return std::erf(x); });
  addUnary<SinOp>(table, [](double x) { return std::sin(x); });
  addUnary<CosOp>(table, [](double x) { return std::cos(x); });
  addUnary<Expm1Op>(table, [](double x) { return std::expm1(x); });
  addUnary<Log1pOp>(table, [](double x) { return std::log1p(x); });
  addUnary<SigmoidOp>(table, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  addUnary<SoftplusOp>(table, [](double x) { return maxOrNan(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
  table.add<GeluOp>([](GeluOp op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.set(i, gelu(op.getForm(), in[0]->at(i)));
    return one(std::move(result));
  });
  table.add<GeluGradOp>([](GeluGradOp op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.set(i, in[0]->at(i) * geluDerivative(op.getForm(), in[1]->at(i)));
    return one(std::move(result));
  });
  addUnary<AtanOp>(table, [](double x) { return std::atan(x); });
  addUnary<AsinOp>(table, [](double x) { return std::asin(x); });
  addUnary<AcosOp>(table, [](double x) { return std::acos(x); });
  addUnary<RoundOp>(table, [](double x) { return std::nearbyint(x); });
  addUnary<FloorOp>(table, [](double x) { return std::floor(x); });

  addBinary<AddOp>(
      table, [](double a, double b) { return a + b; }, wrappingAdd);
  addBinary<SubOp>(
      table, [](double a, double b) { return a - b; }, wrappingSub);
  addBinary<MulOp>(
      table, [](double a, double b) { return a * b; }, wrappingMul);
  addBinary<MaxOp>(table, maxOrNan, [](int64_t a, int64_t b) { return std::max(a, b); });
  addBinary<PowOp>(
      table, [](double a, double b) { return std::pow(a, b); }, [](int64_t, int64_t) { return int64_t{0}; });
  table.add<DivOp>(divide);

  table.add<CompareOp>([](CompareOp op, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.setInt(i, in[0]->isFloat() ? holds(op.getDirection(), in[0]->at(i), in[1]->at(i))
                                        : holds(op.getDirection(), in[0]->intAt(i), in[1]->intAt(i)));
    return one(std::move(result));
  });
  table.add<SelectOp>([](SelectOp, EvalContext context, Operands in) {
    Tensor result(context.resultType());
    for (int64_t i = 0, end = result.size(); i < end; ++i)
      result.copyFrom(i, in[0]->intAt(i) ? *in[1] : *in[2], i);
    return one(std::move(result));
  });
}

} // namespace tessera::interp
