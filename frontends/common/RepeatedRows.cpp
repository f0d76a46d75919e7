//===- RepeatedRows.cpp - known values that are repeated ------------------===//
//
// See RepeatedRows.h.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/RepeatedRows.h"

#include "compiler/dialect/train/Constants.h"
#include "compiler/interfaces/Interfaces.h"
#include "frontends/common/Evaluate.h"

#include "llvm/ADT/SetVector.h"

#include <cstring>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

/// Whether a broadcast repeats its operand along dimension 0.
static bool repeatsRows(BroadcastOp op) {
  const auto *from = llvm::find(op.getBroadcastDimensions(), 0);
  return from == op.getBroadcastDimensions().end() ||
         shapeOf(op.getOperand())[from - op.getBroadcastDimensions().begin()] == 1;
}

Constant rowsOf(Value value, int64_t count) {
  auto wide = value ? value.getDefiningOp<BroadcastOp>() : BroadcastOp();
  auto constant = wide ? wide.getOperand().getDefiningOp<ConstantOp>() : ConstantOp();
  if (!constant || tensorType(wide).getRank() == 0 || !repeatsRows(wide))
    return nullptr;
  SmallVector<int64_t> shape(shapeOf(wide));
  shape.front() = count;
  const std::optional<int64_t> elements = countElements(shape);
  std::optional<HostTensor> small = HostTensor::fromAttr(constant.getValue());
  if (!elements || *elements > kMaxConstantElements || !small)
    return nullptr;
  Block scratch;
  ConstantMap values;
  Value operand = scratch.addArgument(wide.getOperand().getType(), wide.getLoc());
  values[operand] = std::make_shared<const HostTensor>(std::move(*small));
  OpBuilder builder(value.getContext());
  builder.setInsertionPointToEnd(&scratch);
  Value row = Build(builder, wide.getLoc()).broadcast(operand, shape, wide.getBroadcastDimensions());
  int64_t work = 0;
  const Constant result = row == operand || evaluate(scratch, values, work) ? values.lookup(row) : nullptr;
  scratch.dropAllDefinedValueUses();
  return result;
}

Value repeatRow(Build &b, const HostTensor &row, int64_t size) {
  SmallVector<int64_t> shape(row.shape());
  shape.front() = size;
  return b.broadcast(b.constant(row.toAttr()), shape,
                     llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shape.size()))));
}

bool areTwice(const HostTensor &two, const HostTensor &one) {
  SmallVector<int64_t> shape(one.shape());
  shape.front() = 2;
  if (one.shape().front() != 1 || two.type != one.type.clone(shape))
    return false;
  auto repeats = [](const auto &twice, const auto &once) {
    const size_t bytes = once.size() * sizeof(once.front());
    return twice.size() == 2 * once.size() && std::memcmp(twice.data(), once.data(), bytes) == 0 &&
           std::memcmp(twice.data() + once.size(), once.data(), bytes) == 0;
  };
  return one.isFloat() ? repeats(two.floats, one.floats) : repeats(two.ints, one.ints);
}

RepeatedRows::RepeatedRows(ArrayRef<Value> known) : known(known.begin(), known.end()) {}

bool RepeatedRows::contains(Value value) {
  if (auto before = found.find(value); before != found.end())
    return before->second;
  const bool result = known.contains(value) || find(value);
  found[value] = result;
  return result;
}

/// What is computed of the rows that are known, a sum of them say, depends on how many there are; a table of constants
/// does not.
bool RepeatedRows::isComputedOfConstants(Value value) {
  SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op || known.contains(values[i]) || (op->getNumOperands() == 0 && !isa<ConstantOp, IotaOp>(op)))
      return false;
    values.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

bool RepeatedRows::find(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result || tensorType(value).getRank() == 0)
    return false;
  Operation *op = result.getOwner();
  if (splatOf(value))
    return true;
  if (auto wide = dyn_cast<BroadcastOp>(op); wide && repeatsRows(wide))
    return isComputedOfConstants(wide.getOperand());
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || op->getNumOperands() == 0)
    return false;
  const ShardingRule rule = interface.getShardingRule();
  ArrayRef<int64_t> rows = rule.results[result.getResultNumber()].front();
  if (rows.size() != 1 || rule.factors[rows.front()].kind != FactorKind::PassThrough ||
      rule.factors[rows.front()].isOrdered)
    return false;
  bool isRead = false; // what is drawn or counted anew for each row has it from no operand
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    for (auto [dim, factors] : llvm::enumerate(rule.operands[index])) {
      if (!llvm::is_contained(factors, rows.front()))
        continue;
      if (dim != 0 || factors.size() != 1 || !contains(operand))
        return false;
      isRead = true;
    }
  return isRead;
}

} // namespace tessera::frontend
