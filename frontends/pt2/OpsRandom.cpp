//===- OpsRandom.cpp - random numbers other than dropout -------------------===//
//
// PyTorch draws other numbers; these have its distributions. frontends/python/tessera/draws.py has every row, too.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/common/Order.h"
#include "frontends/common/Random.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::Random;

template <LogicalResult (*draw)(Call &, Random &)> LogicalResult drawn(Call &c) {
  if (c.has("generator"))
    return c.fail("a generator of its own is not supported: random numbers follow the seed of the training");
  if (!c.node.draw)
    return c.fail("it is not among the draws that the program was found to make");
  Random random(c.b, c.step, *c.node.draw);
  return draw(c, random);
}

/// Digits of a float's significand.
int digitsOf(Type element) { return static_cast<int>(cast<FloatType>(element).getFPMantissaWidth()); }

/// The type in which numbers for a tensor are made: f64 for f64, else f32.
Type madeIn(Type element) { return element.isF64() ? element : Type(Float32Type::get(element.getContext())); }

/// A number, or what it is where the program leaves it out; NaN if it is not known.
double numberOrNaN(Call &c, StringRef name, double fallback) {
  return c.has(name) ? c.number(name).value_or(std::numeric_limits<double>::quiet_NaN()) : fallback;
}

/// The shape of a new tensor: that of `self`, or the list `size`. Fails with the call's reason.
FailureOr<SmallVector<int64_t>> shapeOfNew(Call &c) {
  if (!c.has("size"))
    return SmallVector<int64_t>(c.shape("self"));
  auto size = c.ints("size");
  if (!size || !countElements(*size))
    return c.fail("expected a known shape");
  return *size;
}

/// `value`, which has a gradient of 0, rather than none, by what it was made of.
Value following(Build &b, Value value, ArrayRef<Value> from) {
  for (Value x : from)
    if (x && isa<FloatType>(tensorType(x).getElementType()) && !x.getDefiningOp<ConstantOp>()) {
      Value zero = b.convert(frontend::constantOf(b, x, 0), tensorType(value).getElementType());
      value = b.add(value, b.broadcastTo(zero, shapeOf(value)));
    }
  return value;
}

/// Sets numbers in the type of the result, by which `self`, if there is one, has a gradient of 0.
LogicalResult setNumbers(Call &c, Value numbers) {
  Value made = c.b.convert(numbers, c.resultElement());
  const bool isChanged = c.isTensor("self") && c.isFloat("self") && !c.known("self");
  return c.set(isChanged ? following(c.b, made, {c.value("self")}) : made);
}

/// Shape and type of the result of an operator that makes floats.
struct Wanted {
  SmallVector<int64_t> shape;
  Type element, made;
};
FailureOr<Wanted> floats(Call &c) {
  auto shape = shapeOfNew(c);
  if (failed(shape))
    return failure();
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail("expected floating point");
  return Wanted{*shape, element, madeIn(element)};
}

// --- Uniform ---

/// On the grid that PyTorch has for the type, so that nothing is rounded up to 1.
Value uniform(Build &b, Random &random, const Wanted &to) {
  Value u = random.uniform(to.shape, to.made);
  if (const int digits = digitsOf(to.element); digits < 24)
    u = b.scale(b.unary<FloorOp>(b.scale(u, std::ldexp(1.0, digits))), std::ldexp(1.0, -digits));
  return u;
}

double largestBelow(Type element, double bound) {
  llvm::APFloat value(bound);
  bool isInexact = false;
  value.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmTowardNegative, &isInexact);
  if (value.convertToDouble() >= bound)
    value.next(/*nextDown=*/true);
  return value.convertToDouble();
}

/// From one bound to below the other, whatever rounding does.
Value between(Build &b, Value u, double from, double to, Type element) {
  if (from == 0 && to == 1)
    return b.convert(u, element);
  Value x = b.convert(frontend::plus(b, b.scale(u, to - from), from), element);
  const double last = largestBelow(element, to);
  return last >= from ? frontend::atMost(b, x, last) : x;
}

/// Whether the type holds both and what is between them.
bool areBounds(Type element, double from, double to) {
  const double most = llvm::APFloat::getLargest(cast<FloatType>(element).getFloatSemantics()).convertToDouble();
  return from <= to && std::abs(from) <= most && std::abs(to) <= most && to - from <= most;
}

