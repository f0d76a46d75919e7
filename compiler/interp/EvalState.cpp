//===- EvalState.cpp - optimizer updates and stop_gradient ----------------===//

#include "compiler/interp/Eval.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

/// Hands out an op's operands in order, null for an optional one that is absent.
namespace {
class OperandReader {
public:
  explicit OperandReader(Operands operands) : operands(operands) {}
  const Tensor *next(bool present = true) { return present ? operands[position++] : nullptr; }

private:
  Operands operands;
  unsigned position = 0;
};
} // namespace

/// `weight_decay` for element `i` of this rank's part, 0 beyond the decayed elements.
template <typename Op> static double decayOf(Op op, const Tensor *offset, int64_t i) {
  int64_t global = i + (offset ? offset->intAt(0) : 0);
  return global < static_cast<int64_t>(op.getDecayElements()) ? op.getWeightDecay().convertToDouble() : 0.0;
}

/// Whether an update is to be left out.
static bool isHeld(const Tensor *apply) { return apply && apply->intAt(0) == 0; }

static FailureOr<Results> adamwUpdate(AdamwUpdateOp op, EvalContext context, Operands in) {
  OperandReader reader(in);
  const Tensor &param = *reader.next(), &m = *reader.next(), &v = *reader.next(), &grad = *reader.next();
  double lr = reader.next()->at(0), correction1 = reader.next()->at(0), correction2 = reader.next()->at(0);
  const Tensor *scale = reader.next(op.getGradScale() != nullptr);
  const Tensor *offset = reader.next(op.getOffset() != nullptr);
  if (isHeld(reader.next(op.getApply() != nullptr)))
    return Results{param, m, v};
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble();
  Tensor newParam(context.resultType(0)), newM(context.resultType(1)), newV(context.resultType(2));
  for (int64_t i = 0, end = param.size(); i < end; ++i) {
    double g = grad.at(i) * (scale ? scale->at(0) : 1.0);
    double p = param.at(i) * (1.0 - lr * decayOf(op, offset, i));
    double nextM = m.at(i) + (g - m.at(i)) * (1.0 - beta1);
    double nextV = v.at(i) * beta2 + (1.0 - beta2) * g * g;
    newM.set(i, nextM);
    newV.set(i, nextV);
    newParam.set(i, p - (lr / correction1) * nextM / (std::sqrt(nextV) / std::sqrt(correction2) + epsilon));
  }
  Results results = one(std::move(newParam));
  results.push_back(std::move(newM));
  results.push_back(std::move(newV));
  return results;
}

static FailureOr<Results> sgdUpdate(SgdUpdateOp op, EvalContext context, Operands in) {
  OperandReader reader(in);
  const Tensor &param = *reader.next();
  const Tensor *buffer = reader.next(op.getBuffer() != nullptr);
  const Tensor &grad = *reader.next();
  double lr = reader.next()->at(0);
  const Tensor *scale = reader.next(op.getGradScale() != nullptr);
  const Tensor *offset = reader.next(op.getOffset() != nullptr);
  if (isHeld(reader.next(op.getApply() != nullptr)))
    return buffer ? Results{param, *buffer} : Results{param};
  double momentum = op.getMomentum().convertToDouble();
  Tensor newParam(context.resultType(0));
  Tensor newBuffer = buffer ? Tensor(context.resultType(1)) : Tensor();
  for (int64_t i = 0, end = param.size(); i < end; ++i) {
    double g = grad.at(i) * (scale ? scale->at(0) : 1.0) + decayOf(op, offset, i) * param.at(i);
    double step = g;
    if (buffer) {
      double next = momentum * buffer->at(i) + g;
      newBuffer.set(i, next);
      step = op.getNesterov() ? g + momentum * next : next;
    }
    newParam.set(i, param.at(i) - lr * step);
  }
  Results results = one(std::move(newParam));
  if (buffer)
    results.push_back(std::move(newBuffer));
  return results;
}

void addState(EvalTable &table) {
  table.add<AdamwUpdateOp>(adamwUpdate);
  table.add<SgdUpdateOp>(sgdUpdate);
  table.add<BarrierOp>([](BarrierOp, EvalContext, Operands in) { return one(*in[0]); });
  table.add<StopGradientOp>([](StopGradientOp, EvalContext, Operands in) { return one(*in[0]); });
}

} // namespace tessera::interp
