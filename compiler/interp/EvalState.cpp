//===- EvalState.cpp - optimizer updates, rounding, barriers -------------===//

#include "compiler/dialect/train/Optimizer.h"
#include "compiler/interp/Eval.h"
#include "compiler/interp/Random.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

/// An element of f32 as bf16, by 16 random bits (train.stochastic_round).
static double roundStochastically(double element, uint32_t random) {
  auto bits = llvm::bit_cast<uint32_t>(static_cast<float>(element));
  if ((bits & 0x7f800000u) == 0x7f800000u) // infinities, and what is no number
    return element;
  return llvm::bit_cast<float>((bits + random) & 0xffff0000u);
}

/// The 16 random bits of an element.
static uint32_t randomBits(uint64_t seed, int64_t index, int64_t stream, int64_t lane) {
  uint32_t word = philox(seed, index, stream)[lane / 2];
  return lane % 2 ? word >> 16 : word & 0xffff;
}

static FailureOr<Results> stochasticRound(StochasticRoundOp op, EvalContext context, Operands in) {
  Tensor result(context.resultType());
  int64_t first = op.getOffset() ? in[2]->intAt(0) : 0;
  for (int64_t i = 0, end = result.size(); i < end; ++i)
    result.set(i,
               roundStochastically(in[0]->at(i), randomBits(in[1]->intAt(0), first + i, op.getStream(), op.getLane())));
  return one(std::move(result));
}

/// An update, element by element, by the optimizer's own formula.
static FailureOr<Results> updateElements(OptimizerUpdateOpInterface op, EvalContext context, Operands in) {
  // A value that is several operands is the same tensor each time.
  auto tensorOf = [&](Value value) -> const Tensor * {
    for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), in))
      if (operand == value)
        return tensor;
    return nullptr;
  };
  const Tensor &param = *tensorOf(op.getParam()), &grad = *tensorOf(op.getGrad());
  const Tensor *scale = tensorOf(op.getGradScale()), *offset = tensorOf(op.getOffset()),
               *apply = tensorOf(op.getApply());
  SmallVector<const Tensor *> states = llvm::map_to_vector(op.getStates(), tensorOf);
  if (apply && apply->intAt(0) == 0) {
    Results results = one(param);
    for (const Tensor *state : states)
      results.push_back(*state);
    return results;
  }
  SmallVector<double> hyper, values(states.size());
  for (Value scalar : op.getHyper())
    hyper.push_back(tensorOf(scalar)->at(0));
  Results results;
  for (unsigned result = 0; result < op->getNumResults(); ++result)
    results.push_back(Tensor(context.resultType(result)));
  const std::optional<double> clip = op.getClip();
  const std::optional<StateRounding> rounding = op.getRounding();
  for (int64_t i = 0, end = param.size(); i < end; ++i) {
    const int64_t global = i + (offset ? offset->intAt(0) : 0);
    double g = grad.at(i) * (scale ? scale->at(0) : 1.0);
    if (clip) // what is no number stays so
      g = g > *clip ? *clip : g < -*clip ? -*clip : g;
    for (auto [value, state] : llvm::zip_equal(values, states))
      value = state->at(i);
    results[0].set(
        i, op.updateElement({param.at(i), g, global < op.getDecayElements() ? op.getDecay() : 0.0, hyper, values}));
    for (auto [index, value] : llvm::enumerate(values)) {
      Tensor &next = results[index + 1];
      if (rounding && next.getElementType().isBF16())
        value = roundStochastically(value, randomBits(tensorOf(rounding->seed)->intAt(0), global, rounding->stream,
                                                      static_cast<int64_t>(index)));
      next.set(i, value);
    }
  }
  return results;
}

void addState(EvalTable &table) {
  forEachUpdateOp([&]<typename Op>() { table.add<Op>(updateElements); });
  table.add<StochasticRoundOp>(stochasticRound);
  table.add<BarrierOp>([](BarrierOp, EvalContext, Operands in) { return one(*in[0]); });
  table.add<StopGradientOp>([](StopGradientOp, EvalContext, Operands in) { return one(*in[0]); });
}

} // namespace tessera::interp
