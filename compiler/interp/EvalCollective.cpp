//===- EvalCollective.cpp - collectives on virtual ranks ------------------===//
//
// All ranks are at hand at once, so a collective is an ordinary function of the
// operands of a group. A start computes the result, its done passes it on.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Eval.h"
#include "compiler/interp/Shards.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera::dist;

namespace tessera::interp {

bool isCollective(Operation *op) { return isa<CollectiveOpInterface, SliceLocalOp, AxisIndexOp>(op); }

static RankedTensorType resultTensorType(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return collective.getResultTensorType();
  return cast<RankedTensorType>(op->getResult(0).getType());
}

/// The operands of one group, in group order.
using Group = ArrayRef<const Tensor *>;

/// Narrow floats are added up in f32 and rounded once.
static Tensor narrowSumOf(Group group) {
  Tensor sum = *group.front();
  for (int64_t i = 0, end = sum.size(); i < end; ++i) {
    auto total = static_cast<float>(sum.at(i));
    for (const Tensor *next : group.drop_front())
      total += static_cast<float>(next->at(i));
    sum.set(i, total);
  }
  return sum;
}

static double pick(ReductionKind kind, double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  if (a == b) // 0 is above -0
    return std::signbit(a) == (kind == ReductionKind::Max) ? b : a;
  return (a > b) == (kind == ReductionKind::Max) ? a : b;
}

void combineInto(Tensor &total, const Tensor &next, ReductionKind kind) {
  for (int64_t i = 0, end = total.size(); i < end; ++i) {
    if (kind == ReductionKind::Sum)
      total.isFloat() ? total.set(i, total.at(i) + next.at(i)) : total.setInt(i, total.intAt(i) + next.intAt(i));
    else if (total.isFloat())
      total.set(i, pick(kind, total.at(i), next.at(i)));
    else
      total.setInt(i, kind == ReductionKind::Max ? std::max(total.intAt(i), next.intAt(i))
                                                 : std::min(total.intAt(i), next.intAt(i)));
  }
}

static Tensor reductionOf(Group group, ReductionKind kind) {
  Tensor total = *group.front();
  if (kind == ReductionKind::Sum && total.isFloat() && total.getElementType().getIntOrFloatBitWidth() < 32)
    return narrowSumOf(group);
  for (const Tensor *next : group.drop_front())
    combineInto(total, *next, kind);
  return total;
}

static Tensor concatOf(Group group, RankedTensorType type, int64_t dim) {
  Tensor result(type);
  for (auto [position, part] : llvm::enumerate(group))
    copyPartInto(result, *part, dim, static_cast<int64_t>(position) * part->getShape()[dim]);
  return result;
}

/// Part `number` of as many equal parts along `dim` as the group has members.
static Tensor partOf(const Tensor &whole, Group group, int64_t dim, int64_t number) {
  int64_t size = whole.getShape()[dim] / static_cast<int64_t>(group.size());
  return extractPart(whole, dim, number * size, size);
}

/// What member `position` of the group receives.
static Tensor received(CollectiveOpInterface op, Group group, int64_t position) {
  const SmallVector<int64_t, 2> dims = op.getDims();
  switch (op.getCollectiveKind()) {
  case CollectiveKind::AllGather:
    return concatOf(group, op.getResultTensorType(), dims[0]);
  case CollectiveKind::ReduceScatter:
    return partOf(reductionOf(group, op.getReduction()), group, dims[0], position);
  case CollectiveKind::AllReduce:
    return reductionOf(group, op.getReduction());
  case CollectiveKind::AllToAll: {
    SmallVector<Tensor> parts;
    for (const Tensor *sender : group)
      parts.push_back(partOf(*sender, group, dims[0], position));
    SmallVector<const Tensor *> sent;
    for (const Tensor &tensor : parts)
      sent.push_back(&tensor);
    return concatOf(sent, op.getResultTensorType(), dims[1]);
  }
  case CollectiveKind::Permute: {
    const auto members = static_cast<int64_t>(group.size());
    int64_t sender = (position - op.getShift()) % members;
    return *group[sender < 0 ? sender + members : sender];
  }
  }
  llvm_unreachable("unknown collective");
}

/// What `op` gives to member `position` of the group.
static Tensor resultOf(Operation *op, Group group, int64_t position) {
  return llvm::TypeSwitch<Operation *, Tensor>(op)
      .Case([&](CollectiveOpInterface collective) { return received(collective, group, position); })
      .Case([&](SliceLocalOp slice) { return partOf(*group[position], group, slice.getDim(), position); })
      .Case([&](AxisIndexOp) { return Tensor::scalar(resultTensorType(op), static_cast<double>(position)); });
}

FailureOr<std::vector<Tensor>> evalCollective(Operation *op, Operands operand, MeshAttr mesh) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (!mesh)
    return op->emitError("needs the module attribute 'dist.mesh'");
  std::vector<Tensor> results(mesh.getNumRanks());
  for (const SmallVector<int64_t> &ranks : groupsOf(mesh, axes)) {
    SmallVector<const Tensor *> group;
    for (int64_t rank : ranks)
      group.push_back(operand.empty() ? nullptr : operand[rank]);
    for (auto [position, rank] : llvm::enumerate(ranks))
      results[rank] = resultOf(op, group, static_cast<int64_t>(position));
  }
  for (const Tensor &result : results)
    if (result.getType() != resultTensorType(op))
      return op->emitError("gives ") << result.getType() << " on this mesh, expected " << resultTensorType(op);
  return results;
}

} // namespace tessera::interp
