//===- OpsReduce.cpp - sums, means, products, norms -------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using Dims = SmallVector<int64_t>;

/// The dimensions of `dim`; all of them where it is missing or empty.
std::optional<Dims> reduced(Call &c) {
  auto given = c.has("dim") ? c.ints("dim") : std::nullopt;
  if (!c.has("dim") || (given && given->empty()))
    return llvm::to_vector(llvm::seq<int64_t>(0, c.rank("self")));
  // A tensor without dimensions has one by name.
  if (c.rank("self") == 0)
    return c.axes("dim", 1) ? std::optional(Dims()) : std::nullopt;
  return c.axes("dim", c.rank("self"));
}

int64_t countOf(Call &c, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= c.shape("self")[dim];
  return count;
}

/// Keeps dimensions of size 1 where that is asked for.
LogicalResult setReduced(Call &c, Value result, ArrayRef<int64_t> dims, int i = 0) {
  if (c.flag("keepdim", false)) {
    SmallVector<int64_t> shape(c.shape("self"));
    for (int64_t dim : dims)
      shape[dim] = 1;
    result = c.b.reshape(result, shape);
  }
  return c.set(result, i);
}

Value reduce(Build &b, ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  return dims.empty() ? x : b.reduce(kind, x, dims);
}

/// Computes in the result's type, or f32 for narrower floats.
LogicalResult finish(Call &c, ArrayRef<int64_t> dims, llvm::function_ref<Value(Value)> make) {
  Type element = c.resultElement();
  if (!element || element.isInteger(1))
    return c.fail("the result's element type is not supported");
  Value result = make(c.b.convert(c.value("self"), computedIn(element)));
  return setReduced(c, c.b.convert(result, element), dims);
}

LogicalResult opSum(Call &c) {
  auto dims = reduced(c);
  if (!dims)
    return c.fail("a dimension is out of range");
  return finish(c, *dims, [&](Value x) { return reduce(c.b, ReduceKind::Sum, x, *dims); });
}

/// The sum of what is a number, or its mean.
template <bool isMean> LogicalResult opNanSum(Call &c) {
  auto dims = reduced(c);
  if (!dims || (isMean && !isa_and_nonnull<FloatType>(c.resultElement())))
    return c.fail("a dimension is out of range, or what is averaged is not floating point");
  Build &b = c.b;
  return finish(c, *dims, [&](Value x) {
    if (!isa<FloatType>(tensorType(x).getElementType()))
      return reduce(b, ReduceKind::Sum, x, *dims);
    Value zero = b.splatLike(x, 0), one = b.splatLike(x, 1), isNaN = frontend::isNaN(b, x);
    Value sum = reduce(b, ReduceKind::Sum, b.select(isNaN, zero, x), *dims);
    return isMean ? b.div(sum, reduce(b, ReduceKind::Sum, b.select(isNaN, zero, one), *dims)) : sum;
  });
}

