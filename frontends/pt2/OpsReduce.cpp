//===- OpsReduce.cpp - sums, means, maxima, running sums -------------------===//

#include "compiler/dialect/train/Running.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// The dimensions of `dim`; all of them where it is missing or empty.
std::optional<SmallVector<int64_t>> reduced(Call &c) {
  auto given = c.has("dim") ? c.ints("dim") : std::nullopt;
  if (!c.has("dim") || (given && given->empty()))
    return llvm::to_vector(llvm::seq<int64_t>(0, c.rank("self")));
  return c.axes("dim", c.rank("self"));
}

/// Reduces to the result's type, and keeps dimensions of size 1 where that is asked for.
LogicalResult finish(Call &c, ArrayRef<int64_t> dims, llvm::function_ref<Value(Value)> make) {
  Type element = c.resultElement();
  if (!element || element.isInteger(1))
    return c.fail("the result's element type is not supported");
  Value result = c.b.convert(make(c.b.convert(c.value("self"), computedIn(element))), element);
  if (c.flag("keepdim", false)) {
    SmallVector<int64_t> shape(c.shape("self"));
    for (int64_t dim : dims)
      shape[dim] = 1;
    result = c.b.reshape(result, shape);
  }
  return c.set(result);
}

int64_t countOf(Call &c, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= c.shape("self")[dim];
  return count;
}

LogicalResult opSum(Call &c) {
  auto dims = reduced(c);
  if (!dims)
    return c.fail("a dimension is out of range");
  return finish(c, *dims, [&](Value x) { return c.b.sum(x, *dims); });
}

LogicalResult opMean(Call &c) {
  auto dims = reduced(c);
  if (!dims || !isa_and_nonnull<FloatType>(c.resultElement()) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or nothing is averaged");
  return finish(c, *dims, [&](Value x) { return frontend::mean(c.b, x, *dims); });
}

LogicalResult opVar(Call &c) {
  auto dims = reduced(c);
  const double correction = c.has("correction") ? c.numberOr("correction", 1) : c.flag("unbiased", true) ? 1 : 0;
  if (!dims || !c.isFloat("self") || static_cast<double>(countOf(c, *dims)) <= correction)
    return c.fail("a dimension is out of range, or too little is averaged");
  return finish(c, *dims, [&](Value x) {
    const auto count = static_cast<double>(countOf(c, *dims));
    Value mean = frontend::mean(c.b, x, *dims);
    Value centred = c.b.sub(x, c.b.broadcastReduced(mean, shapeOf(x), *dims));
    return c.b.scale(c.b.sum(c.b.mul(centred, centred), *dims), 1.0 / (count - correction));
  });
}

template <ReduceKind kind> LogicalResult opExtreme(Call &c) {
  auto dims = reduced(c);
  if (!dims || c.element("self").isInteger(1) || countOf(c, *dims) == 0)
    return c.fail("a dimension is out of range, or the input is boolean or empty");
  return finish(c, *dims, [&](Value x) { return c.b.reduce(kind, x, *dims); });
}

LogicalResult opCumsum(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  Type element = c.resultElement();
  if (!dim || c.rank("self") == 0 || !element || element.isInteger(1))
    return c.fail("the dimension is out of range");
  // Evaluated here: as ops it is products with triangles of positions, which are too large for that.
  const HostTensor *known = c.known("self");
  if (auto integer = dyn_cast<IntegerType>(element); integer && known && !known->isFloat())
    return c.set(HostTensor::ofInts(RankedTensorType::get(known->shape(), integer), known->ints).runningSums(*dim));
  return c.set(runningSums(c.b, c.b.convert(c.value("self"), element), *dim, {}));
}

const OpRow kRows[] = {
    {"aten.amax.default", opExtreme<ReduceKind::Max>},
    {"aten.cumsum.default", opCumsum},
    {"aten.mean.default", opMean},
    {"aten.mean.dim", opMean},
    {"aten.sum.default", opSum},
    {"aten.sum.dim_IntList", opSum},
    {"aten.var.correction", opVar},
    {"aten.var.dim", opVar},
};
} // namespace

llvm::ArrayRef<OpRow> reduceOps() { return kRows; }

} // namespace tessera::pt2
