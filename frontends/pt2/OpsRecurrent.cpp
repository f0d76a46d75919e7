//===- OpsRecurrent.cpp - recurrent networks, unrolled ------------------------===//
//
// Whole networks of layers and directions, and single cells.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Neural.h"
#include "frontends/common/Recurrent.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::Cell;
using frontend::CellForm;
using frontend::Direction;

/// PyTorch's gates: reset, update, new of a GRU; input, forget, cell, output of an LSTM.
CellForm formOf(Cell cell, int64_t size) {
  if (cell == Cell::Gru)
    return {cell, size, /*resetAfter=*/true, {1, 0, 2}};
  return {cell, size, false, {0, 3, 1, 2}};
}

SmallVector<frontend::Activation> activationsOf(Cell cell, StringRef ofRnn) {
  if (cell == Cell::Rnn)
    return {frontend::findActivation(ofRnn)};
  SmallVector<frontend::Activation> made = {frontend::findActivation("Sigmoid"), frontend::findActivation("Tanh")};
  if (cell == Cell::Lstm)
    made.push_back(made.back());
  return made;
}

/// The tensors of one direction, as numbers of the call's inputs: weights, biases and projection; -1: there is none.
struct Parameters {
  int weight = -1, recurrent = -1, bias = -1, recurrentBias = -1, projection = -1;
};

/// Checks them for inputs of a width and states of a size, which a projection may make smaller.
LogicalResult checkParameters(Call &c, const Parameters &p, Cell cell, int64_t width, int64_t size, int64_t state) {
  const int64_t rows = frontend::gateCount(cell) * size;
  const std::pair<int, SmallVector<int64_t>> expected[] = {{p.weight, {rows, width}},
                                                           {p.recurrent, {rows, state}},
                                                           {p.bias, {rows}},
                                                           {p.recurrentBias, {rows}},
                                                           {p.projection, {state, size}}};
  for (const auto &[at, shape] : expected)
    if (at >= 0 && (!c.has(at) || c.shape(at) != ArrayRef<int64_t>(shape) || c.element(at) != c.element("input")))
      return c.fail("a weight or a bias does not have the shape " + shapeText(shape));
  return success();
}

void fill(Call &c, const Parameters &p, Direction &d) {
  auto vector = [&](int at) { return at < 0 ? Value() : frontend::unlessZero(c, at); };
  d.weight = c.input(p.weight);
  d.recurrent = c.input(p.recurrent);
  d.bias = vector(p.bias);
  d.recurrentBias = vector(p.recurrentBias);
  if (p.projection >= 0)
    d.projection = c.input(p.projection);
}

/// A whole network: what its arguments say, checked.
struct Network {
  Cell cell;
  int64_t layers = 0, directions = 1, size = 0, state = 0, steps = 0, batch = 0, width = 0;
  bool isBatchFirst = false, hasBiases = true, isProjected = false;
  SmallVector<int> params;
  int hidden = -1, memory = -1; ///< inputs: the first states

  Parameters at(int64_t layer, int64_t direction) const {
    const int each = 2 + (hasBiases ? 2 : 0) + (isProjected ? 1 : 0);
    const int *first = params.data() + (layer * directions + direction) * each;
    Parameters p{first[0], first[1]};
    if (hasBiases) {
      p.bias = first[2];
      p.recurrentBias = first[3];
    }
    p.projection = isProjected ? first[each - 1] : -1;
    return p;
  }
};

LogicalResult readStates(Call &c, Network &n) {
  if (n.cell == Cell::Lstm) {
    auto list = c.list("hx");
    if (!list || list->size() != 2 || !c.has((*list)[0]) || !c.has((*list)[1]))
      return c.fail("expected two first states");
    n.hidden = (*list)[0];
    n.memory = (*list)[1];
  } else if (c.isTensor("hx")) {
    n.hidden = c.at("hx");
  } else {
    return c.fail("expected a first state");
  }
  if (c.rank(n.hidden) != 3)
    return c.fail("the first state does not have three dimensions");
  n.state = c.shape(n.hidden)[2];
  return success();
}

