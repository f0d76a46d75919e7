//===- Recurrent.cpp - recurrent networks, unrolled -------------------------===//
//
// The product of all inputs with the weights is one product before the first
// step; each step adds that of the state.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Recurrent.h"

#include "frontends/common/Axis.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

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

Value joined(Build &b, ArrayRef<Value> values, int64_t dim) {
  return values.size() == 1 ? values.front() : b.concat(values, dim);
}

Value unlessZero(Call &n, int i) {
  if (!n.has(i))
    return {};
  const HostTensor *known = n.constant(i);
  return known && known->uniform() == 0.0 ? Value() : n.input(i);
}

namespace {
/// `first + second`, where null stands for zeros.
Value sum(Build &b, Value first, Value second) { return !first ? second : !second ? first : b.add(first, second); }

class Unroller {
public:
  Unroller(Build &b, const CellForm &form) : b(b), form(form), size(form.size) {}

  SmallVector<Value> run(Direction &d, Value x, int64_t time) {
    const int64_t steps = shapeOf(x)[time];
    Value projected = b.dot(x, d.weight, {}, {}, {2}, {1});
    if (Value bias = hoistedBias(d))
      projected = b.add(projected, b.broadcast(bias, shapeOf(projected), {2}));
    SmallVector<Value> states(steps);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t at = d.reverse ? steps - 1 - step : step;
      Value input = elementAlong(b, projected, time, at);
      d.hidden = form.cell == Cell::Lstm ? lstm(d, input) : form.cell == Cell::Gru ? gru(d, input) : rnn(d, input);
      states[at] = d.hidden;
    }
    return states;
  }

private:
  /// The biases that are added to a step whatever its state.
  Value hoistedBias(Direction &d) {
    Value recurrent = d.recurrentBias;
    if (recurrent && form.cell == Cell::Gru && form.resetAfter) // the last gate's is multiplied by the reset gate
      recurrent = b.pad(sliceAlong(b, recurrent, 0, 0, 2 * size), {0}, {size});
    return sum(b, d.bias, recurrent);
  }

  /// The product of a state with rows [from, to) of the gates.
  Value ofState(Direction &d, Value state, int64_t from, int64_t to) {
    if (!state)
      return {};
    Value weight =
        from == 0 && to == gateCount(form.cell) ? d.recurrent : sliceAlong(b, d.recurrent, 0, from * size, to * size);
    return b.dot(state, weight, {}, {}, {1}, {1});
  }

  Value gate(Value x, int64_t place) { return gates(x, place, place + 1); }
  Value gates(Value x, int64_t from, int64_t to) { return x ? sliceAlong(b, x, 1, from * size, to * size) : Value(); }

  Value rnn(Direction &d, Value input) { return d.activations[0](b, sum(b, input, ofState(d, d.hidden, 0, 1))); }

  /// Cho et al., 2014. The new state is the last gate.
  Value gru(Direction &d, Value input) {
    Value product = ofState(d, d.hidden, 0, form.resetAfter ? 3 : 2);
    Value both = d.activations[0](b, sum(b, gates(input, 0, 2), form.resetAfter ? gates(product, 0, 2) : product));
    Value update = gate(both, form.places[0]), reset = gate(both, form.places[1]), recurrent;
    if (form.resetAfter) {
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

  /// Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000.
  Value lstm(Direction &d, Value input) {
    Value all = sum(b, input, ofState(d, d.hidden, 0, 4));
    auto peephole = [&](int64_t index, Value cell) -> Value {
      if (!d.peepholes || !cell)
        return {};
      return b.mul(b.broadcast(sliceAlong(b, d.peepholes, 0, index * size, (index + 1) * size), shapeOf(cell), {1}),
                   cell);
    };
    auto open = [&](int64_t index, Value cell) {
      return d.activations[0](b, sum(b, gate(all, form.places[index]), peephole(index, cell)));
    };
    Value added = b.mul(open(0, d.cell), d.activations[1](b, gate(all, form.places[3])));
    d.cell = d.cell ? b.add(b.mul(open(2, d.cell), d.cell), added) : added;
    Value hidden = b.mul(open(1, d.cell), d.activations[2](b, d.cell));
    return d.projection ? b.dot(hidden, d.projection, {}, {}, {1}, {1}) : hidden;
  }

  Build &b;
  const CellForm &form;
  const int64_t size;
};
} // namespace

SmallVector<Value> unroll(Build &b, const CellForm &form, Direction &d, Value x, int64_t time) {
  return Unroller(b, form).run(d, x, time);
}

} // namespace tessera::frontend