LogicalResult opProd(Call &c) {
  auto dims = reduced(c);
  if (!dims || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or nothing is multiplied");
  return finish(c, *dims, [&](Value x) { return reduce(c.b, ReduceKind::Mul, x, *dims); });
}

LogicalResult opMean(Call &c) {
  auto dims = reduced(c);
  if (!dims || !isa_and_nonnull<FloatType>(c.resultElement()) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or nothing is averaged");
  return finish(c, *dims, [&](Value x) { return frontend::mean(c.b, x, *dims); });
}

LogicalResult opLogSumExp(Call &c) {
  auto dims = reduced(c);
  if (!dims || !isa_and_nonnull<FloatType>(c.resultElement()) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or nothing is summed");
  return finish(c, *dims, [&](Value x) { return dims->empty() ? x : frontend::logSumExp(c.b, x, *dims); });
}

template <ReduceKind kind> LogicalResult opExtreme(Call &c) {
  auto dims = reduced(c);
  if (!dims || c.element("self").isInteger(1) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or the input is boolean or empty");
  return setReduced(c, reduce(c.b, kind, c.value("self"), *dims), *dims);
}

LogicalResult opAminmax(Call &c) {
  auto dims = reduced(c);
  if (!dims || c.element("self").isInteger(1) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or the input is boolean or empty");
  Value x = c.value("self");
  return failed(setReduced(c, reduce(c.b, ReduceKind::Min, x, *dims), *dims)) ||
                 failed(setReduced(c, reduce(c.b, ReduceKind::Max, x, *dims), *dims, 1))
             ? failure()
             : success();
}

// --- Booleans, and how many ---

Value isTrue(Call &c) {
  Value x = c.value("self");
  return c.element("self").isInteger(1) ? x : c.b.compare(CompareDirection::Ne, x, c.b.splatLike(x, 0));
}

template <bool isAll> LogicalResult opAny(Call &c) {
  auto dims = reduced(c);
  if (!dims || countOf(c, *dims) == 0 || !c.resultElement())
    return c.fail("a dimension is out of range, or the input is empty");
  Value x = c.b.convert(isTrue(c), c.b.builder.getI32Type());
  Value most = reduce(c.b, isAll ? ReduceKind::Min : ReduceKind::Max, x, *dims);
  Value result = c.b.compare(CompareDirection::Ne, most, c.b.splatLike(most, 0));
  return setReduced(c, c.b.convert(result, c.resultElement()), *dims);
}

LogicalResult opCountNonzero(Call &c) {
  auto dims = reduced(c);
  if (!dims)
    return c.fail("a dimension is out of range");
  return c.set(reduce(c.b, ReduceKind::Sum, c.b.convert(isTrue(c), c.b.builder.getI64Type()), *dims));
}

// --- Deviations and norms ---

/// The root, with a slope of 0 at 0, as PyTorch's norms and deviations have.
Value rootOf(Build &b, Value x, double exponent) {
  Value isZero = frontend::compareWith(b, CompareDirection::Eq, x, 0), one = b.splatLike(x, 1);
  Value safe = b.select(isZero, one, x);
  Value root = exponent == 2 ? b.unary<SqrtOp>(safe) : b.pow(safe, b.splatLike(x, 1 / exponent));
  return b.select(isZero, b.splatLike(x, 0), root);
}

/// Variance or deviation, and the mean beside it.
template <bool isDeviation, bool hasMean> LogicalResult opVar(Call &c) {
  auto dims = reduced(c);
  const double correction = c.has("correction") ? c.numberOr("correction", 1) : c.flag("unbiased", true) ? 1 : 0;
  if (!dims || !c.isFloat("self") || !(static_cast<double>(countOf(c, *dims)) > correction))
    return c.fail("a dimension is out of range, or too little is averaged");
  Build &b = c.b;
  Type element = c.element("self");
  Value x = b.convert(c.value("self"), computedIn(element)), mean = frontend::mean(b, x, *dims);
  Value centred = b.sub(x, b.broadcastReduced(mean, shapeOf(x), *dims));
  // A mean times a factor, which depends on how many there are: of one degree of freedom the divisor would be nothing
  // to see, and a sum over samples is another thing.
  const auto count = static_cast<double>(countOf(c, *dims));
  Value squares = b.mul(centred, centred);
  Value result = correction == 0 ? b.scale(reduce(b, ReduceKind::Sum, squares, *dims), 1.0 / count)
                                 : b.scale(frontend::mean(b, squares, *dims), count / (count - correction));
  if (isDeviation)
    result = rootOf(b, result, 2);
  if (failed(setReduced(c, b.convert(result, element), *dims)))
    return failure();
  return hasMean ? setReduced(c, b.convert(mean, element), *dims, 1) : success();
}

LogicalResult norm(Call &c, std::optional<Dims> dims, double order) {
  const bool isInfinite = std::isinf(order);
  if (!dims || !isa_and_nonnull<FloatType>(c.resultElement()) || (isInfinite && countOf(c, *dims) == 0))
    return c.fail("a dimension is out of range, or the result not floating point");
  if (!isInfinite && order != 0 && !(order >= 1))
    return c.fail("norms of an order below 1 are not supported");
  Build &b = c.b;
  return finish(c, *dims, [&](Value x) {
    if (isInfinite)
      return reduce(b, order > 0 ? ReduceKind::Max : ReduceKind::Min, b.unary<AbsOp>(x), *dims);
    if (order == 0)
      return reduce(b, ReduceKind::Sum,
                    b.convert(frontend::compareWith(b, CompareDirection::Ne, x, 0), tensorType(x).getElementType()),
                    *dims);
    if (order == 2)
      return rootOf(b, reduce(b, ReduceKind::Sum, b.mul(x, x), *dims), 2);
    Value size = b.unary<AbsOp>(x);
    if (order == 1)
      return reduce(b, ReduceKind::Sum, size, *dims);
    return rootOf(b, reduce(b, ReduceKind::Sum, b.pow(size, b.splatLike(size, order)), *dims), order);
  });
}

LogicalResult opNorm(Call &c) { return norm(c, reduced(c), c.numberOr(c.has("ord") ? "ord" : "p", 2)); }

/// Of vectors, or of matrices by the root of their squares; other norms of matrices need their singular values.
LogicalResult opLinalgNorm(Call &c) {
  auto dims = reduced(c);
  const bool isGiven = c.has("ord"), isFrobenius = c.text("ord", "") == "fro" && dims && dims->size() == 2;
  if (!dims || (isGiven && !isFrobenius && (!c.number("ord") || dims->size() != 1)))
    return c.fail("norms of matrices other than Frobenius' are not supported");
  return norm(c, dims, isGiven && !isFrobenius ? *c.number("ord") : 2);
}
LogicalResult opMatrixNorm(Call &c) {
  auto dims = c.has("dim")          ? reduced(c)
              : c.rank("self") >= 2 ? std::optional(Dims{c.rank("self") - 2, c.rank("self") - 1})
                                    : std::nullopt;
  if (!dims || dims->size() != 2 || c.text("ord", "fro") != "fro")
    return c.fail("norms of matrices other than Frobenius' are not supported");
  return norm(c, dims, 2);
}

// --- Norms of weights ---

/// The norm of each slice along `dim`, or of all for -1.
FailureOr<Value> normExcept(Call &c, double order) {
  const int64_t rank = c.rank("v"), dim = c.integerOr("dim", 0);
  if (order != 2 || !c.isFloat("v") || dim < -1 || dim >= rank || c.type("v").getNumElements() == 0)
    return c.fail("expected floating point, a dimension and the order 2");
  Build &b = c.b;
  Dims dims;
  SmallVector<int64_t> shape;
  for (int64_t at = 0; at < rank; ++at) {
    if (at != dim)
      dims.push_back(at);
    shape.push_back(at == dim ? c.shape("v")[at] : 1);
  }
  Value x = b.convert(c.value("v"), computedIn(c.element("v")));
  Value root = rootOf(b, reduce(b, ReduceKind::Sum, b.mul(x, x), dims), 2);
  return b.convert(dim == -1 ? root : b.reshape(root, shape), c.element("v"));
}
LogicalResult opNormExceptDim(Call &c) {
  auto result = normExcept(c, c.numberOr("pow", 2));
  return failed(result) ? failure() : c.set(*result);
}
/// v g / |v| (Salimans and Kingma, Weight Normalization, 2016).
LogicalResult opWeightNorm(Call &c) {
  auto size = normExcept(c, 2);
  if (failed(size))
    return failure();
  auto wide = broadcastShape(c.shape("g"), shapeOf(*size));
  if (!wide || broadcastShape(*wide, c.shape("v")) != SmallVector<int64_t>(c.shape("v")) ||
      c.element("g") != c.element("v"))
    return c.fail("'g' does not fit 'v'");
  Build &b = c.b;
  Value factor = b.div(b.broadcastTo(c.value("g"), *wide), b.broadcastTo(*size, *wide));
  return failed(c.set(b.mul(c.value("v"), b.broadcastTo(factor, c.shape("v"))))) ? failure() : c.set(*size, 1);
}

const OpRow kReduceOps[] = {
    {"aten._weight_norm.default", opWeightNorm, "v,g"},
    {"aten._weight_norm_interface.default", opWeightNorm, "v,g"},
    {"aten._is_all_true.default", opAny<true>},
    {"aten.all.default", opAny<true>},
    {"aten.all.dim", opAny<true>},
    {"aten.all.dims", opAny<true>},
    {"aten.amax.default", opExtreme<ReduceKind::Max>},
    {"aten.amin.default", opExtreme<ReduceKind::Min>},
    {"aten.aminmax.default", opAminmax},
    {"aten.any.default", opAny<false>},
    {"aten.any.dim", opAny<false>},
    {"aten.any.dims", opAny<false>},
    {"aten.count_nonzero.default", opCountNonzero},
    {"aten.count_nonzero.dim_IntList", opCountNonzero},
    {"aten.frobenius_norm.dim", opNorm},
    {"aten.linalg_matrix_norm.str_ord", opMatrixNorm},
    {"aten.linalg_norm.default", opLinalgNorm},
    {"aten.linalg_norm.ord_str", opLinalgNorm},
    {"aten.linalg_vector_norm.default", opNorm},
    {"aten.logsumexp.default", opLogSumExp},
    {"aten.max.default", opExtreme<ReduceKind::Max>},
    {"aten.mean.default", opMean},
    {"aten.mean.dim", opMean},
    {"aten.min.default", opExtreme<ReduceKind::Min>},
    {"aten.nanmean.default", opNanSum<true>},
    {"aten.nansum.default", opNanSum<false>},
    {"aten.norm.Scalar", opNorm},
    {"aten.norm.ScalarOpt_dim", opNorm},
    {"aten.norm.ScalarOpt_dim_dtype", opNorm},
    {"aten.norm.ScalarOpt_dtype", opNorm},
    {"aten.norm_except_dim.default", opNormExceptDim, "v"},
    {"aten.prod.default", opProd},
    {"aten.prod.dim_int", opProd},
    {"aten.special_logsumexp.default", opLogSumExp},
    {"aten.std.correction", opVar<true, false>},
    {"aten.std.default", opVar<true, false>},
    {"aten.std.dim", opVar<true, false>},
    {"aten.std_mean.correction", opVar<true, true>},
    {"aten.std_mean.default", opVar<true, true>},
    {"aten.std_mean.dim", opVar<true, true>},
    {"aten.sum.default", opSum},
    {"aten.sum.dim_IntList", opSum},
    {"aten.var.correction", opVar<false, false>},
    {"aten.var.default", opVar<false, false>},
    {"aten.var.dim", opVar<false, false>},
    {"aten.var_mean.correction", opVar<false, true>},
    {"aten.var_mean.default", opVar<false, true>},
    {"aten.var_mean.dim", opVar<false, true>},
};
} // namespace

llvm::ArrayRef<OpRow> reduceOps() { return kReduceOps; }

} // namespace tessera::pt2
