//===- OpsRecurrent.cpp - RNN, GRU and LSTM ---------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Recurrent.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// How many activations a direction has.
constexpr size_t activationCount(Cell cell) { return cell == Cell::Rnn ? 1 : cell == Cell::Gru ? 2 : 3; }

/// The activations of a direction; empty if the node failed.
SmallVector<Activation> readActivations(Node &n, Cell cell, int64_t direction) {
  static constexpr StringLiteral kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
  const onnx::AttributeProto *given = n.attribute("activations");
  const size_t count = activationCount(cell);
  auto fail = [&](const Twine &why) {
    (void)n.fail(why);
    return SmallVector<Activation>();
  };
  SmallVector<Activation> activations;
  for (size_t i = 0; i < count; ++i) {
    StringRef name = cell == Cell::Rnn ? StringRef("Tanh") : StringRef(kDefaults[i]);
    if (given) {
      const int at = static_cast<int>(direction * count + i);
      if (at >= given->strings_size())
        return fail("activations has " + Twine(given->strings_size()) + " values, too few");
      name = given->strings(at);
    }
    Activation activation = findActivation(name);
    if (!activation)
      return fail("activation '" + name + "' is not supported, expected Sigmoid, Tanh or Relu");
    activations.push_back(activation);
  }
  return activations;
}

/// Whether every sequence is known to have all `steps` steps.
bool isFullLength(Node &n, int64_t steps) {
  if (!n.has(4))
    return true;
  auto lengths = n.ints(4);
  return lengths && llvm::all_of(*lengths, [&](int64_t length) { return length == steps; });
}

template <Cell cell> LogicalResult opRecurrent(Node &n) {
  const std::string direction = n.attrString("direction", "forward");
  const bool batchFirst = n.attr("layout", 0) != 0;
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3 || !n.isFloat(0))
    return n.fail("expected an input and weights of rank 3");
  const int64_t directions = n.shape(1)[0], rows = n.shape(1)[1], size = rows / gateCount(cell);
  const int64_t steps = n.shape(0)[batchFirst ? 1 : 0], batch = n.shape(0)[batchFirst ? 0 : 1], width = n.shape(0)[2];
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.fail("direction is '" + direction + "'");
  if (directions != (direction == "bidirectional" ? 2 : 1) || size == 0 || rows % gateCount(cell) != 0 ||
      n.attr("hidden_size", size) != size || n.shape(1)[2] != width ||
      n.shape(2) != ArrayRef<int64_t>({directions, rows, size}))
    return n.fail("weights " + shapeText(n.shape(1)) + " and " + shapeText(n.shape(2)) + " do not fit the input " +
                  shapeText(n.shape(0)));
  if (n.attribute("clip") || n.attr("input_forget", 0) != 0)
    return n.fail("clip and input_forget are not supported");
  if (n.attribute("activation_alpha") || n.attribute("activation_beta"))
    return n.fail("activations with parameters are not supported");
  if (!isFullLength(n, steps))
    return n.fail("sequence lengths must be known at import and all be " + Twine(steps));
  if (steps < 1 || steps > kMaxSteps)
    return n.fail("sequences of " + Twine(steps) + " steps cannot be unrolled, expected 1 to " + Twine(kMaxSteps));
  const int64_t stateDim = batchFirst ? 1 : 0; // of the directions in a state, and of time
  SmallVector<int64_t> state = {batch, size};
  state.insert(state.begin() + stateDim, directions);
  const SmallVector<int64_t> expected[] = {{directions, 2 * rows}, {}, state, state, {directions, 3 * size}};
  for (int i : {3, 5, 6, 7})
    if (n.has(i) && (n.shape(i) != ArrayRef<int64_t>(expected[i - 3]) || n.element(i) != n.element(0)))
      return n.fail("input " + Twine(i) + " has shape " + shapeText(n.shape(i)) + ", expected " +
                    shapeText(expected[i - 3]));

  Build &b = n.b;
  Value x = n.input(0);
  int64_t time = stateDim;
  // Of inputs that were batch-first before, the product needs no copy.
  if (auto transpose = x.getDefiningOp<TransposeOp>();
      transpose && !batchFirst && transpose.getPermutation() == ArrayRef<int64_t>{1, 0, 2}) {
    x = transpose.getOperand();
    time = 1;
  }
  Value biases = unlessZero(n, 3), hidden = unlessZero(n, 5), memory = unlessZero(n, 6), peepholes = unlessZero(n, 7);
  const CellForm form = {cell, size, n.attr("linear_before_reset", 0) != 0, {0, 1, 2, 3}};
  SmallVector<Value> outputs, lastHidden, lastCell;
  for (int64_t i = 0; i < directions; ++i) {
    Direction d;
    d.activations = readActivations(n, cell, i);
    if (d.activations.empty())
      return failure();
    d.reverse = i == 1 || direction == "reverse";
    d.weight = elementAlong(b, n.input(1), 0, i);
    d.recurrent = elementAlong(b, n.input(2), 0, i);
    if (biases) {
      Value both = elementAlong(b, biases, 0, i);
      d.bias = sliceAlong(b, both, 0, 0, rows);
      d.recurrentBias = sliceAlong(b, both, 0, rows, 2 * rows);
    }
    if (peepholes)
      d.peepholes = elementAlong(b, peepholes, 0, i);
    if (hidden)
      d.hidden = elementAlong(b, hidden, stateDim, i);
    if (memory)
      d.cell = elementAlong(b, memory, stateDim, i);
    SmallVector<Value> states = unroll(b, form, d, x, time);
    // With the dimensions of directions, and of time.
    SmallVector<int64_t> shape = {batch, size};
    shape.insert(shape.begin() + stateDim, 1);
    lastHidden.push_back(b.reshape(d.hidden, shape));
    if (cell == Cell::Lstm)
      lastCell.push_back(b.reshape(d.cell, shape));
    shape.insert(shape.begin() + stateDim, 1);
    for (Value &value : states)
      value = b.reshape(value, shape);
    if (n.wants(0))
      outputs.push_back(joined(b, states, stateDim));
  }
  if (n.wants(0) && failed(n.set(joined(b, outputs, stateDim + 1))))
    return failure();
  if (n.wants(1) && failed(n.set(joined(b, lastHidden, stateDim), 1)))
    return failure();
  return n.wants(2) && cell == Cell::Lstm ? n.set(joined(b, lastCell, stateDim), 2) : success();
}

const OpRow kRecurrentOps[] = {
    {"", "GRU", kAny, kNew, 3, opRecurrent<Cell::Gru>},
    {"", "LSTM", kAny, kNew, 3, opRecurrent<Cell::Lstm>},
    {"", "RNN", kAny, kNew, 3, opRecurrent<Cell::Rnn>},
};
} // namespace

ArrayRef<OpRow> recurrentOps() { return kRecurrentOps; }

} // namespace tessera::onnx_import
