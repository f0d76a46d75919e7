//===- Sgd.cpp - stochastic gradient descent ------------------------------===//

#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/UpdateBuilder.h"
#include "compiler/dialect/train/Verify.h"

using namespace mlir;

namespace tessera::train {

LogicalResult SgdUpdateOp::verify() {
  // train.sgd_update_c2
  if ((getBuffer() != nullptr) != (getNewBuffer() != nullptr))
    return emitOpError("needs both a buffer and its next value, or neither");
  // train.sgd_update_c3
  if (getBuffer() && failed(verifyType(*this, "new_buffer", getNewBuffer().getType(), getBuffer().getType())))
    return failure();
  // train.sgd_update_c1, train.sgd_update_c3, train.sgd_update_c6
  if (failed(verifyUpdate(*this, {"buffer"})))
    return failure();
  // train.sgd_update_c4
  if (getMomentum().isZero() == (getBuffer() != nullptr))
    return emitOpError(getBuffer() ? "has a buffer but no momentum" : "has momentum but no buffer");
  // train.sgd_update_c5
  if (getNesterov() && !getBuffer())
    return emitOpError("is nesterov but has no momentum");
  return success();
}

SmallVector<Value> SgdUpdateOp::getStates() {
  return getBuffer() ? SmallVector<Value>{getBuffer()} : SmallVector<Value>{};
}

SmallVector<Value> SgdUpdateOp::getHyper() { return {getLr()}; }

double SgdUpdateOp::updateElement(UpdateElement e) {
  double momentum = getMomentum().convertToDouble();
  double g = e.grad + e.decay * e.param, step = g;
  if (!e.states.empty()) {
    double &buffer = e.states[0];
    buffer = momentum * buffer + g;
    step = getNesterov() ? g + momentum * buffer : buffer;
  }
  return e.param - e.hyper[0] * step;
}

SmallVector<Value> SgdUpdateOp::decompose(UpdateBuilder &b) {
  Value param = b.widen(getParam());
  Value g = b.gradient();
  if (!getWeightDecay().isZero()) {
    Value factor = b.chooseDecay(b.splatLike(param, getWeightDecay().convertToDouble()), b.zeros(tensorType(param)));
    g = b.reads(b.add(g, b.mul(param, factor)));
  }
  Value step = g, newBuffer, stored;
  if (getBuffer()) {
    double momentum = getMomentum().convertToDouble();
    newBuffer = b.reads(b.add(b.scale(b.widen(getBuffer()), momentum), g));
    stored = b.storedState(newBuffer, 0);
    newBuffer = b.forUpdate(newBuffer, stored);
    step = getNesterov() ? b.add(g, b.scale(newBuffer, momentum)) : newBuffer;
  }
  Value lr = b.broadcastScalar(b.widen(getLr()), step);
  Value newParam = b.sub(param, b.reads(b.mul(lr, step)));
  if (!stored)
    return {b.storedParam(newParam)};
  return {b.storedParam(newParam), stored};
}

static Operation *buildSgd(OpBuilder &builder, Location loc, const UpdateParts &parts) {
  Value buffer = parts.states.empty() ? Value() : parts.states[0];
  return SgdUpdateOp::create(builder, loc, parts.param.getType(), buffer ? buffer.getType() : Type(), parts.param,
                             buffer, parts.grad, parts.hyper[0], parts.scale, /*offset=*/Value(), /*apply=*/Value(),
                             builder.getF64FloatAttr(parts.settings.at("momentum")),
                             parts.settings.at("nesterov") != 0 ? builder.getUnitAttr() : UnitAttr(),
                             builder.getF64FloatAttr(parts.weightDecay), builder.getI64IntegerAttr(parts.decayElements),
                             parts.clipValue);
}

static SmallVector<StringRef> states(const OptimizerSettings &settings) {
  return settings.at("momentum") > 0 ? SmallVector<StringRef>{"momentum"} : SmallVector<StringRef>{};
}

static std::string problem(const OptimizerSettings &settings) {
  return settings.at("nesterov") != 0 && settings.at("momentum") == 0 ? "nesterov needs a momentum" : "";
}

static constexpr OptimizerSetting kSgdSettings[] = {{"momentum", "momentum", SettingKind::Fraction, 0.0},
                                                    {"nesterov", "nesterov", SettingKind::Switch, 0.0}};

const Optimizer kSgd = {"sgd",
                        kSgdSettings,
                        /*biasCorrections=*/{},
                        /*hasNarrowStates=*/false,
                        /*weightDecay=*/0.0,
                        states,
                        problem,
                        buildSgd};

} // namespace tessera::train
