//===- Lion.cpp - Lion ----------------------------------------------------===//

#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/UpdateBuilder.h"

using namespace mlir;

namespace tessera::train {

LogicalResult LionUpdateOp::verify() {
  // train.lion_update_c1
  if (failed(verifyUpdate(*this, {"m"})))
    return failure();
  // train.lion_update_c2
  if (failed(verifyFraction(*this, "beta1", getBeta1())))
    return failure();
  return verifyFraction(*this, "beta2", getBeta2());
}

SmallVector<Value> LionUpdateOp::getStates() { return {getM()}; }

SmallVector<Value> LionUpdateOp::getHyper() { return {getLr()}; }

double LionUpdateOp::updateElement(UpdateElement e) {
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble(), lr = e.hyper[0];
  double p = e.param * (1.0 - lr * e.decay);
  double &m = e.states[0];
  double u = m * beta1 + e.grad * (1.0 - beta1);
  m = m * beta2 + e.grad * (1.0 - beta2);
  return p - lr * (u > 0 ? 1.0 : u < 0 ? -1.0 : u);
}

SmallVector<Value> LionUpdateOp::decompose(UpdateBuilder &b) {
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  Value param = b.widen(getParam()), m = b.widen(getM());
  Value g = b.gradient();
  Value lr = b.widen(getLr());
  Value p = b.decayed(param, lr);
  Value fresh = b.reads(b.scale(g, 1.0 - beta1));
  Value u = b.add(b.scale(m, beta1), fresh);
  Value newM = b.add(b.scale(m, beta2), b.scale(g, 1.0 - beta2));
  Value zero = b.splatLike(u, 0.0);
  Value negative = b.select(b.compare(CompareDirection::Lt, u, zero), b.splatLike(u, -1.0), u);
  Value sign = b.select(b.compare(CompareDirection::Gt, u, zero), b.splatLike(u, 1.0), negative);
  Value newParam = b.sub(p, b.mul(b.broadcastScalar(lr, sign), sign));
  return {b.storedParam(newParam), b.storedState(newM, 0)};
}

static Operation *buildLion(OpBuilder &builder, Location loc, const UpdateParts &parts) {
  auto number = [&](const char *name) { return builder.getF64FloatAttr(parts.settings.at(name)); };
  return LionUpdateOp::create(builder, loc, TypeRange{parts.param.getType(), parts.states[0].getType()}, parts.param,
                              parts.states[0], parts.grad, parts.hyper[0], parts.scale, /*offset=*/Value(),
                              /*apply=*/Value(), number("beta1"), number("beta2"),
                              builder.getF64FloatAttr(parts.weightDecay),
                              builder.getI64IntegerAttr(parts.decayElements), parts.clipValue);
}

static constexpr OptimizerSetting kLionSettings[] = {{"beta1", "betas", SettingKind::Fraction, 0.9},
                                                     {"beta2", "betas", SettingKind::Fraction, 0.99}};

const Optimizer kLion = {"lion",
                         kLionSettings,
                         /*biasCorrections=*/{},
                         /*hasNarrowStates=*/false,
                         /*weightDecay=*/0.01,
                         [](const OptimizerSettings &) { return SmallVector<StringRef>{"m"}; },
                         /*problem=*/nullptr,
                         buildLion};

} // namespace tessera::train
