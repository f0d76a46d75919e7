//===- Adamw.cpp - AdamW --------------------------------------------------===//

#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/UpdateBuilder.h"
#include "compiler/dialect/train/Verify.h"

#include <cmath>

using namespace mlir;

namespace tessera::train {

LogicalResult AdamwUpdateOp::verify() {
  // train.adamw_update_c1, train.adamw_update_c2, train.adamw_update_c4
  if (failed(verifyUpdate(*this, {"m", "v"})))
    return failure();
  // train.adamw_update_c3
  if (failed(verifyFraction(*this, "beta1", getBeta1())) || failed(verifyFraction(*this, "beta2", getBeta2())))
    return failure();
  // train.adamw_update_c5
  if ((getSeed() != nullptr) != getRoundingStream().has_value())
    return emitOpError("needs both a seed and a rounding_stream, or neither");
  return success();
}

SmallVector<Value> AdamwUpdateOp::getStates() { return {getM(), getV()}; }

SmallVector<Value> AdamwUpdateOp::getHyper() { return {getLr(), getBiasCorrection1(), getBiasCorrection2()}; }

std::optional<StateRounding> AdamwUpdateOp::getRounding() {
  return getSeed() ? std::optional(StateRounding{getSeed(), static_cast<int64_t>(*getRoundingStream())}) : std::nullopt;
}

double AdamwUpdateOp::updateElement(UpdateElement e) {
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double lr = e.hyper[0], correction1 = e.hyper[1], correction2 = e.hyper[2];
  double p = e.param * (1.0 - lr * e.decay);
  double &m = e.states[0], &v = e.states[1];
  m = m + (e.grad - m) * (1.0 - beta1);
  v = v * beta2 + (1.0 - beta2) * e.grad * e.grad;
  return p - (lr / correction1) * m / (std::sqrt(v) / std::sqrt(correction2) + getEpsilon().convertToDouble());
}

SmallVector<Value> AdamwUpdateOp::decompose(UpdateBuilder &b) {
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  Value param = b.widen(getParam()), m = b.widen(getM()), v = b.widen(getV());
  Value g = b.gradient();
  Value lr = b.widen(getLr());
  Value p = b.decayed(param, lr);
  Value newM = b.add(m, b.scale(b.reads(b.sub(g, m)), 1.0 - beta1));
  Value newV = b.add(b.scale(v, beta2), b.mul(b.scale(g, 1.0 - beta2), g));
  Value storedM = b.storedState(newM, 0), storedV = b.storedState(newV, 1);
  newM = b.forUpdate(newM, storedM);
  newV = b.forUpdate(newV, storedV);
  Value step = b.div(lr, b.widen(getBiasCorrection1()));
  Value root = b.unary<SqrtOp>(b.widen(getBiasCorrection2()));
  Value denominator = b.div(b.unary<SqrtOp>(newV), b.broadcastScalar(root, newV));
  denominator = b.add(denominator, b.splatLike(denominator, getEpsilon().convertToDouble()));
  Value newParam = b.sub(p, b.div(b.mul(b.broadcastScalar(step, newM), newM), denominator));
  return {b.storedParam(newParam), storedM, storedV};
}

static Operation *buildAdamw(OpBuilder &builder, Location loc, const UpdateParts &parts) {
  auto number = [&](const char *name) { return builder.getF64FloatAttr(parts.settings.at(name)); };
  return AdamwUpdateOp::create(
      builder, loc, TypeRange{parts.param.getType(), parts.states[0].getType(), parts.states[1].getType()}, parts.param,
      parts.states[0], parts.states[1], parts.grad, parts.hyper[0], parts.hyper[1], parts.hyper[2], parts.seed,
      parts.scale, /*offset=*/Value(), /*apply=*/Value(), number("beta1"), number("beta2"), number("epsilon"),
      parts.seed ? builder.getI64IntegerAttr(parts.stream) : IntegerAttr(), builder.getF64FloatAttr(parts.weightDecay),
      builder.getI64IntegerAttr(parts.decayElements), parts.clipValue);
}

static constexpr OptimizerSetting kAdamwSettings[] = {{"beta1", "betas", SettingKind::Fraction, 0.9},
                                                      {"beta2", "betas", SettingKind::Fraction, 0.999},
                                                      {"epsilon", "epsilon", SettingKind::Positive, 1e-8}};
static constexpr BiasCorrection kBiasCorrections[] = {{"bias_correction1", "beta1"}, {"bias_correction2", "beta2"}};

const Optimizer kAdamw = {"adamw",
                          kAdamwSettings,
                          kBiasCorrections,
                          /*hasNarrowStates=*/true,
                          /*weightDecay=*/0.01,
                          [](const OptimizerSettings &) {
                            return SmallVector<StringRef>{"m", "v"};
                          },
                          /*problem=*/nullptr,
                          buildAdamw};

} // namespace tessera::train
