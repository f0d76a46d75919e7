//===- OpsRecurrent.cpp - recurrent networks --------------------------------===//
//
// RNN, GRU and LSTM, unrolled. The product of all inputs with the weights is
// one product before the first step; each step adds that of the state.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
enum class Kind { Rnn, Gru, Lstm };

constexpr int64_t kMaxSteps = 4096;

constexpr int64_t gateCount(Kind kind) { return kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 3 : 4; }
/// How many activations a direction has.
constexpr size_t activationCount(Kind kind) { return kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 2 : 3; }

using Activation = Value (*)(Build &, Value);

Activation findActivation(StringRef name) {
  if (name.equals_insensitive("sigmoid"))
    return [](Build &b, Value x) { return b.unary<SigmoidOp>(x); };
  if (name.equals_insensitive("tanh"))
    return [](Build &b, Value x) { return b.unary<TanhOp>(x); };
  if (name.equals_insensitive("relu"))
    return [](Build &b, Value x) { // slope 0 at 0
      Value zero = b.splatLike(x, 0.0);
      return b.select(b.compare(CompareDirection::Le, x, zero), zero, x);
    };
  return nullptr;
}

/// The values one after the other along `dim`.
Value joined(Build &b, ArrayRef<Value> values, int64_t dim) {
  return values.size() == 1 ? values.front() : b.concat(values, dim);
}

/// `first + second`, where null stands for zeros.
Value sum(Build &b, Value first, Value second) { return !first ? second : !second ? first : b.add(first, second); }

/// One direction of a layer. Vectors are null where they are zero.
struct Direction {
  Value weight, recurrent;   ///< [gates*H, I], [gates*H, H]
  Value bias, recurrentBias; ///< [gates*H]
  Value peepholes;           ///< of an LSTM: [3*H]
  Value hidden, cell;        ///< the state: [B, H]
  bool reverse = false;      ///< from the last step to the first
  SmallVector<Activation> activations;
};

class Unroller {
public:
  Unroller(Node &n, Kind kind, int64_t hidden, bool resetAfter)
      : b(n.b), kind(kind), size(hidden), resetAfter(resetAfter) {}

  /// Runs a direction over `x`, whose dimension `time` is that of the steps; the states after each, by time.
  SmallVector<Value> run(Direction &d, Value x, int64_t time) {
    const int64_t steps = shapeOf(x)[time];
    Value projected = b.dot(x, d.weight, {}, {}, {2}, {1});
    if (Value bias = hoistedBias(d))
      projected = b.add(projected, b.broadcast(bias, shapeOf(projected), {2}));
    SmallVector<Value> states(steps);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t at = d.reverse ? steps - 1 - step : step;
      Value input = elementAlong(b, projected, time, at);
      d.hidden = kind == Kind::Lstm ? lstm(d, input) : kind == Kind::Gru ? gru(d, input) : rnn(d, input);
      states[at] = d.hidden;
    }
    return states;
  }

private:
  /// The biases that are added to a step whatever its state.
  Value hoistedBias(Direction &d) {
    Value recurrent = d.recurrentBias;
    if (recurrent && kind == Kind::Gru && resetAfter) // the last gate's is multiplied by the reset gate
      recurrent = b.pad(sliceAlong(b, recurrent, 0, 0, 2 * size), {0}, {size});
    return sum(b, d.bias, recurrent);
  }

  /// The product of a state with rows [from, to) of the gates.
  Value ofState(Direction &d, Value state, int64_t from, int64_t to) {
    if (!state)
      return {};
    Value weight =
        from == 0 && to == gateCount(kind) ? d.recurrent : sliceAlong(b, d.recurrent, 0, from * size, to * size);
    return b.dot(state, weight, {}, {}, {1}, {1});
  }

  Value gates(Value x, int64_t from, int64_t to) { return x ? sliceAlong(b, x, 1, from * size, to * size) : Value(); }

  Value rnn(Direction &d, Value input) { return d.activations[0](b, sum(b, input, ofState(d, d.hidden, 0, 1))); }

  /// Cho et al., 2014; gates update, reset, new. `resetAfter`: the reset gate multiplies the product, not the state.
  Value gru(Direction &d, Value input) {
    Value product = ofState(d, d.hidden, 0, resetAfter ? 3 : 2);
    Value both = d.activations[0](b, sum(b, gates(input, 0, 2), resetAfter ? gates(product, 0, 2) : product));
    Value update = gates(both, 0, 1), reset = gates(both, 1, 2), recurrent;
    if (resetAfter) {
      recurrent = gates(product, 2, 3);
      if (d.recurrentBias)
        recurrent =
            sum(b, recurrent, b.broadcast(sliceAlong(b, d.recurrentBias, 0, 2 * size, 3 * size), shapeOf(reset), {1}));
      recurrent = recurrent ? b.mul(reset, recurrent) : Value();
    } else if (d.hidden) {
      recurrent = ofState(d, b.mul(reset, d.hidden), 2, 3);
    }
    Value candidate = d.activations[1](b, sum(b, gates(input, 2, 3), recurrent));
    Value kept = b.mul(b.sub(b.splatLike(update, 1.0), update), candidate);
    return d.hidden ? b.add(kept, b.mul(update, d.hidden)) : kept;
  }

  /// Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000; gates input, output, forget, cell.
  Value lstm(Direction &d, Value input) {
    Value all = sum(b, input, ofState(d, d.hidden, 0, 4));
    auto peephole = [&](int64_t gate, Value cell) -> Value {
      if (!d.peepholes || !cell)
        return {};
      return b.mul(b.broadcast(sliceAlong(b, d.peepholes, 0, gate * size, (gate + 1) * size), shapeOf(cell), {1}),
                   cell);
    };
    auto gate = [&](int64_t index, Value cell) {
      return d.activations[0](b, sum(b, gates(all, index, index + 1), peephole(index, cell)));
    };
    Value added = b.mul(gate(0, d.cell), d.activations[1](b, gates(all, 3, 4)));
    d.cell = d.cell ? b.add(b.mul(gate(2, d.cell), d.cell), added) : added;
    return b.mul(gate(1, d.cell), d.activations[2](b, d.cell));
  }

  Build &b;
  Kind kind;
  int64_t size;
  bool resetAfter;
};

