//===- OpsQuantize.cpp - rounding to integers in training ------------------===//
//
// Fake quantisation: numbers are rounded to whole steps and stay floats. The slope goes straight through where a number
// lies within the range of integers, and is 0 where it is clamped, as in PyTorch; scales have none.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::plus;

/// `scale` and `zero` are numbers or tensors that broadcast to the shape of `self` along `dims`.
LogicalResult quantised(Call &c, Value scale, Value zero, ArrayRef<int64_t> dims) {
  auto low = c.integer("quant_min"), high = c.integer("quant_max");
  if (!low || !high || *low > *high || !c.isFloat("self"))
    return c.fail("expected floating point and a known range of integers");
  Build &b = c.b;
  Value self = b.convert(c.value("self"), computedIn(c.element("self")));
  Type element = tensorType(self).getElementType();
  auto still = [&](Value x) { return StopGradientOp::create(b.builder, b.loc, x).getResult(); };
  auto wide = [&](Value x) { return b.broadcast(x, shapeOf(self), dims); };
  scale = still(b.convert(scale, element));
  zero = wide(still(b.convert(zero, element)));
  Value x = still(self), inverse = b.div(b.splatLike(scale, 1), scale);
  Value steps = b.add(zero, b.unary<RoundOp>(b.mul(x, wide(inverse))));
  const auto least = static_cast<double>(*low), most = static_cast<double>(*high);
  Value isWithin = b.mul(b.compare(CompareDirection::Ge, steps, b.splatLike(steps, least)),
                         b.compare(CompareDirection::Le, steps, b.splatLike(steps, most)));
  Value clamped = frontend::atMost(b, frontend::atLeast(b, steps, least), most);
  Value result = b.mul(b.sub(clamped, zero), wide(scale));
  // 0, with the slope of `self`.
  Value through = b.select(isWithin, b.sub(self, x), b.splatLike(self, 0));
  return c.set(b.convert(b.add(result, through), c.element("self")));
}

/// The scale as a number or a tensor of one element.
LogicalResult opFakeQuantize(Call &c) {
  Build &b = c.b;
  auto scalar = [&](StringRef name) -> FailureOr<Value> {
    if (c.isTensor(name)) {
      if (c.type(name).getNumElements() != 1)
        return c.fail("'" + name + "' has more than one element");
      return b.reshape(c.value(name), {});
    }
    auto number = c.number(name);
    if (!number)
      return c.fail("'" + name + "' is not known");
    return b.splat(RankedTensorType::get({}, b.builder.getF32Type()), *number);
  };
  auto scale = scalar("scale"), zero = scalar("zero_point");
  return failed(scale) || failed(zero) ? failure() : quantised(c, *scale, *zero, {});
}

/// A scale for each element of one dimension.
LogicalResult opFakeQuantizeChannels(Call &c) {
  auto axis = axisOf(c.integerOr("axis", -1), c.rank("self"));
  for (StringRef name : {"scale", "zero_point"})
    if (!axis || c.rank("self") == 0 || c.shape(name) != c.shape("self").slice(*axis, 1))
      return c.fail("'" + name + "' is no vector with an element for each channel");
  return quantised(c, c.value("scale"), c.value("zero_point"), {*axis});
}

// --- With moving averages of the range ---

struct Range {
  Value least, most;
};

/// The smallest and the largest element of all, or of each channel, as moving averages; infinite ones have not begun.
Range nextRange(Call &c, bool isByChannel, int64_t axis, const Range &before) {
  Build &b = c.b;
  Value x = StopGradientOp::create(b.builder, b.loc, c.value("self"));
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < c.rank("self"); ++dim)
    if (!isByChannel || dim != axis)
      dims.push_back(dim);
  auto follow = [&](ReduceKind kind, Value running) {
    Value now = b.reshape(b.reduce(kind, x, dims), shapeOf(running));
    Value isNew = frontend::isInfinite(b, running), start = b.select(isNew, now, running);
    return b.add(start, b.scale(b.sub(now, start), c.numberOr("averaging_const", 1)));
  };
  return {follow(ReduceKind::Min, before.least), follow(ReduceKind::Max, before.most)};
}

