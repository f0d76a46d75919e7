//===- OpsReduce.cpp - reductions and cumulative sums ---------------------===//

#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Running.h"
#include "compiler/dialect/train/Ties.h"
#include "frontends/common/Neural.h"
#include "frontends/onnx/Metadata.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// Dimensions that a reduction removes: attribute or input `axes`; all of them if there is neither, unless
/// noop_with_empty_axes.
FailureOr<SmallVector<int64_t>> reducedDims(Node &n) {
  std::optional<SmallVector<int64_t>> axes = n.attrInts("axes");
  if (!axes && n.has(1)) {
    axes = n.ints(1);
    if (!axes)
      return n.fail("the axes must be known at import");
  }
  if (!axes || axes->empty()) {
    if (n.attr("noop_with_empty_axes", 0) != 0)
      return SmallVector<int64_t>();
    return llvm::to_vector(llvm::seq<int64_t>(0, n.rank(0)));
  }
  auto checked = axesOf(*axes, n.rank(0));
  if (!checked)
    return n.fail("axes are out of range or occur twice");
  return *checked;
}

/// Puts the reduced dimensions back with size 1 if the node keeps them.
LogicalResult finish(Node &n, Value reduced, ArrayRef<int64_t> dims) {
  if (n.attr("keepdims", 1) == 0)
    return n.set(reduced);
  SmallVector<int64_t> shape(n.shape(0));
  for (int64_t dim : dims)
    shape[dim] = 1;
  return n.set(n.b.reshape(reduced, shape));
}

int64_t countOf(Node &n, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= n.shape(0)[dim];
  return count;
}

/// Whether the gradient of a maximum or minimum goes to the first extreme element, as of torch's `max(dim)`, rather
/// than in equal parts to all, as of `max()`, `amax` and norms. The dynamo exporter notes which it was; without a note
/// one dimension stands for `max(dim)`, unless it is of magnitudes, as in a norm.
bool givesFirst(Node &n, ArrayRef<int64_t> dims) {
  if (std::optional<std::string> op = torchOpOf(n.proto))
    return StringRef(*op) == "max.dim" || StringRef(*op) == "min.dim";
  return dims.size() == 1 && n.rank(0) > 1 && !n.input(0).getDefiningOp<AbsOp>();
}

enum class Kind { Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp };

template <Kind kind> LogicalResult reduction(Node &n) {
  constexpr bool needsFloat = kind == Kind::Mean || kind == Kind::L2 || kind == Kind::LogSum || kind == Kind::LogSumExp;
  if (n.element(0).isInteger(1) || (needsFloat && !n.isFloat(0)))
    return n.fail("element type is not supported");
  auto dims = reducedDims(n);
  if (failed(dims))
    return failure();
  Build &b = n.b;
  Value x = n.input(0);
  if (countOf(n, *dims) == 0 && kind != Kind::Sum && kind != Kind::SumSquare && kind != Kind::L1 && kind != Kind::L2)
    return n.fail("reduces no elements");
  if (kind == Kind::LogSumExp)
    return finish(n, logSumExp(b, x, *dims), *dims);
  if (kind == Kind::L1)
    x = b.unary<AbsOp>(x);
  if (kind == Kind::L2 || kind == Kind::SumSquare)
    x = b.mul(x, x);
  constexpr ReduceKind op = kind == Kind::Max    ? ReduceKind::Max
                            : kind == Kind::Min  ? ReduceKind::Min
                            : kind == Kind::Prod ? ReduceKind::Mul
                                                 : ReduceKind::Sum;
  if (kind == Kind::Mean)
    return finish(n, mean(b, x, *dims), *dims);
  Value result = dims->empty() ? x : b.reduce(op, x, *dims);
  if ((kind == Kind::Max || kind == Kind::Min) && !dims->empty() && givesFirst(n, *dims))
    result.getDefiningOp()->setAttr(kFirst, b.builder.getUnitAttr());
  if (kind == Kind::L2)
    result = b.unary<SqrtOp>(result);
  if (kind == Kind::LogSum)
    result = b.unary<LogOp>(result);
  return finish(n, result, *dims);
}

LogicalResult opCumSum(Node &n) {
  auto axisValue = n.ints(1);
  auto axis = axisValue && axisValue->size() == 1 ? axisOf(axisValue->front(), n.rank(0)) : std::nullopt;
  if (!axis || n.element(0).isInteger(1))
    return n.fail("expected a numeric input and an axis known at import and in range");
  const bool exclusive = n.attr("exclusive", 0) != 0, reverse = n.attr("reverse", 0) != 0;
  if (const HostTensor *constant = n.constant(0))
    return n.set(constant->runningSums(*axis, exclusive, reverse));
  SmallVector<int64_t> wide(n.shape(0));
  wide.push_back(kLongestTriangle);
  if (!countElements(wide))
    return n.fail("the sums are too large");
  return n.set(runningSums(n.b, n.input(0), *axis, {exclusive, reverse}));
}

const OpRow kReduceOps[] = {
    {"", "CumSum", kAny, kNew, 2, opCumSum},
    {"", "ReduceL1", kAny, kNew, 1, reduction<Kind::L1>},
    {"", "ReduceL2", kAny, kNew, 1, reduction<Kind::L2>},
    {"", "ReduceLogSum", kAny, kNew, 1, reduction<Kind::LogSum>},
    {"", "ReduceLogSumExp", kAny, kNew, 1, reduction<Kind::LogSumExp>},
    {"", "ReduceMax", kAny, kNew, 1, reduction<Kind::Max>},
    {"", "ReduceMean", kAny, kNew, 1, reduction<Kind::Mean>},
    {"", "ReduceMin", kAny, kNew, 1, reduction<Kind::Min>},
    {"", "ReduceProd", kAny, kNew, 1, reduction<Kind::Prod>},
    {"", "ReduceSum", kAny, kNew, 1, reduction<Kind::Sum>},
    {"", "ReduceSumSquare", kAny, kNew, 1, reduction<Kind::SumSquare>},
};
} // namespace

ArrayRef<OpRow> reduceOps() { return kReduceOps; }

} // namespace tessera::onnx_import