LogicalResult read(Call &c, Network &n) {
  auto params = c.list("params");
  n.layers = c.integerOr("num_layers", 0);
  n.directions = c.flag("bidirectional", false) ? 2 : 1;
  n.isBatchFirst = c.flag("batch_first", false);
  n.hasBiases = c.flag("has_biases", true);
  if (!params || c.rank("input") != 3 || !c.isFloat("input") || n.layers < 1 || n.layers > 1024)
    return c.fail("expected an input with samples, steps and features, and weights");
  n.params = *params;
  if (failed(readStates(c, n)))
    return failure();
  ArrayRef<int64_t> shape = c.shape("input");
  n.batch = shape[n.isBatchFirst ? 0 : 1];
  n.steps = shape[n.isBatchFirst ? 1 : 0];
  n.width = shape[2];
  if (n.steps < 1 || n.steps > frontend::kMaxSteps)
    return c.fail("sequences of " + Twine(n.steps) + " steps cannot be unrolled, expected 1 to " +
                  Twine(frontend::kMaxSteps));
  const auto sets = static_cast<size_t>(n.layers * n.directions), plain = sets * (n.hasBiases ? 4 : 2);
  n.isProjected = n.cell == Cell::Lstm && n.params.size() == plain + sets;
  if ((n.params.size() != plain && !n.isProjected) || !c.has(n.params[0]) || c.rank(n.params[0]) != 2 ||
      c.shape(n.params[0])[0] < frontend::gateCount(n.cell))
    return c.fail("it has " + Twine(n.params.size()) + " weights and biases, expected " + Twine(plain));
  n.size = c.shape(n.params[0])[0] / frontend::gateCount(n.cell);
  const int64_t sets64 = n.layers * n.directions;
  for (auto [at, size] : {std::pair(n.hidden, n.isProjected ? n.state : n.size), std::pair(n.memory, n.size)})
    if (at >= 0 && (c.shape(at) != ArrayRef<int64_t>({sets64, n.batch, size}) || c.element(at) != c.element("input")))
      return c.fail("a first state does not have the shape " + shapeText({sets64, n.batch, size}));
  for (int64_t layer = 0; layer < n.layers; ++layer)
    for (int64_t direction = 0; direction < n.directions; ++direction)
      if (failed(checkParameters(c, n.at(layer, direction), n.cell, layer == 0 ? n.width : n.state * n.directions,
                                 n.size, n.state)))
        return failure();
  return success();
}

/// [B, T or T, B, directions * state] of one layer; adds its last states.
Value runLayer(Call &c, const Network &n, int64_t layer, Value x, StringRef activation, SmallVectorImpl<Value> &hidden,
               SmallVectorImpl<Value> &memory) {
  Build &b = c.b;
  const int64_t time = n.isBatchFirst ? 1 : 0;
  Value first = frontend::unlessZero(c, n.hidden),
        firstMemory = n.memory >= 0 ? frontend::unlessZero(c, n.memory) : Value();
  SmallVector<Value> outputs;
  for (int64_t direction = 0; direction < n.directions; ++direction) {
    Direction d;
    const int64_t set = layer * n.directions + direction;
    fill(c, n.at(layer, direction), d);
    d.activations = activationsOf(n.cell, activation);
    d.reverse = direction == 1;
    d.hidden = first ? frontend::elementAlong(b, first, 0, set) : Value();
    d.cell = firstMemory ? frontend::elementAlong(b, firstMemory, 0, set) : Value();
    SmallVector<Value> states = frontend::unroll(b, formOf(n.cell, n.size), d, x, time);
    hidden.push_back(b.reshape(d.hidden, {1, n.batch, n.state}));
    if (n.cell == Cell::Lstm)
      memory.push_back(b.reshape(d.cell, {1, n.batch, n.size}));
    SmallVector<int64_t> shape = {n.batch, n.state};
    shape.insert(shape.begin() + time, 1);
    for (Value &state : states)
      state = b.reshape(state, shape);
    outputs.push_back(frontend::joined(b, states, time));
  }
  return frontend::joined(b, outputs, 2);
}

