//===- Evaluate.cpp - evaluates train ops on constants --------------------===//

#include "frontends/common/Evaluate.h"

#include "compiler/dialect/train/Gelu.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
using Result = std::optional<HostTensor>;

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// Calls `visit(flat, offset)` for each element of `shape` in row-major order, where offset = base + sum index * step.
template <typename Visit> void walk(ArrayRef<int64_t> shape, int64_t base, ArrayRef<int64_t> steps, Visit visit) {
  const int64_t count = countElements(shape).value_or(0);
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t offset = base;
  for (int64_t flat = 0; flat < count; ++flat) {
    visit(flat, offset);
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
      offset += steps[dim];
      if (++index[dim] < shape[dim])
        break;
      offset -= index[dim] * steps[dim];
      index[dim] = 0;
    }
  }
}

HostTensor empty(RankedTensorType type) {
  HostTensor tensor{type, {}, {}};
  if (tensor.isFloat())
    tensor.floats.resize(type.getNumElements());
  else
    tensor.ints.resize(type.getNumElements());
  return tensor;
}

void copyElement(const HostTensor &from, int64_t source, HostTensor &to, int64_t target) {
  if (from.isFloat())
    to.floats[target] = from.floats[source];
  else
    to.ints[target] = from.ints[source];
}

HostTensor strided(const HostTensor &x, RankedTensorType type, int64_t base, ArrayRef<int64_t> steps) {
  HostTensor result = empty(type);
  walk(type.getShape(), base, steps, [&](int64_t flat, int64_t offset) { copyElement(x, offset, result, flat); });
  return result;
}

Result unary(const HostTensor &x, double (*function)(double)) {
  HostTensor result = x;
  for (double &value : result.floats)
    value = roundTo(x.type.getElementType(), function(value));
  return result;
}

template <typename OnFloats, typename OnInts>
Result binary(const HostTensor &a, const HostTensor &b, OnFloats onFloats, OnInts onInts) {
  HostTensor result = empty(a.type);
  Type element = a.type.getElementType();
  for (size_t i = 0; i < result.floats.size(); ++i)
    result.floats[i] = roundTo(element, onFloats(a.floats[i], b.floats[i]));
  for (size_t i = 0; i < result.ints.size(); ++i) {
    std::optional<int64_t> value = onInts(a.ints[i], b.ints[i]);
    if (!value)
      return std::nullopt;
    result.ints[i] = wrapTo(element, *value);
  }
  return result;
}