LogicalResult opUniform(Call &c, Random &random) {
  auto wanted = floats(c);
  const double from = numberOrNaN(c, "from", 0), to = numberOrNaN(c, "to", 1);
  if (failed(wanted))
    return failure();
  if (!areBounds(wanted->element, from, to))
    return c.fail("expected floating point and bounds in order");
  return setNumbers(c, between(c.b, uniform(c.b, random, *wanted), from, to, wanted->element));
}
LogicalResult opRand(Call &c, Random &random) {
  auto wanted = floats(c);
  return succeeded(wanted) ? c.set(c.b.convert(uniform(c.b, random, *wanted), wanted->element)) : failure();
}

/// Below 0 a random slope, else 1.
LogicalResult opRrelu(Call &c, Random &random) {
  const double lower = numberOrNaN(c, "lower", 1.0 / 8), upper = numberOrNaN(c, "upper", 1.0 / 3);
  auto wanted = floats(c);
  if (failed(wanted))
    return failure();
  if (!areBounds(wanted->element, lower, upper))
    return c.fail("expected floating point and bounds in order");
  Build &b = c.b;
  Value x = b.convert(c.value("self"), wanted->made);
  Value slope = c.flag("training", false)
                    ? between(b, random.uniform(wanted->shape, wanted->made), lower, upper, wanted->made)
                    : b.splatLike(x, (lower + upper) / 2);
  Value isAbove = frontend::compareWith(b, CompareDirection::Gt, x, 0);
  return c.set(b.convert(b.select(isAbove, x, b.mul(x, slope)), wanted->element));
}

// --- Others of floats ---

LogicalResult opRandn(Call &c, Random &random) {
  auto wanted = floats(c);
  return succeeded(wanted) ? c.set(c.b.convert(random.normal(wanted->shape, wanted->made), wanted->element))
                           : failure();
}

/// mean + std * normal, of numbers.
template <bool isLog> LogicalResult opNormal(Call &c, Random &random) {
  auto wanted = floats(c);
  const double mean = numberOrNaN(c, "mean", isLog ? 1 : 0), deviation = numberOrNaN(c, "std", isLog ? 2 : 1);
  if (failed(wanted))
    return failure();
  if (!(deviation >= 0) || !std::isfinite(mean) || !std::isfinite(deviation))
    return c.fail("expected floating point, a mean and a standard deviation");
  Value x = random.normal(wanted->shape, wanted->made);
  x = frontend::plus(c.b, c.b.scale(x, deviation), mean);
  return setNumbers(c, isLog ? c.b.exp(x) : x);
}

/// The same where one of them or both are tensors.
LogicalResult opNormalOf(Call &c, Random &random) {
  Build &b = c.b;
  Type element = c.resultElement();
  SmallVector<Value> tensors;
  SmallVector<int64_t> shape;
  for (StringRef name : {"mean", "std"})
    if (!c.isTensor(name) && !std::isfinite(numberOrNaN(c, name, 0))) {
      return c.fail("expected a known mean and standard deviation");
    } else if (c.isTensor(name)) {
      auto common = broadcastShape(shape, c.shape(name));
      if (!common || !c.isFloat(name))
        return c.fail("expected floating point, and shapes that fit each other");
      shape = *common;
      tensors.push_back(c.value(name));
    }
  if (tensors.empty() || !isa_and_nonnull<FloatType>(element))
    return c.fail("expected floating point");
  Type made = madeIn(element);
  auto operand = [&](StringRef name, double fallback) {
    if (!c.isTensor(name))
      return b.splat(RankedTensorType::get(shape, made), numberOrNaN(c, name, fallback));
    Value x = StopGradientOp::create(b.builder, b.loc, c.value(name));
    return b.broadcastTo(b.convert(x, made), shape);
  };
  Value deviation = operand("std", 1), mean = operand("mean", 0);
  Value x = b.add(b.mul(random.normal(shape, made), deviation), mean);
  return c.set(following(b, b.convert(x, element), tensors));
}

LogicalResult opExponential(Call &c, Random &random) {
  auto wanted = floats(c);
  const double rate = numberOrNaN(c, "lambd", 1);
  if (failed(wanted))
    return failure();
  if (!(rate > 0) || !std::isfinite(rate))
    return c.fail("expected floating point and a rate above 0");
  Value x = random.exponential(wanted->shape, wanted->made);
  if (rate != 1)
    x = c.b.scale(x, 1 / rate);
  // f16 would round what is small to 0.
  return setNumbers(c, wanted->element.isF16() ? frontend::atLeast(c.b, x, 0x1p-24) : x);
}

LogicalResult opCauchy(Call &c, Random &random) {
  auto wanted = floats(c);
  const double median = numberOrNaN(c, "median", 0), sigma = numberOrNaN(c, "sigma", 1);
  if (failed(wanted))
    return failure();
  if (!(sigma > 0) || !std::isfinite(sigma) || !std::isfinite(median))
    return c.fail("expected floating point, a median and a width above 0");
  Value x = c.b.scale(random.cauchy(wanted->shape, wanted->made), sigma);
  return setNumbers(c, frontend::plus(c.b, x, median));
}