/// Scale and zero point (f64) of a range that takes in 0, as PyTorch chooses them; of a symmetric one around 0 the zero
/// point is the middle.
std::pair<Value, Value> chooseScale(Build &b, Range range, int64_t low, int64_t high, bool isSymmetric) {
  constexpr double kSmallest = static_cast<double>(6.1e-5F);
  const auto steps = static_cast<double>(high - low), from = static_cast<double>(low), to = static_cast<double>(high);
  Value least = b.convert(range.least, b.builder.getF64Type()), most = b.convert(range.most, b.builder.getF64Type());
  Value zero = b.splatLike(least, 0),
        isAround = b.mul(b.compare(CompareDirection::Lt, least, zero), b.compare(CompareDirection::Gt, most, zero));
  auto over = [&](Value x, double number) { return b.div(x, b.splatLike(x, number)); };
  auto rounded = [&](Value x) { return b.convert(b.convert(x, b.builder.getF32Type()), b.builder.getF64Type()); };
  if (isSymmetric) {
    const int64_t middle = (high - low) / 2;
    const auto half = static_cast<double>(middle);
    Value step = b.max(rounded(over(b.neg(least), half + 1)), rounded(over(most, half)));
    least = b.select(isAround, rounded(b.scale(step, -half - 1)), least);
    most = b.select(isAround, rounded(b.scale(step, half)), most);
  }
  least = frontend::atMost(b, least, 0);
  most = frontend::atLeast(b, most, 0);
  Value scale = over(b.sub(most, least), steps), single = b.convert(scale, b.builder.getF32Type());
  Value isNothing = b.max(frontend::compareWith(b, CompareDirection::Eq, single, 0),
                          frontend::isInfinite(b, b.div(b.splatLike(single, 1), single)));
  scale = b.select(isNothing, b.splatLike(scale, 0.1), scale);
  // A range that is too small is widened.
  Value isSmall = frontend::compareWith(b, CompareDirection::Lt, scale, kSmallest), one = b.splatLike(scale, 1);
  Value wider = b.select(isSmall, b.div(b.splatLike(scale, kSmallest), scale), one);
  scale = b.select(isSmall, b.splatLike(scale, kSmallest), scale);
  Value below = b.div(b.mul(least, wider), scale), above = b.div(b.mul(most, wider), scale);
  // From the end that is nearer to a whole number of steps.
  Value isFromLeast = b.compare(CompareDirection::Lt, plus(b, b.neg(b.unary<AbsOp>(below)), std::abs(from)),
                                plus(b, b.neg(b.unary<AbsOp>(above)), std::abs(to)));
  Value place = b.select(isFromLeast, plus(b, b.neg(below), from), plus(b, b.neg(above), to));
  if (isSymmetric)
    place = b.select(isAround, b.splatLike(place, (from + to) / 2), place);
  return {scale, b.unary<RoundOp>(frontend::atMost(b, frontend::atLeast(b, place, from), to))};
}

/// What torch.ao.quantization.prepare_qat makes of weights and activations: the range of numbers is observed, and
/// they are rounded by it.
LogicalResult opObserveAndQuantize(Call &c) {
  const HostTensor *observes = c.known("observer_on"), *rounds = c.known("fake_quant_on");
  auto low = c.integer("quant_min"), high = c.integer("quant_max");
  if (!observes || !rounds || observes->size() != 1 || rounds->size() != 1)
    return c.fail("whether it observes and rounds depends on data");
  const bool isByChannel = c.flag("per_row_fake_quant", false);
  auto axis = axisOf(c.integerOr("ch_axis", 0), c.rank("self"));
  constexpr int64_t kMost = int64_t{1} << 31;
  if (!low || !high || *low >= *high || *low < -kMost || *high >= kMost || !c.element("self").isF32() ||
      c.type("self").getNumElements() == 0 || (isByChannel && !axis))
    return c.fail("expected f32 that is not empty, a known range of integers, and a dimension that is in range");
  const int64_t count = isByChannel ? c.shape("self")[*axis] : 1;
  for (StringRef name : {"running_min", "running_max", "scale", "zero_point"})
    if (c.type(name).getNumElements() != count)
      return c.fail("'" + name + "' has " + Twine(c.type(name).getNumElements()) +
                    " elements, and the first pass gives it " + Twine(count) +
                    ": run the module once before it is exported");
  Build &b = c.b;
  Range range = {c.value("running_min"), c.value("running_max")};
  if (observes->number(0) != 0)
    range = nextRange(c, isByChannel, axis.value_or(0), range);
  c.setNext("running_min", range.least);
  c.setNext("running_max", range.most);
  if (rounds->number(0) == 0) {
    c.setNext("scale", c.value("scale"));
    c.setNext("zero_point", c.value("zero_point"));
    return c.set(c.value("self"));
  }
  const SmallVector<int64_t> shape = isByChannel ? SmallVector<int64_t>{count} : SmallVector<int64_t>();
  range = {b.reshape(range.least, shape), b.reshape(range.most, shape)};
  auto [wide, zero] = chooseScale(b, range, *low, *high, c.flag("symmetric_quant", false));
  Value scale = b.convert(wide, c.element("scale"));
  c.setNext("scale", b.reshape(scale, c.shape("scale")));
  c.setNext("zero_point", b.reshape(b.convert(zero, c.element("zero_point")), c.shape("zero_point")));
  return quantised(c, scale, zero, isByChannel ? SmallVector<int64_t>{*axis} : SmallVector<int64_t>());
}

const OpRow kQuantizeOps[] = {
    {"aten.fake_quantize_per_channel_affine.default", opFakeQuantizeChannels, "self,scale,zero_point"},
    {"aten.fake_quantize_per_tensor_affine.default", opFakeQuantize},
    {"aten.fake_quantize_per_tensor_affine.tensor_qparams", opFakeQuantize, "self,scale,zero_point"},
    {"aten.fused_moving_avg_obs_fake_quant.default", opObserveAndQuantize,
     "self,observer_on,fake_quant_on,running_min,running_max,scale,zero_point"},
};
} // namespace

llvm::ArrayRef<OpRow> quantizeOps() { return kQuantizeOps; }

} // namespace tessera::pt2
