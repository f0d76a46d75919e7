//===- OpsLeaf.cpp - tensors from nothing, sizes, checks -------------------===//

#include "frontends/pt2/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Elements up to which a tensor that is made from nothing is known, so that what follows from it can be.
constexpr int64_t kMostEvaluated = 1 << 16;

LogicalResult opArange(Call &c) {
  Type element = c.resultElement();
  const double start = c.numberOr("start", 0), step = c.numberOr("step", 1);
  std::optional<double> end = c.number("end");
  const double length = end ? std::ceil((*end - start) / step) : 0;
  if (!end || !element || element.isInteger(1) || !(std::abs(*end) < 0x1p40 && std::abs(start) < 0x1p40) ||
      !(std::abs(length) < 0x1p40) || !std::isfinite(step))
    return c.fail("expected known bounds and a step");
  const auto count = static_cast<int64_t>(std::max(0.0, length));
  Build &b = c.b;
  // Of integers exactly; floats are numbers times the step, as PyTorch computes them, too.
  if (auto type = RankedTensorType::get({count}, element); count <= kMostEvaluated) {
    HostTensor values = HostTensor::splat(type, 0);
    for (int64_t i = 0; i < count; ++i)
      if (values.isFloat())
        values.floats[i] = frontend::roundTo(element, start + static_cast<double>(i) * step);
      else
        values.ints[i] = frontend::wrapTo(element, static_cast<int64_t>(start + static_cast<double>(i) * step));
    return c.set(std::move(values));
  }
  Value x = b.iota(RankedTensorType::get({count}, element), 0);
  if (step != 1)
    x = b.mul(x, b.splatLike(x, step));
  if (start != 0)
    x = b.add(x, b.splatLike(x, start));
  return c.set(x);
}

/// `steps` numbers at equal distances, both ends included.
LogicalResult opLinspace(Call &c) {
  Type element = c.resultElement();
  auto start = c.number("start"), end = c.number("end");
  const int64_t steps = c.integerOr("steps", -1);
  if (!start || !end || !std::isfinite(*start) || !std::isfinite(*end) || steps < 0 ||
      steps > frontend::kMaxConstantElements || !isa_and_nonnull<FloatType>(element))
    return c.fail("expected known ends and a number of steps, and floating point");
  HostTensor values = HostTensor::splat(RankedTensorType::get({steps}, element), 0);
  for (int64_t i = 0; i < steps; ++i) {
    // From the nearer end, so that both are exact.
    const double step = steps > 1 ? (*end - *start) / static_cast<double>(steps - 1) : 0;
    values.floats[i] =
        frontend::roundTo(element, i < steps / 2 || steps == 1 ? *start + static_cast<double>(i) * step
                                                               : *end - static_cast<double>(steps - 1 - i) * step);
  }
  return c.set(std::move(values));
}

LogicalResult filled(Call &c, std::optional<SmallVector<int64_t>> shape, std::optional<double> value) {
  Type element = c.resultElement();
  if (!shape || !element || !countElements(*shape) || !value)
    return c.fail("expected a known shape, type and value");
  auto one = c.splat(element, *value);
  if (failed(one))
    return failure();
  auto type = RankedTensorType::get(*shape, element);
  return *countElements(*shape) <= kMostEvaluated ? c.set(HostTensor::splat(type, *value))
                                                  : c.set(c.b.splat(type, *value));
}
LogicalResult opFull(Call &c) { return filled(c, c.ints("size"), c.number("fill_value")); }
template <int value> LogicalResult opFilled(Call &c) { return filled(c, c.ints("size"), value); }
LogicalResult opFullLike(Call &c) { return filled(c, SmallVector<int64_t>(c.shape("self")), c.number("fill_value")); }
template <int value> LogicalResult opFilledLike(Call &c) {
  return filled(c, SmallVector<int64_t>(c.shape("self")), value);
}
LogicalResult opScalarTensor(Call &c) { return filled(c, SmallVector<int64_t>(), c.number("s")); }

// --- Sizes and checks ---

LogicalResult opSize(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0)
    return c.fail("the dimension is out of range");
  return c.setNumber(static_cast<double>(c.shape("self")[*dim]));
}
LogicalResult opNumel(Call &c) { return c.setNumber(static_cast<double>(c.type("self").getNumElements())); }

