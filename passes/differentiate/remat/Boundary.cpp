//===- Boundary.cpp - what the backward pass reads of the forward pass ----===//
//
// See Boundary.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/remat/Boundary.h"

#include "compiler/cost/Flops.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Signature.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::remat {

static bool isParameterArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  return func && train::isParameter(train::getArgRole(func, argument.getArgNumber()));
}

bool Boundary::isParameter(Value value) const { return isParameterArgument(value); }

bool Boundary::isView(Operation *op) {
  if (isa<train::ConvertOp>(op))
    return isParameterArgument(rootOf(op->getOperand(0)));
  return asStaticView(op) != nullptr;
}

Value Boundary::rootOf(Value value) {
  for (Operation *op = value.getDefiningOp(); op && isView(op); op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

int Boundary::nodeOf(Value value) const {
  auto found = value.getDefiningOp() ? nodeNumbers.find(value.getDefiningOp()) : nodeNumbers.end();
  return found == nodeNumbers.end() ? -1 : static_cast<int>(found->second);
}

static bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// Reductions, statistics, losses and random numbers are f32 in the precision phase too (`cast-precision`).
static bool staysWide(Value value) {
  Operation *op = value.getDefiningOp();
  const bool isFirst = cast<OpResult>(value).getResultNumber() == 0;
  if (isa<train::LayerNormOp, train::AttentionOp>(op))
    return !isFirst;
  return train::tensorType(value).getRank() == 0 ||
         isa<train::ReduceOp, train::CrossEntropyOp, train::LinearCrossEntropyOp, train::RngUniformOp>(op);
}

int64_t Boundary::bytesOf(Value value) const {
  if (!isTensor(value))
    return 0;
  RankedTensorType type = train::tensorType(value);
  Type element = type.getElementType();
  if (narrow && element.isF32() && !staysWide(value) && !exact.contains(value))
    element = narrow;
  // Beyond any memory, so that sums of many stay numbers.
  constexpr int64_t kMost = int64_t{1} << 46;
  const int64_t elementBytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8u);
  return type.getNumElements() > kMost / elementBytes ? kMost : type.getNumElements() * elementBytes;
}

static double elementsOf(Value value) {
  return isTensor(value) ? static_cast<double>(train::tensorType(value).getNumElements()) : 0;
}

/// Products as for MFU; everything else counts one operation per element that it reads or writes.
static double recomputationFlops(Operation *op) {
  if (double flops = opFlops(op))
    return flops;
  double elements = 0;
  for (Value operand : op->getOperands())
    elements += elementsOf(Boundary::rootOf(operand));
  for (Value result : op->getResults())
    elements += elementsOf(result);
  return elements;
}

Boundary::Boundary(func::FuncOp func, Type narrow)
    : func(func), narrow(narrow), exact(func, train::F32Values::Products::OfData), phases(func) {
  Block &block = func.getBody().front();
  for (Operation &op : block.without_terminator()) {
    if (phases.isBackward(&op)) {
      backward.push_back(&op);
      continue;
    }
    if (isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
        llvm::all_of(op.getOperands(), [&](Value operand) { return isInert(operand); })) {
      inert.insert(&op);
      continue;
    }
    if (isView(&op))
      continue;
    nodeNumbers[&op] = nodes.size();
    Node &node = nodes.emplace_back(&op);
    // What is not a tensor (the future of a collective) is none of this pass's business.
    // The logits of a loss are computed once.
    node.fixed = isa<train::LinearCrossEntropyOp, train::LinearCrossEntropyGradOp>(op) || op.getNumRegions() != 0 ||
                 !isMemoryEffectFree(&op) || !llvm::all_of(op.getOperands(), isTensor) ||
                 !llvm::all_of(op.getResults(), isTensor);
    node.flops = recomputationFlops(&op);
    llvm::SetVector<unsigned> reads;
    for (Value operand : op.getOperands())
      if (auto read = valueNumbers.find(rootOf(operand)); read != valueNumbers.end())
        reads.insert(read->second);
    node.reads = reads.takeVector();
    for (Value result : op.getResults()) {
      node.values.push_back(values.size());
      valueNumbers[result] = values.size();
      values.push_back({result, static_cast<unsigned>(nodes.size() - 1), bytesOf(result)});
    }
  }
  assignSegments();
  finishNodes();
}

/// The block scope in the node's name; if there is none that of the parameters it reads; else that of the last value
/// that it reads.
std::string Boundary::scopeOf(const Node &node) const {
  if (std::string scope = train::getBlockScope(train::getNodeName(node.op->getLoc())); !scope.empty())
    return scope;
  for (Value operand : node.op->getOperands())
    if (auto argument = dyn_cast<BlockArgument>(rootOf(operand)); argument && isParameter(argument))
      return train::getBlockScope(train::getArgName(func, argument.getArgNumber()));
  if (node.reads.empty())
    return "";
  int segment = nodes[values[*llvm::max_element(node.reads)].node].segment;
  return segment < 0 ? "" : segments[segment];
}

void Boundary::assignSegments() {
  llvm::StringMap<int> numbers;
  for (Node &node : nodes) {
    std::string scope = scopeOf(node);
    if (scope.empty())
      continue;
    auto [found, isNew] = numbers.try_emplace(scope, segments.size());
    if (isNew)
      segments.push_back(scope);
    node.segment = found->second;
  }
  blocks = !segments.empty();
  if (blocks)
    return;
  segments.emplace_back("root");
  for (Node &node : nodes)
    node.segment = 0;
}

void Boundary::finishNodes() {
  for (Node &node : nodes) {
    node.fixed |= node.segment < 0;
    for (unsigned read : node.reads)
      if (Node &producer = nodes[values[read].node]; producer.segment != node.segment)
        producer.fixed = true;
  }
  for (Operation *op : backward)
    for (Value operand : op->getOperands())
      if (auto found = valueNumbers.find(rootOf(operand)); found != valueNumbers.end())
        values[found->second].needed = true;
}

Boundary::Outcome Boundary::follow(const Plan &plan) const {
  Outcome outcome;
  llvm::BitVector seen(values.size()), run(nodes.size());
  SmallVector<unsigned> pending;
  auto need = [&](unsigned value) {
    if (!seen.test(value)) {
      seen.set(value);
      pending.push_back(value);
    }
  };
  for (auto [number, value] : llvm::enumerate(values))
    if (value.needed)
      need(number);
  while (!pending.empty()) {
    unsigned number = values[pending.pop_back_val()].node;
    const Node &node = nodes[number];
    if (node.fixed || !plan.test(number) || run.test(number))
      continue;
    run.set(number);
    llvm::for_each(node.reads, need);
  }
  for (auto [number, value] : llvm::enumerate(values))
    if (seen.test(number) && !run.test(value.node))
      outcome.saved.push_back(number);
  for (unsigned number : run.set_bits())
    outcome.recomputed.push_back(number);
  return outcome;
}

Cost Boundary::cost(const Outcome &outcome) const {
  Cost cost;
  for (unsigned value : outcome.saved)
    cost.bytes += values[value].bytes;
  for (unsigned node : outcome.recomputed)
    cost.flops += nodes[node].flops;
  return cost;
}

} // namespace tessera::remat
