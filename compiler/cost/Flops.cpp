#include "compiler/cost/Flops.h"

#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

namespace {
double elements(Value value) { return static_cast<double>(train::tensorType(value).getNumElements()); }

template <typename Op> double dotFlops(Op op) {
  double contracted = 1;
  for (int64_t dim : op.getLhsContract())
    contracted *= static_cast<double>(train::shapeOf(op.getLhs())[dim]);
  return 2 * elements(op.getResult()) * contracted;
}

/// Of the product that the logits are.
template <typename Op> double lossFlops(Op loss) {
  const double hidden = elements(loss.getHidden()), depth = static_cast<double>(train::shapeOf(loss.getHidden())[1]);
  return 2 * hidden * elements(loss.getWeight()) / depth;
}

/// Of one product of the size of QKᵀ.
template <typename Op> double scoreFlops(Op attention) {
  const Value query = attention.getQuery();
  const auto keys = static_cast<double>(train::shapeOf(attention.getKey())[2]);
  return 2 * elements(query) * keys *
         seenPart(attention.getCausal(), attention.getWindow(), attention.getDensity(), keys);
}

/// `filter` is the filter or its gradient, `output` the output or its gradient.
double convFlops(Value filter, Value output) {
  auto shape = train::shapeOf(filter);
  return 2 * elements(output) * static_cast<double>(shape[1] * shape[2] * shape[3]);
}

} // namespace

double seenPart(bool causal, std::optional<int64_t> window, std::optional<APFloat> density, double keys) {
  if (density)
    return density->convertToDouble();
  if (!causal)
    return 1;
  // Of the first keys a query sees fewer than the window.
  const double most = window ? std::min(static_cast<double>(*window) / std::max(keys, 1.0), 1.0) : 1.0;
  return most - most * most / 2;
}

double opFlops(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<train::DotGeneralOp, train::ScaledDotOp>([](auto dot) { return dotFlops(dot); })
      .Case([](train::LinearCrossEntropyOp loss) { return lossFlops(loss); })
      .Case([](train::LinearCrossEntropyGradOp loss) { return 3 * lossFlops(loss); })
      .Case([](train::AttentionOp a) { return 2 * scoreFlops(a); })
      .Case([](train::AttentionGradOp a) { return 4 * scoreFlops(a); })
      .Case([](train::Conv2dOp conv) { return convFlops(conv.getFilter(), conv.getResult()); })
      .Case([](train::Conv2dInputGradOp conv) { return convFlops(conv.getFilter(), conv.getOutputGrad()); })
      .Case([](train::Conv2dFilterGradOp conv) { return convFlops(conv.getResult(), conv.getOutputGrad()); })
      .Default([](Operation *) { return 0.0; });
}

double stepFlops(func::FuncOp step) {
  double flops = 0;
  step.walk([&](Operation *op) {
    if (op->hasAttr(train::kRecompute))
      return;
    double times = 1;
    for (auto loop = op->getParentOfType<train::AccumulateOp>(); loop;
         loop = loop->getParentOfType<train::AccumulateOp>())
      times *= static_cast<double>(loop.getCount());
    flops += times * opFlops(op);
  });
  return flops;
}

} // namespace tessera
