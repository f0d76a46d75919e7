//===- EvalReduce.cpp - reductions ----------------------------------------===//

#include "compiler/interp/Eval.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

static double combine(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::Sum:
    return a + b;
  case ReduceKind::Mul:
    return a * b;
  case ReduceKind::Max:
    return std::isnan(a) || a > b ? a : b;
  case ReduceKind::Min:
    return std::isnan(a) || a < b ? a : b;
  }
  llvm_unreachable("unknown reduction");
}

static int64_t combine(ReduceKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ReduceKind::Sum:
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case ReduceKind::Mul:
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  case ReduceKind::Max:
    return std::max(a, b);
  case ReduceKind::Min:
    return std::min(a, b);
  }
  llvm_unreachable("unknown reduction");
}

/// The value of a reduction over nothing.
static double neutral(ReduceKind kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::Sum:
    return 0.0;
  case ReduceKind::Mul:
    return 1.0;
  case ReduceKind::Max:
    return -infinity;
  case ReduceKind::Min:
    return infinity;
  }
  llvm_unreachable("unknown reduction");
}

static int64_t neutralInt(ReduceKind kind, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger();
  APInt low = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  APInt high = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  switch (kind) {
  case ReduceKind::Sum:
    return 0;
  case ReduceKind::Mul:
    return 1;
  case ReduceKind::Max:
    return isUnsigned ? static_cast<int64_t>(low.getZExtValue()) : low.getSExtValue();
  case ReduceKind::Min:
    return isUnsigned ? static_cast<int64_t>(high.getZExtValue()) : high.getSExtValue();
  }
  llvm_unreachable("unknown reduction");
}

/// Strides of the reduced tensor seen from an index of the operand: 0 along the dimensions that disappear.
static SmallVector<int64_t> reducedStrides(const Tensor &operand, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept = stridesOf(shape), strides(operand.getRank(), 0);
  for (int64_t dim = 0, next = 0; dim < operand.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      strides[dim] = kept[next++];
  return strides;
}

static FailureOr<Results> reduce(ReduceOp op, EvalContext context, Operands in) {
  const Tensor &operand = *in[0];
  Tensor result(context.resultType());
  SmallVector<int64_t> strides = reducedStrides(operand, op.getDimensions(), result.getShape());
  ReduceKind kind = op.getKind();
  if (operand.isFloat()) {
    std::vector<double> sums(result.size(), neutral(kind));
    forEachIndex(operand.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
      double &sum = sums[linearIndex(index, strides)];
      sum = combine(kind, sum, operand.at(linear));
    });
    for (auto [i, sum] : llvm::enumerate(sums))
      result.set(i, sum);
  } else {
    std::vector<int64_t> sums(result.size(), neutralInt(kind, result.getElementType()));
    forEachIndex(operand.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
      int64_t &sum = sums[linearIndex(index, strides)];
      sum = combine(kind, sum, operand.intAt(linear));
    });
    for (auto [i, sum] : llvm::enumerate(sums))
      result.setInt(i, sum);
  }
  return one(std::move(result));
}

static FailureOr<Results> argmax(ArgmaxOp op, EvalContext context, Operands in) {
  const Tensor &operand = *in[0];
  int64_t reduced = op.getDim();
  Tensor result(context.resultType());
  SmallVector<int64_t> strides = reducedStrides(operand, {reduced}, result.getShape());
  std::vector<int64_t> best(result.size(), -1);
  forEachIndex(operand.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    int64_t target = linearIndex(index, strides);
    if (best[target] >= 0 && operand.at(linear) <= operand.at(best[target]))
      return;
    best[target] = linear;
    result.setInt(target, index[reduced]);
  });
  return one(std::move(result));
}

static FailureOr<Results> sortIndices(SortIndicesOp op, EvalContext context, Operands in) {
  const Tensor &operand = *in[0];
  int64_t dim = op.getDim(), count = operand.getShape()[dim];
  Tensor result(context.resultType());
  SmallVector<int64_t> strides = stridesOf(operand.getShape());
  const bool floating = operand.isFloat();
  auto below = [&](int64_t a, int64_t b) {
    if (!floating)
      return operand.intAt(a) < operand.intAt(b);
    double x = operand.at(a), y = operand.at(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  };
  forEachIndex(operand.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    if (index[dim] != 0)
      return;
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      int64_t left = linear + a * strides[dim], right = linear + b * strides[dim];
      return op.getDescending() ? below(right, left) : below(left, right);
    });
    for (auto [place, source] : llvm::enumerate(order))
      result.setInt(linear + static_cast<int64_t>(place) * strides[dim], source);
  });
  return one(std::move(result));
}

void addReduce(EvalTable &table) {
  table.add<ReduceOp>(reduce);
  table.add<ArgmaxOp>(argmax);
  table.add<SortIndicesOp>(sortIndices);
}

} // namespace tessera::interp
