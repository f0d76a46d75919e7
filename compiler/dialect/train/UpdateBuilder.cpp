//===- UpdateBuilder.cpp - updates as elementwise ops ---------------------===//

#include "compiler/dialect/train/UpdateBuilder.h"

using namespace mlir;

namespace tessera::train {

UpdateBuilder::UpdateBuilder(OpBuilder &builder, OptimizerUpdateOpInterface update)
    : Build(builder, update->getLoc()), update(update),
      wide(accumulationType(tensorType(update.getParam()).getElementType())), unit(update->getAttr(kUnit)) {}

Value UpdateBuilder::reads(Value ofGradient) {
  if (Attribute mark = std::exchange(unit, nullptr))
    ofGradient.getDefiningOp()->setAttr(kUnit, mark);
  return ofGradient;
}

Value UpdateBuilder::gradient() {
  Value g = widen(update.getGrad());
  if (Value scale = update.getGradScale())
    g = reads(mul(g, broadcastScalar(widen(scale), g)));
  return update.getClip() ? clip(g, *update.getClip()) : g;
}

/// Comparisons with what is no number are false: it goes through.
Value UpdateBuilder::clip(Value gradient, double limit) {
  Value most = splatLike(gradient, limit), least = splatLike(gradient, -limit);
  Value isAbove = reads(compare(CompareDirection::Gt, gradient, most));
  Value isBelow = compare(CompareDirection::Lt, gradient, least);
  return select(isAbove, most, select(isBelow, least, gradient));
}

Value UpdateBuilder::decayed(Value param, Value lr) {
  Value keep = sub(splatLike(lr, 1.0), scale(lr, update.getDecay()));
  if (update.getDecay() == 0.0)
    return param;
  // The factor is chosen, not the product: contraction to fused multiply-adds then rounds the same way whether there is
  // a choice or not, so that sharded and whole units stay equal to the bit.
  return mul(param, chooseDecay(broadcastScalar(keep, param), splatLike(param, 1.0)));
}

Value UpdateBuilder::chooseDecay(Value decayed, Value plain) {
  auto type = tensorType(plain);
  int64_t elements = type.getNumElements(), decayElements = update.getDecayElements();
  Value offset = update.getOffset();
  if (decayElements <= 0)
    return plain;
  if (!offset && decayElements >= elements)
    return decayed;
  // The limit for the local index fits i32, so that the comparison is as wide as the data.
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto scalar = RankedTensorType::get({}, i64);
  Value limit = constant(DenseElementsAttr::get(scalar, builder.getI64IntegerAttr(decayElements)));
  if (offset)
    limit = sub(limit, convert(offset, i64));
  Value most = constant(DenseElementsAttr::get(scalar, builder.getI64IntegerAttr(elements)));
  Value clamped = max(min(limit, most), zeros(scalar));
  Type indexType = elements < INT32_MAX ? i32 : i64;
  Value local = iota(RankedTensorType::get(type.getShape(), indexType), 0);
  Value below = compare(CompareDirection::Lt, local, broadcast(convert(clamped, indexType), type.getShape(), {}));
  return select(below, decayed, plain);
}

Value UpdateBuilder::guarded(Value stored, Value before) {
  Value apply = update.getApply();
  return apply ? select(broadcastScalar(apply, stored), stored, before) : stored;
}

Value UpdateBuilder::storedParam(Value updated) {
  Value before = update.getParam();
  return guarded(convert(updated, tensorType(before).getElementType()), before);
}

Value UpdateBuilder::storedState(Value updated, unsigned state) {
  Value before = update.getStates()[state];
  RankedTensorType type = tensorType(before);
  std::optional<StateRounding> rounding = update.getRounding();
  if (!rounding || type == updated.getType())
    return guarded(convert(updated, type.getElementType()), before);
  return guarded(StochasticRoundOp::create(builder, loc, type, updated, rounding->seed, update.getOffset(),
                                           rounding->stream, static_cast<int64_t>(state)),
                 before);
}

} // namespace tessera::train
