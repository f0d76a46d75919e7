//===- OpsActivation.cpp - activations --------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::atLeast;
using frontend::atMost;

/// Of floats; integers and booleans become the result's type first, as PyTorch does.
template <typename Make> LogicalResult unary(Call &c, Make make) {
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail("the result is not floating point");
  return c.set(c.b.convert(make(c.b, c.b.convert(c.value("self"), computedIn(element))), element));
}

Value whole(Build &b, Value x, double value) { return b.splatLike(x, value); }

LogicalResult opRelu(Call &c) {
  if (c.element("self").isInteger(1))
    return c.fail("boolean input");
  return c.set(atLeast(c.b, c.value("self"), 0));
}
LogicalResult opSilu(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.mul(x, b.unary<SigmoidOp>(x)); });
}
LogicalResult opLogSigmoid(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.neg(b.unary<SoftplusOp>(b.neg(x))); });
}
LogicalResult opMish(Call &c) {
  return unary(c, [](Build &b, Value x) { return b.mul(x, b.unary<TanhOp>(b.unary<SoftplusOp>(x))); });
}
LogicalResult opSoftplus(Call &c) {
  // Above the threshold PyTorch takes beta * x itself, which softplus is by then: to the last bit from 20 on in f32.
  const double beta = c.numberOr("beta", 1), threshold = c.numberOr("threshold", 20);
  if (beta == 0 || threshold < 20)
    return c.fail("beta is 0, or the threshold below 20");
  return unary(c, [&](Build &b, Value x) { return b.scale(b.unary<SoftplusOp>(b.scale(x, beta)), 1 / beta); });
}
LogicalResult opGelu(Call &c) {
  const std::string form = c.text("approximate", "none");
  if (form != "none" && form != "tanh")
    return c.fail("approximate is '" + form + "', expected 'none' or 'tanh'");
  return unary(c, [&](Build &b, Value x) { return b.gelu(form == "tanh" ? GeluForm::Tanh : GeluForm::Exact, x); });
}
LogicalResult opLeakyRelu(Call &c) {
  const double slope = c.numberOr("negative_slope", 0.01);
  return unary(c, [&](Build &b, Value x) {
    return b.select(b.compare(CompareDirection::Gt, x, whole(b, x, 0)), x, b.scale(x, slope));
  });
}
/// scale * (x above 0, else alpha * (exp(input * x) - 1)); at 0 it has the slope from below.
LogicalResult exponential(Call &c, double alpha, double scale, double input) {
  return unary(c, [&](Build &b, Value x) {
    Value isAbove = b.compare(CompareDirection::Gt, x, whole(b, x, 0));
    Value below = b.scale(b.unary<Expm1Op>(b.scale(b.select(isAbove, whole(b, x, 0), x), input)), alpha);
    return b.scale(b.select(isAbove, x, below), scale);
  });
}
LogicalResult opElu(Call &c) {
  return exponential(c, c.numberOr("alpha", 1), c.numberOr("scale", 1), c.numberOr("input_scale", 1));
}
LogicalResult opSelu(Call &c) { return exponential(c, 1.6732632423543772848, 1.0507009873554804934, 1); }
LogicalResult opCelu(Call &c) {
  const double alpha = c.numberOr("alpha", 1);
  return alpha == 0 ? c.fail("alpha is 0") : exponential(c, alpha, 1, 1 / alpha);
}
LogicalResult opHardtanh(Call &c) {
  const double least = c.numberOr("min_val", -1), most = c.numberOr("max_val", 1);
  return unary(c, [&](Build &b, Value x) { return atMost(b, atLeast(b, x, least), most); });
}
LogicalResult opRelu6(Call &c) {
  return unary(c, [](Build &b, Value x) { return atMost(b, atLeast(b, x, 0), 6); });
}
LogicalResult opThreshold(Call &c) {
  const double threshold = c.numberOr("threshold", 0), value = c.numberOr("value", 0);
  return unary(c, [&](Build &b, Value x) {
    return b.select(b.compare(CompareDirection::Le, x, whole(b, x, threshold)), whole(b, x, value), x);
  });
}
LogicalResult opHardshrink(Call &c) {
  const double width = c.numberOr("lambd", 0.5);
  return unary(c, [&](Build &b, Value x) {
    Value isSmall = b.compare(CompareDirection::Le, b.unary<AbsOp>(x), whole(b, x, width));
    return b.select(isSmall, whole(b, x, 0), x);
  });
}
LogicalResult opSoftshrink(Call &c) {
  const double width = c.numberOr("lambd", 0.5);
  return unary(c, [&](Build &b, Value x) {
    Value above =
        b.select(b.compare(CompareDirection::Gt, x, whole(b, x, width)), b.sub(x, whole(b, x, width)), whole(b, x, 0));
    Value shrunk =
        b.select(b.compare(CompareDirection::Lt, x, whole(b, x, -width)), b.add(x, whole(b, x, width)), above);
    return b.select(frontend::isNaN(b, x), x, shrunk);
  });
}

/// One slope, or one for each channel.
LogicalResult opPrelu(Call &c) {
  ArrayRef<int64_t> shape = c.shape("self"), slopes = c.shape("weight");
  const int64_t count = c.type("weight").getNumElements();
  if (c.element("self") != c.element("weight") || slopes.size() > 1 || !c.isFloat("self") ||
      (count != 1 && (shape.size() < 2 || count != shape[1])))
    return c.fail("the slopes do not fit");
  Build &b = c.b;
  Value x = c.value("self");
  Value slope =
      count == 1 ? b.broadcastTo(b.reshape(c.value("weight"), {}), shape) : b.broadcast(c.value("weight"), shape, {1});
  return c.set(b.select(b.compare(CompareDirection::Gt, x, whole(b, x, 0)), x, b.mul(x, slope)));
}
LogicalResult opHardsigmoid(Call &c) {
  return unary(
      c, [](Build &b, Value x) { return atMost(b, atLeast(b, b.scale(b.add(x, whole(b, x, 3)), 1.0 / 6), 0), 1); });
}
LogicalResult opHardswish(Call &c) {
  return unary(c, [](Build &b, Value x) {
    Value gate = atMost(b, atLeast(b, b.add(x, whole(b, x, 3)), 0), 6);
    return b.mul(x, b.scale(gate, 1.0 / 6));
  });
}

const OpRow kActivationOps[] = {
    {"aten.celu.default", opCelu},
    {"aten.elu.default", opElu},
    {"aten.gelu.default", opGelu},
    {"aten.hardsigmoid.default", opHardsigmoid},
    {"aten.hardshrink.default", opHardshrink},
    {"aten.hardswish.default", opHardswish},
    {"aten.hardtanh.default", opHardtanh},
    {"aten.leaky_relu.default", opLeakyRelu},
    {"aten.log_sigmoid.default", opLogSigmoid},
    {"aten.mish.default", opMish},
    {"aten.prelu.default", opPrelu, "self,weight"},
    {"aten.relu.default", opRelu},
    {"aten.relu6.default", opRelu6},
    {"aten.selu.default", opSelu},
    {"aten.silu.default", opSilu},
    {"aten.softplus.default", opSoftplus},
    {"aten.softshrink.default", opSoftshrink},
    {"aten.threshold.default", opThreshold},
};
} // namespace

llvm::ArrayRef<OpRow> activationOps() { return kActivationOps; }

} // namespace tessera::pt2
