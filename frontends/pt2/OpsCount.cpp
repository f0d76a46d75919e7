//===- OpsCount.cpp - how many elements have which value --------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// How many elements lie in each of some intervals of one width; those of the last one may reach its end. What lies
/// outside, or is no number, does not count.
LogicalResult opHistogram(Call &c) {
  auto bins = c.integer("bins");
  auto from = c.number("min"), to = c.number("max");
  const bool isGiven = (!from && !c.has("min")) || (from && std::isfinite(*from));
  const double low = from.value_or(0), high = to.value_or(0);
  Type element = c.resultElement();
  if (!bins || *bins < 1 || !isGiven || (c.has("max") && !to) || !std::isfinite(high) || low > high ||
      !isa_and_nonnull<FloatType>(element))
    return c.fail("expected floating point, a known number of intervals, and known ends");
  const int64_t count = c.type("self").getNumElements();
  if (!countElements({count, *bins}))
    return c.fail("the result is too large");
  Build &b = c.b;
  Value x = b.reshape(b.convert(c.value("self"), computedIn(element)), {count});
  x = StopGradientOp::create(b.builder, b.loc, x);
  Value first = b.splat(RankedTensorType::get({}, tensorType(x).getElementType()), low),
        last = b.splatLike(first, high);
  if (low == high) { // PyTorch's sign for the smallest and the largest element
    if (low != 0)
      return c.fail("its ends are equal");
    if (count == 0)
      return c.set(b.splat(RankedTensorType::get({*bins}, element), 0));
    first = b.reduce(ReduceKind::Min, x, {0});
    last = b.reduce(ReduceKind::Max, x, {0});
    Value isOne = b.convert(b.compare(CompareDirection::Eq, first, last), tensorType(x).getElementType());
    first = b.sub(first, isOne);
    last = b.add(last, isOne);
  }
  auto wide = [&](Value value) { return b.broadcast(value, {count}, {}); };
  Value isInside =
      b.mul(b.compare(CompareDirection::Ge, x, wide(first)), b.compare(CompareDirection::Le, x, wide(last)));
  Value place = b.div(b.scale(b.sub(x, wide(first)), static_cast<double>(*bins)), wide(b.sub(last, first)));
  // The end of the last interval is in it; -1 is no interval.
  place = b.neg(b.max(b.neg(b.unary<FloorOp>(place)), b.splatLike(place, 1 - static_cast<double>(*bins))));
  place = b.convert(b.select(isInside, place, b.splatLike(place, -1)), b.builder.getI64Type());
  const SmallVector<int64_t> shape = {count, *bins};
  Value hits = b.compare(CompareDirection::Eq, b.broadcast(place, shape, {0}),
                         b.iota(RankedTensorType::get(shape, b.builder.getI64Type()), 1));
  return c.set(b.convert(b.sum(b.convert(hits, b.builder.getI64Type()), {0}), element));
}

/// How often each number from 0 to minlength - 1 occurs, or the sum of its weights. A larger one, of which PyTorch
/// makes a longer result, is an error when the step runs, or here if it is known.
LogicalResult opBinCount(Call &c) {
  int64_t bins = c.integerOr("minlength", 0);
  Type element = c.resultElement();
  if (c.isFloat("self") || c.element("self").isInteger(1) || c.rank("self") != 1 || !element)
    return c.fail("expected a vector of integers");
  if (const HostTensor *known = c.known("self"))
    for (int64_t value : known->ints) {
      if (value < 0 || value >= frontend::kMaxElements)
        return c.fail("a number is negative or too large");
      bins = std::max(bins, value + 1);
    }
  if (bins < 1 && !c.known("self"))
    return c.fail("the size of its result depends on data: minlength, which no number may reach, says it "
                  "(torch.nn.functional.one_hot(x, n).sum(0) counts, too)");
  if (!countElements({bins}))
    return c.fail("the result is too large");
  Build &b = c.b;
  Value x = b.convert(c.value("self"), b.builder.getI64Type());
  Value weights = b.splat(RankedTensorType::get(c.shape("self"), element), 1);
  if (c.isTensor("weights")) {
    if (c.shape("weights") != c.shape("self"))
      return c.fail("the weights do not fit");
    weights = StopGradientOp::create(b.builder, b.loc, b.convert(c.value("weights"), element));
  }
  Value none = b.splat(RankedTensorType::get({bins}, element), 0);
  if (bins == 0 || shapeOf(x)[0] == 0)
    return c.set(none);
  if (!c.known("self"))
    x = frontend::inDimension(b, x, bins);
  return c.set(frontend::place(b, frontend::ScatterKind::Add, none, x, weights));
}

const OpRow kCountOps[] = {
    {"aten.bincount.default", opBinCount},
    {"aten.histc.default", opHistogram},
};
} // namespace

llvm::ArrayRef<OpRow> countOps() { return kCountOps; }

} // namespace tessera::pt2
