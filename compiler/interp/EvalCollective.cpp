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

bool isCollective(Operation *op) {
  return isa<AllGatherOp, AllGatherStartOp, ReduceScatterOp, ReduceScatterStartOp, AllReduceOp, AllReduceStartOp,
             AllToAllOp, AllToAllStartOp, PermuteOp, PermuteStartOp, SliceLocalOp, AxisIndexOp>(op);
}

static RankedTensorType resultTensorType(Operation *op) {
  Type type = op->getResult(0).getType();
  if (auto future = dyn_cast<FutureType>(type))
    return future.getTensor();
  return cast<RankedTensorType>(type);
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

/// What member `position` of the group receives.
static Tensor resultOf(Operation *op, Group group, int64_t position) {
  RankedTensorType type = resultTensorType(op);
  int64_t members = static_cast<int64_t>(group.size());
  auto part = [&](const Tensor &whole, int64_t dim, int64_t number) {
    int64_t size = whole.getShape()[dim] / members;
    return extractPart(whole, dim, number * size, size);
  };
  return llvm::TypeSwitch<Operation *, Tensor>(op)
      .Case<AllGatherOp, AllGatherStartOp>([&](auto gather) { return concatOf(group, type, gather.getDim()); })
      .Case<ReduceScatterOp, ReduceScatterStartOp>(
          [&](auto scatter) { return part(reductionOf(group, scatter.getKind()), scatter.getDim(), position); })
      .Case<AllReduceOp, AllReduceStartOp>([&](auto reduce) { return reductionOf(group, reduce.getKind()); })
      .Case<AllToAllOp, AllToAllStartOp>([&](auto exchange) {
        SmallVector<Tensor> parts;
        SmallVector<const Tensor *> received;
        for (const Tensor *sender : group)
          parts.push_back(part(*sender, exchange.getSplitDim(), position));
        for (const Tensor &tensor : parts)
          received.push_back(&tensor);
        return concatOf(received, type, exchange.getConcatDim());
      })
      .Case<PermuteOp, PermuteStartOp>([&](auto permute) {
        int64_t sender = (position - static_cast<int64_t>(permute.getShift())) % members;
        return *group[sender < 0 ? sender + members : sender];
      })
      .Case<SliceLocalOp>([&](SliceLocalOp slice) { return part(*group[position], slice.getDim(), position); })
      .Case<AxisIndexOp>([&](AxisIndexOp) { return Tensor::scalar(type, static_cast<double>(position)); });
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
