//===- OpsDropout.cpp - dropout of elements and of channels ----------------===//

#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
LogicalResult opDropout(Call &c) {
  const double rate = c.flag("train", true) ? c.numberOr("p", 0.5) : 0;
  if (!(rate >= 0 && rate <= 1) || !c.isFloat("input"))
    return c.fail("expected floating point and a rate from 0 to 1");
  Value input = c.value("input");
  if (rate > 0 && rate < 1) {
    auto [x, keep] = frontend::dropOut(c.b, input, rate, c.step);
    return succeeded(c.set(x)) ? c.set(keep, 1) : failure();
  }
  auto mask = RankedTensorType::get(c.shape("input"), c.b.builder.getI1Type());
  if (failed(c.set(rate == 0 ? input : c.b.scale(input, 0))))
    return failure();
  return c.set(c.b.splat(mask, rate == 0 ? 1 : 0), 1);
}

/// Of whole channels ([N, C, ...]), or with elements that take the value which SELU tends to, so that mean and variance
/// stay (Klambauer et al., Self-Normalizing Neural Networks, 2017).
template <bool isChannels, bool isAlpha> LogicalResult opOtherDropout(Call &c) {
  const double rate = c.flag("train", true) ? c.numberOr("p", 0.5) : 0;
  if (!(rate >= 0 && rate < 1) || !c.isFloat("input") || (isChannels && c.rank("input") < 2))
    return c.fail("expected floating point, channels for a dropout of channels, and a rate from 0 to below 1");
  Build &b = c.b;
  Value x = c.value("input");
  if (rate == 0)
    return c.set(x);
  SmallVector<int64_t> shape(c.shape("input"));
  if (isChannels)
    std::fill(shape.begin() + 2, shape.end(), 1);
  Value ones = b.splat(RankedTensorType::get(shape, c.element("input")), 1);
  Value keep = frontend::dropOut(b, ones, rate, c.step).second;
  Value wide = b.broadcastTo(keep, c.shape("input"));
  if (!isAlpha)
    return c.set(b.select(wide, b.scale(x, 1 / (1 - rate)), b.splatLike(x, 0)));
  constexpr double alpha = 1.7580993408473766; // of SELU, times its scale
  const double scale = 1 / std::sqrt((alpha * alpha * rate + 1) * (1 - rate));
  Value kept = b.add(b.scale(x, scale), b.splatLike(x, alpha * scale * rate));
  return c.set(b.select(wide, kept, b.splatLike(x, alpha * scale * (rate - 1))));
}

const OpRow kDropoutOps[] = {
    {"aten.alpha_dropout.default", opOtherDropout<false, true>, "input"},
    {"aten.dropout.default", opDropout, "input"},
    {"aten.feature_alpha_dropout.default", opOtherDropout<true, true>, "input"},
    {"aten.feature_dropout.default", opOtherDropout<true, false>, "input"},
    {"aten.native_dropout.default", opDropout, "input"},
};
} // namespace

llvm::ArrayRef<OpRow> dropoutOps() { return kDropoutOps; }

} // namespace tessera::pt2
