#include "compiler/dialect/train/CrossEntropyGrad.h"

using namespace mlir;

namespace tessera::train {

Value crossEntropyProbability(Build &build, const CrossEntropyRows &rows) {
  Value logits = build.convert(rows.logits, tensorType(rows.lse).getElementType());
  return build.exp(build.sub(logits, build.broadcastReduced(rows.lse, shapeOf(logits), {1})));
}

Value crossEntropyGrad(Build &build, const CrossEntropyRows &rows, Value probability, Value grad) {
  const ArrayRef<int64_t> shape = shapeOf(rows.logits);
  auto perRow = [&](Value row) { return build.broadcastReduced(row, shape, {1}); };
  if (rows.ignoreIndex) {
    const auto ignored = static_cast<int64_t>(*rows.ignoreIndex);
    Value isIgnored =
        build.compare(CompareDirection::Eq, rows.targets, build.splatLike(rows.targets, static_cast<double>(ignored)));
    grad = build.select(isIgnored, build.splatLike(grad, 0.0), grad);
  }
  const double everywhere = rows.labelSmoothing / static_cast<double>(shape[1]);
  // Narrow targets may not hold every class, but what they hold are numbers of classes.
  Type index = build.builder.getI32Type();
  if (tensorType(rows.targets).getElementType().getIntOrFloatBitWidth() >= 32)
    index = tensorType(rows.targets).getElementType();
  Value classes = build.iota(tensorType(rows.logits).clone(index), 1);
  Value isTarget = build.compare(CompareDirection::Eq, classes, perRow(build.convert(rows.targets, index)));
  Value wanted = build.select(isTarget, build.splatLike(probability, 1.0 - rows.labelSmoothing + everywhere),
                              build.splatLike(probability, everywhere));
  return build.mul(build.sub(probability, wanted), perRow(grad));
}

} // namespace tessera::train