/// The activations of a direction; empty if the node failed.
SmallVector<Activation> readActivations(Node &n, Kind kind, int64_t direction) {
  static constexpr StringLiteral kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
  const onnx::AttributeProto *given = n.attribute("activations");
  const size_t count = activationCount(kind);
  auto fail = [&](const Twine &why) {
    (void)n.fail(why);
    return SmallVector<Activation>();
  };
  SmallVector<Activation> activations;
  for (size_t i = 0; i < count; ++i) {
    StringRef name = kind == Kind::Rnn ? StringRef("Tanh") : StringRef(kDefaults[i]);
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

/// Input `i` if it is there and not zeros, else null.
Value unlessZero(Node &n, int i) {
  if (!n.has(i))
    return {};
  const HostTensor *known = n.constant(i);
  return known && known->uniform() == 0.0 ? Value() : n.input(i);
}

/// Whether every sequence is known to have all `steps` steps.
bool isFullLength(Node &n, int64_t steps) {
  if (!n.has(4))
    return true;
  auto lengths = n.ints(4);
  return lengths && llvm::all_of(*lengths, [&](int64_t length) { return length == steps; });
}

template <Kind kind> LogicalResult opRecurrent(Node &n) {
  const std::string direction = n.attrString("direction", "forward");
  const bool batchFirst = n.attr("layout", 0) != 0;
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3 || !n.isFloat(0))
    return n.fail("expected an input and weights of rank 3");
  const int64_t directions = n.shape(1)[0], rows = n.shape(1)[1], size = rows / gateCount(kind);
  const int64_t steps = n.shape(0)[batchFirst ? 1 : 0], batch = n.shape(0)[batchFirst ? 0 : 1], width = n.shape(0)[2];
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.fail("direction is '" + direction + "'");
  if (directions != (direction == "bidirectional" ? 2 : 1) || size == 0 || rows % gateCount(kind) != 0 ||
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
  Value biases = unlessZero(n, 3), hidden = unlessZero(n, 5), cell = unlessZero(n, 6), peepholes = unlessZero(n, 7);
  Unroller unroller(n, kind, size, n.attr("linear_before_reset", 0) != 0);
  SmallVector<Value> outputs, lastHidden, lastCell;
  for (int64_t i = 0; i < directions; ++i) {
    Direction d;
    d.activations = readActivations(n, kind, i);
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
    if (cell)
      d.cell = elementAlong(b, cell, stateDim, i);
    SmallVector<Value> states = unroller.run(d, x, time);
    // With the dimensions of directions, and of time.
    SmallVector<int64_t> shape = {batch, size};
    shape.insert(shape.begin() + stateDim, 1);
    lastHidden.push_back(b.reshape(d.hidden, shape));
    if (kind == Kind::Lstm)
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
  return n.wants(2) && kind == Kind::Lstm ? n.set(joined(b, lastCell, stateDim), 2) : success();
}

constexpr int kAny = kMinOpset, kNew = kMaxOpset;
const OpRow kRows[] = {
    {"", "GRU", kAny, kNew, 3, opRecurrent<Kind::Gru>},
    {"", "LSTM", kAny, kNew, 3, opRecurrent<Kind::Lstm>},
    {"", "RNN", kAny, kNew, 3, opRecurrent<Kind::Rnn>},
};
} // namespace

ArrayRef<OpRow> recurrentOps() { return kRows; }

} // namespace tessera::onnx_import