// --- Choices ---

LogicalResult opBernoulli(Call &c, Random &random) {
  const double p = numberOrNaN(c, "p", 0.5);
  if (!(p >= 0 && p <= 1))
    return c.fail("expected a known probability from 0 to 1");
  return setNumbers(c, random.isBelow(c.shape("self"), madeIn(c.element("self")), p));
}

/// Of probabilities that are a tensor: `self` itself, or `p`.
LogicalResult opBernoulliOf(Call &c, Random &random) {
  Build &b = c.b;
  const StringRef name = c.isTensor("p") ? "p" : "self";
  auto shape = broadcastShape(c.shape(name), c.shape("self"));
  if (!c.isFloat(name) || !shape || ArrayRef<int64_t>(*shape) != c.shape("self"))
    return c.fail("expected probabilities that are floating point, and fit its shape");
  Value p = c.value(name);
  Value fixed = StopGradientOp::create(b.builder, b.loc, p);
  Value isTrue = random.isBelow(b.broadcastTo(b.convert(fixed, madeIn(c.element(name))), *shape));
  Value made = b.convert(isTrue, c.resultElement());
  const bool isFloat = c.isFloat("self");
  if (isFloat && name == "p" && !c.known("p"))
    made = following(b, made, {p});
  return c.set(isFloat && !c.known("self") ? following(b, made, {c.value("self")}) : made);
}

/// How often one tries until it is true the first time.
LogicalResult opGeometric(Call &c, Random &random) {
  Type element = c.resultElement();
  auto p = c.number("p");
  if (!p || !(*p > 0 && *p < 1) || !element || element.isInteger(1))
    return c.fail("expected numbers and a known probability between 0 and 1");
  const double rate = -std::log1p(-*p);
  Type made = isa<FloatType>(element) ? madeIn(element) : Type(c.b.builder.getF64Type());
  constexpr double kMost = 35; // no exponential number is larger
  if (isa<IntegerType>(element) && failed(c.splat(element, std::ceil(kMost / rate))))
    return failure();
  return setNumbers(c, frontend::ceil(c.b, c.b.scale(random.exponential(c.shape("self"), made), 1 / rate)));
}

/// Integers from `low` to below `high`, which the element type holds.
LogicalResult integers(Call &c, Random &random, std::optional<int64_t> low, std::optional<int64_t> high) {
  Build &b = c.b;
  Type element = c.resultElement();
  auto shape = shapeOfNew(c);
  if (failed(shape))
    return failure();
  if (!element || !low || !high || *low >= *high || std::abs(static_cast<double>(*low)) > 0x1p53)
    return c.fail("expected known bounds in order");
  const double most = isa<FloatType>(element) ? std::ldexp(1.0, digitsOf(element)) : 0x1p63;
  auto holds = [&](double bound) {
    return isa<FloatType>(element) ? std::abs(bound) <= most : succeeded(c.splat(element, bound));
  };
  // A double may round what is one less than a power of two up to it.
  const bool isWhole =
      element.isInteger(64) || (holds(static_cast<double>(*low)) && holds(static_cast<double>(*high - 1)));
  if (!isWhole)
    return c.fail("its type does not hold all numbers from " + Twine(*low) + " to " + Twine(*high - 1));
  Value made = random.below(*shape, static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low));
  if (!made)
    return c.fail("it draws from more than 2^39 integers, and their number is not a power of two");
  if (*low != 0)
    made = frontend::plus(b, made, static_cast<double>(*low));
  return setNumbers(c, made);
}
LogicalResult opRandint(Call &c, Random &random) {
  return integers(c, random, c.has("low") ? c.integer("low") : 0, c.integer("high"));
}
LogicalResult opRandom(Call &c, Random &random) { return integers(c, random, 0, c.integer("to")); }
/// All that the type holds from 0 on; of floats, up to where they stop holding all integers.
LogicalResult opRandomAll(Call &c, Random &random) {
  Type element = c.resultElement();
  if (element.isInteger(64))
    return setNumbers(c, random.below(c.shape("self"), uint64_t{1} << 63));
  if (isa<FloatType>(element))
    return integers(c, random, 0, (int64_t{1} << digitsOf(element)) + 1);
  const unsigned width = element.getIntOrFloatBitWidth();
  return integers(c, random, 0, int64_t{1} << (width == 1 || element.isUnsignedInteger() ? width : width - 1));
}