int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }
double addF(double a, double b) { return a + b; }
std::optional<int64_t> addI(int64_t a, int64_t b) { return wrapping(uint64_t(a) + uint64_t(b)); }
double subF(double a, double b) { return a - b; }
std::optional<int64_t> subI(int64_t a, int64_t b) { return wrapping(uint64_t(a) - uint64_t(b)); }
double mulF(double a, double b) { return a * b; }
std::optional<int64_t> mulI(int64_t a, int64_t b) { return wrapping(uint64_t(a) * uint64_t(b)); }
double divF(double a, double b) { return a / b; }
std::optional<int64_t> divI(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN))
    return std::nullopt;
  return a / b;
}
double maxF(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
std::optional<int64_t> maxI(int64_t a, int64_t b) { return std::max(a, b); }
double powF(double a, double b) { return std::pow(a, b); }
std::optional<int64_t> powI(int64_t, int64_t) { return std::nullopt; }

template <typename T> bool compares(CompareDirection direction, T a, T b) {
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
  return false;
}

Result convert(const HostTensor &x, RankedTensorType type) {
  HostTensor result = empty(type);
  Type element = type.getElementType();
  for (int64_t i = 0, count = x.size(); i < count; ++i) {
    if (result.isFloat()) {
      result.floats[i] = roundTo(element, x.number(i));
    } else if (element.isInteger(1)) {
      result.ints[i] = x.number(i) != 0;
    } else if (!x.isFloat()) {
      result.ints[i] = wrapTo(element, x.ints[i]);
    } else {
      const double value = x.floats[i];
      if (!(std::abs(value) < 9.2e18))
        return std::nullopt;
      result.ints[i] = wrapTo(element, static_cast<int64_t>(value));
    }
  }
  return result;
}

Result reduce(ReduceOp op, const HostTensor &x) {
  const ReduceKind kind = op.getKind();
  auto type = cast<RankedTensorType>(op.getType());
  HostTensor result = empty(type);
  SmallVector<int64_t> steps(x.shape().size(), 0);
  SmallVector<int64_t> outer = stridesOf(type.getShape());
  for (int64_t dim = 0, kept = 0, rank = steps.size(); dim < rank; ++dim)
    if (!llvm::is_contained(op.getDimensions(), dim))
      steps[dim] = outer[kept++];
  auto combine = [&](auto &into, auto value, bool first) {
    if (kind == ReduceKind::Sum)
      into = first ? value : into + value;
    else if (kind == ReduceKind::Mul)
      into = first ? value : into * value;
    else if (kind == ReduceKind::Max)
      into = first ? value : std::max(into, value);
    else
      into = first ? value : std::min(into, value);
  };
  if (x.size() == 0)
    return std::nullopt;
  std::vector<char> seen(result.size(), 0);
  walk(x.shape(), 0, steps, [&](int64_t flat, int64_t target) {
    if (x.isFloat()) {
      combine(result.floats[target], x.floats[flat], !seen[target]);
    } else {
      auto into = static_cast<uint64_t>(result.ints[target]);
      if (kind == ReduceKind::Sum || kind == ReduceKind::Mul) {
        combine(into, static_cast<uint64_t>(x.ints[flat]), !seen[target]);
        result.ints[target] = wrapTo(type.getElementType(), static_cast<int64_t>(into));
      } else {
        combine(result.ints[target], x.ints[flat], !seen[target]);
      }
    }
    seen[target] = 1;
  });
  for (double &value : result.floats)
    value = roundTo(type.getElementType(), value);
  return result;
}

Result gatherRows(GatherRowsOp op, const HostTensor &table, const HostTensor &indices) {
  HostTensor result = empty(cast<RankedTensorType>(op.getType()));
  const int64_t rows = table.shape().front();
  const int64_t width = rows == 0 ? 0 : table.size() / rows;
  for (int64_t i = 0, count = indices.size(); i < count; ++i) {
    const int64_t row = indices.ints[i];
    if (row < 0 || row >= rows)
      return std::nullopt;
    for (int64_t j = 0; j < width; ++j)
      copyElement(table, row * width + j, result, i * width + j);
  }
  return result;
}

Result dot(DotGeneralOp op, const HostTensor &lhs, const HostTensor &rhs, int64_t &work) {
  HostTensor result = empty(cast<RankedTensorType>(op.getType()));
  SmallVector<int64_t> lhsStrides = stridesOf(lhs.shape()), rhsStrides = stridesOf(rhs.shape());
  SmallVector<int64_t> lhsSteps, rhsSteps, contracted, lhsInner, rhsInner;
  for (auto [l, r] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
    lhsSteps.push_back(lhsStrides[l]);
    rhsSteps.push_back(rhsStrides[r]);
  }
  for (int64_t dim = 0, rank = lhs.type.getRank(); dim < rank; ++dim)
    if (!llvm::is_contained(op.getLhsBatch(), dim) && !llvm::is_contained(op.getLhsContract(), dim)) {
      lhsSteps.push_back(lhsStrides[dim]);
      rhsSteps.push_back(0);
    }
  for (int64_t dim = 0, rank = rhs.type.getRank(); dim < rank; ++dim)
    if (!llvm::is_contained(op.getRhsBatch(), dim) && !llvm::is_contained(op.getRhsContract(), dim)) {
      lhsSteps.push_back(0);
      rhsSteps.push_back(rhsStrides[dim]);
    }
  for (auto [l, r] : llvm::zip_equal(op.getLhsContract(), op.getRhsContract())) {
    contracted.push_back(lhs.shape()[l]);
    lhsInner.push_back(lhsStrides[l]);
    rhsInner.push_back(rhsStrides[r]);
  }
  const int64_t depth = countElements(contracted).value_or(0);
  if (result.size() * std::max<int64_t>(depth, 1) > 16 * kMaxConstantElements)
    return std::nullopt;
  work += result.size() * depth;
  std::vector<int64_t> rhsBase(result.size());
  walk(result.shape(), 0, rhsSteps, [&](int64_t flat, int64_t offset) { rhsBase[flat] = offset; });
  std::vector<int64_t> rhsOffsets(depth);
  walk(contracted, 0, rhsInner, [&](int64_t flat, int64_t offset) { rhsOffsets[flat] = offset; });
  walk(result.shape(), 0, lhsSteps, [&](int64_t flat, int64_t lhsBase) {
    double sum = 0;
    uint64_t integral = 0;
    walk(contracted, lhsBase, lhsInner, [&](int64_t k, int64_t at) {
      const int64_t other = rhsBase[flat] + rhsOffsets[k];
      if (lhs.isFloat())
        sum += lhs.floats[at] * rhs.floats[other];
      else
        integral += static_cast<uint64_t>(lhs.ints[at]) * static_cast<uint64_t>(rhs.ints[other]);
    });
    if (result.isFloat())
      result.floats[flat] = roundTo(result.type.getElementType(), sum);
    else
      result.ints[flat] = wrapTo(result.type.getElementType(), static_cast<int64_t>(integral));
  });
  return result;
}

/// Evaluates one op; `in` are its operands' values.
Result evaluateOp(Operation *op, ArrayRef<const HostTensor *> in, int64_t &work) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ArrayRef<int64_t> shape = type.getShape();
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp op) { return HostTensor::fromAttr(op.getValue()); })
      .Case([&](IotaOp op) -> Result {
        HostTensor result = empty(type);
        SmallVector<int64_t> steps(shape.size(), 0);
        steps[op.getDim()] = 1;
        walk(shape, 0, steps, [&](int64_t flat, int64_t index) {
          if (result.isFloat())
            result.floats[flat] = static_cast<double>(index);
          else
            result.ints[flat] = wrapTo(type.getElementType(), index);
        });
        return result;
      })
      .Case([&](ConvertOp) { return convert(*in[0], type); })
      .Case([&](NegOp) -> Result {
        HostTensor result = *in[0];
        for (double &value : result.floats)
          value = -value;
        for (int64_t &value : result.ints)
          value = wrapTo(type.getElementType(), static_cast<int64_t>(-static_cast<uint64_t>(value)));
        return result;
      })
      .Case([&](AbsOp) -> Result {
        HostTensor result = *in[0];
        for (double &value : result.floats)
          value = std::abs(value);
        for (int64_t &value : result.ints)
          value = value < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(value)) : value;
        return result;
      })
      .Case([&](ExpOp) { return unary(*in[0], std::exp); })
      .Case([&](LogOp) { return unary(*in[0], std::log); })
      .Case([&](SqrtOp) { return unary(*in[0], std::sqrt); })
      .Case([&](RsqrtOp) { return unary(*in[0], [](double x) { return 1 / std::sqrt(x); }); })
      .Case([&](TanhOp) { return unary(*in[0], std::tanh); })
      .Case([&](ErfOp) { return unary(*in[0], std::erf); })
      .Case([&](SinOp) { return unary(*in[0], std::sin); })
      .Case([&](CosOp) { return unary(*in[0], std::cos); })
      .Case([&](Expm1Op) { return unary(*in[0], std::expm1); })
      .Case([&](Log1pOp) { return unary(*in[0], std::log1p); })
      .Case([&](SigmoidOp) { return unary(*in[0], [](double x) { return 1 / (1 + std::exp(-x)); }); })
      .Case([&](SoftplusOp) {
        return unary(*in[0], [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
      })
      .Case([&](GeluOp op) { return unary(*in[0], op.getForm() == GeluForm::Exact ? geluExact : geluTanh); })
      .Case([&](AtanOp) { return unary(*in[0], std::atan); })
      .Case([&](AsinOp) { return unary(*in[0], std::asin); })
      .Case([&](AcosOp) { return unary(*in[0], std::acos); })
      .Case([&](RoundOp) { return unary(*in[0], std::nearbyint); })
      .Case([&](FloorOp) { return unary(*in[0], std::floor); })
      .Case([&](StopGradientOp) -> Result { return *in[0]; })
      .Case([&](AddOp) { return binary(*in[0], *in[1], addF, addI); })
      .Case([&](SubOp) { return binary(*in[0], *in[1], subF, subI); })
      .Case([&](MulOp) { return binary(*in[0], *in[1], mulF, mulI); })
      .Case([&](DivOp) { return binary(*in[0], *in[1], divF, divI); })
      .Case([&](MaxOp) { return binary(*in[0], *in[1], maxF, maxI); })
      .Case([&](PowOp) { return binary(*in[0], *in[1], powF, powI); })
      .Case([&](CompareOp op) -> Result {
        HostTensor result = empty(type);
        for (size_t i = 0; i < result.ints.size(); ++i)
          result.ints[i] = in[0]->isFloat() ? compares(op.getDirection(), in[0]->floats[i], in[1]->floats[i])
                                            : compares(op.getDirection(), in[0]->ints[i], in[1]->ints[i]);
        return result;
      })
      .Case([&](SelectOp) -> Result {
        HostTensor result = empty(type);
        for (int64_t i = 0, count = result.size(); i < count; ++i)
          copyElement(in[0]->ints[i] ? *in[1] : *in[2], i, result, i);
        return result;
      })
      .Case([&](ReshapeOp) -> Result { return in[0]->reshaped(shape); })
      .Case([&](TransposeOp op) -> Result {
        SmallVector<int64_t> strides = stridesOf(in[0]->shape()), steps;
        for (int64_t dim : op.getPermutation())
          steps.push_back(strides[dim]);
        return strided(*in[0], type, 0, steps);
      })
      .Case([&](BroadcastOp op) -> Result {
        SmallVector<int64_t> strides = stridesOf(in[0]->shape()), steps(shape.size(), 0);
        for (auto [dim, target] : llvm::enumerate(op.getBroadcastDimensions()))
          if (in[0]->shape()[dim] != 1)
            steps[target] = strides[dim];
        return strided(*in[0], type, 0, steps);
      })
      .Case([&](SliceOp op) -> Result {
        SmallVector<int64_t> strides = stridesOf(in[0]->shape()), steps;
        int64_t base = 0;
        for (auto [stride, start, step] : llvm::zip_equal(strides, op.getStarts(), op.getStrides())) {
          base += stride * start;
          steps.push_back(stride * step);
        }
        return strided(*in[0], type, base, steps);
      })
      .Case([&](PadOp op) -> Result {
        HostTensor result = HostTensor::splat(type, op.getValue().convertToDouble());
        SmallVector<int64_t> strides = stridesOf(shape), steps;
        int64_t base = 0;
        for (auto [stride, low, gap] : llvm::zip_equal(strides, op.getLow(), op.getInterior())) {
          base += stride * low;
          steps.push_back(stride * (gap + 1));
        }
        walk(in[0]->shape(), base, steps,
             [&](int64_t flat, int64_t target) { copyElement(*in[0], flat, result, target); });
        return result;
      })
      .Case([&](ConcatOp op) -> Result {
        HostTensor result = empty(type);
        SmallVector<int64_t> strides = stridesOf(shape);
        int64_t base = 0;
        for (const HostTensor *part : in) {
          walk(part->shape(), base, strides,
               [&](int64_t flat, int64_t target) { copyElement(*part, flat, result, target); });
          base += part->shape()[op.getDim()] * strides[op.getDim()];
        }
        return result;
      })
      .Case([&](GatherRowsOp op) { return gatherRows(op, *in[0], *in[1]); })
      .Case([&](ReduceOp op) { return reduce(op, *in[0]); })
      .Case([&](DotGeneralOp op) { return dot(op, *in[0], *in[1], work); })
      .Default([](Operation *) { return std::nullopt; });
}
} // namespace

bool evaluate(Block &block, ConstantMap &values, int64_t &work) {
  for (Operation &op : block) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0)
      return false;
    auto count = countElements(cast<RankedTensorType>(op.getResult(0).getType()).getShape());
    if (!count || *count > kMaxConstantElements)
      return false;
    SmallVector<const HostTensor *> operands;
    for (Value operand : op.getOperands()) {
      auto found = values.find(operand);
      if (found == values.end())
        return false;
      operands.push_back(found->second.get());
    }
    work += *count;
    Result result = evaluateOp(&op, operands, work);
    if (!result)
      return false;
    values[op.getResult(0)] = std::make_shared<const HostTensor>(std::move(*result));
  }
  return true;
}

} // namespace tessera::frontend