template <double (*compute)(double, double)> LogicalResult onNumbers(Call &c) {
  auto a = c.number(c.has("a") ? "a" : "self"), b = c.number(c.has("b") ? "b" : "other");
  if (!a || !b)
    return c.fail("expected numbers");
  return c.setNumber(compute(*a, *b));
}
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double whole(double a, double b) { return std::floor(a / b); }
double rest(double a, double b) { return a - b * std::floor(a / b); }
double power(double a, double b) { return std::pow(a, b); }
double larger(double a, double b) { return std::max(a, b); }
double smaller(double a, double b) { return std::min(a, b); }
template <int relation> double compared(double a, double b) {
  switch (relation) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a < b;
  case 3:
    return a <= b;
  case 4:
    return a > b;
  default:
    return a >= b;
  }
}
template <double (*compute)(double)> LogicalResult onNumber(Call &c) {
  auto a = c.number(c.has("a") ? "a" : c.has("x") ? "x" : "self");
  return a ? c.setNumber(compute(*a)) : c.fail("expected a number");
}
double negated(double a) { return -a; }
double asFloat(double a) { return a; }
double truncated(double a) { return std::trunc(a); }
LogicalResult opNothing(Call &c) { return success(); }
/// A check that the exporter wrote: it must hold for the sizes that were chosen.
LogicalResult opAssert(Call &c) {
  const auto holds = c.number("self");
  return holds && *holds != 0 ? success()
                              : c.fail("a check of the program does not hold for these sizes, or depends on data");
}

/// A check of values, which a step does not make.
LogicalResult opAssertAsync(Call &c) {
  if (const HostTensor *known = c.known("self"); known && known->size() == 1)
    return known->number(0) != 0 ? success() : c.fail("a check of the program fails");
  emitWarning(c.b.loc) << "the program checks values here, which training does not: "
                       << c.text("assert_msg", "an assertion");
  return success();
}

const OpRow kLeafOps[] = {
    {"aten._assert_async.default", opAssertAsync},
    {"aten._assert_async.msg", opAssertAsync},
    {"aten._assert_scalar.default", opAssert, ""},
    {"aten._assert_tensor_metadata.default", opNothing, ""},
    {"aten.arange.default", opArange, ""},
    {"aten.arange.start", opArange, ""},
    {"aten.arange.start_step", opArange, ""},
    // Memory that nothing has been written to may hold anything.
    {"aten.empty.memory_format", opFilled<0>, ""},
    {"aten.empty_like.default", opFilledLike<0>},
    {"aten.full.default", opFull, ""},
    {"aten.full_like.default", opFullLike},
    {"aten.linspace.default", opLinspace, ""},
    {"aten.new_empty.default", opFilled<0>},
    {"aten.new_full.default", opFull},
    {"aten.new_ones.default", opFilled<1>},
    {"aten.new_zeros.default", opFilled<0>},
    {"aten.ones.default", opFilled<1>, ""},
    {"aten.ones_like.default", opFilledLike<1>},
    {"aten.scalar_tensor.default", opScalarTensor, ""},
    {"aten.sym_constrain_range_for_size.default", opNothing, ""},
    {"aten.sym_numel.default", opNumel},
    {"aten.sym_size.int", opSize},
    {"aten.zeros.default", opFilled<0>, ""},
    {"aten.zeros_like.default", opFilledLike<0>},
    {"_operator.add", onNumbers<sum>, ""},
    {"_operator.eq", onNumbers<compared<0>>, ""},
    {"_operator.floordiv", onNumbers<whole>, ""},
    {"_operator.ge", onNumbers<compared<5>>, ""},
    {"_operator.gt", onNumbers<compared<4>>, ""},
    {"_operator.le", onNumbers<compared<3>>, ""},
    {"_operator.lt", onNumbers<compared<2>>, ""},
    {"_operator.mod", onNumbers<rest>, ""},
    {"_operator.mul", onNumbers<product>, ""},
    {"_operator.ne", onNumbers<compared<1>>, ""},
    {"_operator.neg", onNumber<negated>, ""},
    {"_operator.pow", onNumbers<power>, ""},
    {"_operator.sub", onNumbers<difference>, ""},
    {"_operator.truediv", onNumbers<quotient>, ""},
    {"math.trunc", onNumber<truncated>, ""},
    {"torch.sym_float", onNumber<asFloat>, ""},
    {"torch.sym_max", onNumbers<larger>, ""},
    {"torch.sym_min", onNumbers<smaller>, ""},
};
} // namespace

llvm::ArrayRef<OpRow> leafOps() { return kLeafOps; }

} // namespace tessera::pt2