/// The order of random numbers of 48 bits; equal ones keep theirs.
LogicalResult opRandperm(Call &c, Random &random) {
  auto count = c.integer("n");
  Type element = c.resultElement();
  constexpr int64_t kMost = 1 << 24; // some of more would probably be equal
  if (!count || *count < 0 || *count > kMost || !element)
    return c.fail("expected a known number, not above " + Twine(kMost));
  if (*count == 0)
    return c.set(c.b.zeros(RankedTensorType::get({0}, element)));
  Value order = frontend::inOrder(c.b, random.bits({*count}), 0, *count, /*descending=*/false).indices;
  return c.set(c.b.convert(order, element));
}

/// The first to come of clocks that ring at rates `self`: weight / exponential (Efraimidis and Spirakis, Weighted
/// random sampling with a reservoir, 2006). With replacement each sample has clocks of its own.
LogicalResult opMultinomial(Call &c, Random &random) {
  Build &b = c.b;
  const int64_t rank = c.rank("self"), samples = c.integerOr("num_samples", 0);
  const int64_t kinds = rank == 1 || rank == 2 ? c.shape("self").back() : 0;
  const bool isRepeated = samples > 1 && c.flag("replacement", false);
  if (!c.isFloat("self") || kinds == 0 || samples < 1 || (!isRepeated && samples > kinds))
    return c.fail("expected weights in one or two dimensions, and not more samples than there are");
  Type made = madeIn(c.element("self"));
  SmallVector<int64_t> shape(c.shape("self")), dims = {rank - 1};
  Value weights = b.convert(c.value("self"), made);
  if (isRepeated) {
    shape.insert(shape.end() - 1, samples);
    if (!countElements(shape))
      return c.fail("there are too many samples");
    dims = rank == 1 ? SmallVector<int64_t>{1} : SmallVector<int64_t>{0, 2};
    weights = b.broadcast(weights, shape, dims);
  }
  Value first = b.div(weights, random.exponential(shape, made));
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  SmallVector<int64_t> result(c.shape("self").drop_back());
  result.push_back(samples);
  Value chosen = isRepeated || samples == 1 ? frontend::argExtreme(b, first, axis, /*isMin=*/false)
                                            : frontend::inOrder(b, first, axis, samples, /*descending=*/true).indices;
  return c.set(b.reshape(chosen, result));
}

const OpRow kRandomOps[] = {
    {"aten.bernoulli.Tensor", drawn<opBernoulliOf>},
    {"aten.bernoulli.default", drawn<opBernoulliOf>},
    {"aten.bernoulli.p", drawn<opBernoulli>},
    {"aten.cauchy.default", drawn<opCauchy>},
    {"aten.exponential.default", drawn<opExponential>},
    {"aten.geometric.default", drawn<opGeometric>},
    {"aten.log_normal.default", drawn<opNormal<true>>},
    {"aten.multinomial.default", drawn<opMultinomial>},
    {"aten.normal.Tensor_Tensor", drawn<opNormalOf>, "mean,std"},
    {"aten.normal.Tensor_float", drawn<opNormalOf>, "mean"},
    {"aten.normal.float_Tensor", drawn<opNormalOf>, "std"},
    {"aten.normal.float_float", drawn<opNormal<false>>, ""},
    {"aten.normal_functional.default", drawn<opNormal<false>>},
    {"aten.rand.default", drawn<opRand>, ""},
    {"aten.rand.generator", drawn<opRand>, ""},
    {"aten.rand_like.default", drawn<opRand>},
    {"aten.rand_like.generator", drawn<opRand>},
    {"aten.randint.default", drawn<opRandint>, ""},
    {"aten.randint.generator", drawn<opRandint>, ""},
    {"aten.randint.low", drawn<opRandint>, ""},
    {"aten.randint.low_generator", drawn<opRandint>, ""},
    {"aten.randint_like.default", drawn<opRandint>},
    {"aten.randint_like.generator", drawn<opRandint>},
    {"aten.randint_like.low_dtype", drawn<opRandint>},
    {"aten.randn.default", drawn<opRandn>, ""},
    {"aten.randn.generator", drawn<opRandn>, ""},
    {"aten.randn_like.default", drawn<opRandn>},
    {"aten.randn_like.generator", drawn<opRandn>},
    {"aten.random.default", drawn<opRandomAll>},
    {"aten.random.to", drawn<opRandom>},
    {"aten.randperm.default", drawn<opRandperm>, ""},
    {"aten.randperm.generator", drawn<opRandperm>, ""},
    {"aten.rrelu.default", drawn<opRrelu>},
    {"aten.uniform.default", drawn<opUniform>},
};
} // namespace

llvm::ArrayRef<OpRow> randomOps() { return kRandomOps; }

} // namespace tessera::pt2