/// `activation`: of what is no GRU and no LSTM.
LogicalResult network(Call &c, Cell cell, StringRef activation) {
  Network n;
  n.cell = cell;
  const double rate = c.flag("train", false) ? c.numberOr("dropout", 0) : 0;
  if (failed(read(c, n)))
    return failure();
  if (!(rate >= 0 && rate < 1))
    return c.fail("expected a rate of dropout below 1");
  Value x = c.value("input");
  SmallVector<Value> hidden, memory;
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    if (layer > 0 && rate > 0)
      x = frontend::dropOut(c.b, x, rate, c.step).first;
    x = runLayer(c, n, layer, x, activation, hidden, memory);
  }
  if (failed(c.set(x)) || failed(c.set(frontend::joined(c.b, hidden, 0), 1)))
    return failure();
  return cell == Cell::Lstm ? c.set(frontend::joined(c.b, memory, 0), 2) : success();
}
LogicalResult opLstm(Call &c) { return network(c, Cell::Lstm, ""); }
LogicalResult opGru(Call &c) { return network(c, Cell::Gru, ""); }
LogicalResult opRnnTanh(Call &c) { return network(c, Cell::Rnn, "Tanh"); }
LogicalResult opRnnRelu(Call &c) { return network(c, Cell::Rnn, "Relu"); }

/// One step of one layer.
LogicalResult oneCell(Call &c, Cell cell, StringRef activation) {
  Network n;
  n.cell = cell;
  auto list = c.list("hx");
  n.hidden = cell == Cell::Lstm ? (list && list->size() == 2 ? (*list)[0] : -1) : c.isTensor("hx") ? c.at("hx") : -1;
  n.memory = cell == Cell::Lstm && n.hidden >= 0 ? (*list)[1] : -1;
  if (c.rank("input") != 2 || !c.isFloat("input") || n.hidden < 0 || !c.has(n.hidden) ||
      (n.memory >= 0 && !c.has(n.memory)) || c.rank(n.hidden) != 2)
    return c.fail("expected an input with samples and features, and states");
  n.batch = c.shape("input")[0];
  n.size = c.shape(n.hidden)[1];
  Parameters p{c.at("w_ih"), c.at("w_hh"), c.isTensor("b_ih") ? c.at("b_ih") : -1,
               c.isTensor("b_hh") ? c.at("b_hh") : -1};
  for (int at : {n.hidden, n.memory})
    if (at >= 0 && (c.shape(at) != ArrayRef<int64_t>({n.batch, n.size}) || c.element(at) != c.element("input")))
      return c.fail("a state does not have the shape " + shapeText({n.batch, n.size}));
  if (failed(checkParameters(c, p, cell, c.shape("input")[1], n.size, n.size)))
    return failure();
  Direction d;
  fill(c, p, d);
  d.activations = activationsOf(cell, activation);
  d.hidden = frontend::unlessZero(c, n.hidden);
  d.cell = n.memory >= 0 ? frontend::unlessZero(c, n.memory) : Value();
  Value x = c.b.reshape(c.value("input"), {1, n.batch, c.shape("input")[1]});
  frontend::unroll(c.b, formOf(cell, n.size), d, x, 0);
  if (failed(c.set(d.hidden)))
    return failure();
  return cell == Cell::Lstm ? c.set(d.cell, 1) : success();
}
LogicalResult opLstmCell(Call &c) { return oneCell(c, Cell::Lstm, ""); }
LogicalResult opGruCell(Call &c) { return oneCell(c, Cell::Gru, ""); }
LogicalResult opRnnTanhCell(Call &c) { return oneCell(c, Cell::Rnn, "Tanh"); }
LogicalResult opRnnReluCell(Call &c) { return oneCell(c, Cell::Rnn, "Relu"); }

const OpRow kRecurrentOps[] = {
    {"aten.gru.input", opGru, "input"},          {"aten.gru_cell.default", opGruCell, "input,w_ih,w_hh"},
    {"aten.lstm.input", opLstm, "input"},        {"aten.lstm_cell.default", opLstmCell, "input,w_ih,w_hh"},
    {"aten.rnn_relu.input", opRnnRelu, "input"}, {"aten.rnn_relu_cell.default", opRnnReluCell, "input,w_ih,w_hh"},
    {"aten.rnn_tanh.input", opRnnTanh, "input"}, {"aten.rnn_tanh_cell.default", opRnnTanhCell, "input,w_ih,w_hh"},
};
} // namespace

llvm::ArrayRef<OpRow> recurrentOps() { return kRecurrentOps; }

} // namespace tessera::pt2
