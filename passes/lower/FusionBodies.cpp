//===- FusionBodies.cpp - what a kernel of some ops reads and stores ------===//

#include "passes/lower/FusionGroups.h"

#include "compiler/dialect/train/Builders.h"

using namespace mlir;
using tessera::codegen::KernelBody;
using tessera::train::shapeOf;

namespace tessera {

/// Elements of the operand in their order, without gaps.
static bool isContiguousSlice(train::SliceOp op) {
  bool inner = true;
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
  for (size_t dim = from.size(); dim-- > 0;) {
    if (op.getStrides()[dim] != 1 && to[dim] != 1)
      return false;
    if (!inner && to[dim] != 1)
      return false;
    inner &= from[dim] == to[dim];
  }
  return true;
}

/// What `value` is in another shape.
Value FusionGroups::shapeless(Value value) const {
  for (auto reshape = value.getDefiningOp<train::ReshapeOp>(); reshape && roles.of(reshape) == FusionRole::View;
       reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// Whether something that is not a kernel reads this view.
bool FusionGroups::isMaterialized(Operation *op) const {
  for (Operation *user : op->getUsers()) {
    FusionRole role = roles.of(user);
    if (role == FusionRole::Fixed || (role == FusionRole::View && isLayoutView(user) && isMaterialized(user)))
      return true;
  }
  return false;
}

/// A reshape or contiguous slice of a value that no member computes and that is in memory anyway.
bool FusionGroups::isFreeView(Value value, const DenseSet<Operation *> &members) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (members.contains(op))
    return false;
  if (roles.of(op) != FusionRole::View)
    return true;
  auto slice = dyn_cast<train::SliceOp>(op);
  if (isa<train::ReshapeOp>(op) || (slice && isContiguousSlice(slice)))
    return isFreeView(op->getOperand(0), members);
  return false;
}

/// Adds to `ops` the members and views that `value` is computed by, operands first, and to `inputs` what they read.
void FusionGroups::collect(Value value, const DenseSet<Operation *> &members, llvm::SetVector<Operation *> &ops,
                           llvm::SetVector<Value> &inputs) const {
  Operation *op = value.getDefiningOp();
  if (op && ops.contains(op))
    return;
  if (!op || (!members.contains(op) && (roles.of(op) != FusionRole::View || isFreeView(value, members)))) {
    inputs.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    collect(operand, members, ops, inputs);
  ops.insert(op);
}

/// An input in several shapes becomes one input, so that a thread holds each element once.
void FusionGroups::joinShapes(KernelBody &body) const {
  auto isJoined = [&](Value input) {
    return llvm::any_of(body.inputs,
                        [&](Value other) { return other != input && shapeless(other) == shapeless(input); });
  };
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> views;
  for (Value input : body.inputs) {
    if (!isJoined(input)) {
      inputs.insert(input);
      continue;
    }
    SmallVector<Operation *> own;
    for (Value value = input; value != shapeless(input); value = own.back()->getOperand(0))
      own.push_back(value.getDefiningOp());
    views.insert(own.rbegin(), own.rend());
    inputs.insert(shapeless(input));
  }
  body.inputs.assign(inputs.begin(), inputs.end());
  body.ops.insert(body.ops.begin(), views.begin(), views.end());
}

KernelBody FusionGroups::bodyOf(ArrayRef<Operation *> members) const {
  DenseSet<Operation *> set(members.begin(), members.end());
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;
  KernelBody body;
  for (Operation *op : members)
    collect(op->getResult(0), set, ops, inputs);
  SmallVector<const FusionGroup *> own;
  for (Operation *op : members)
    if (FusionGroup *group = owner.lookup(op); group && !llvm::is_contained(own, group))
      own.push_back(group);
  for (Operation *op : members)
    if (!owner.contains(op) || readOutside(op->getResult(0), own))
      body.outputs.push_back(op->getResult(0));
  body.inputs.assign(inputs.begin(), inputs.end());
  body.ops.assign(ops.begin(), ops.end());
  if (isGpu)
    joinShapes(body);
  return body;
}

bool FusionGroups::readOutside(Value value, ArrayRef<const FusionGroup *> members) const {
  for (Operation *user : value.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    if (!inBlock || inBlock != user)
      return true;
    switch (roles.of(user)) {
    case FusionRole::Fixed:
      return true;
    case FusionRole::Compute:
      if (FusionGroup *group = owner.lookup(user); group && !llvm::is_contained(members, group))
        return true;
      break;
    case FusionRole::View:
      if (!isLayoutView(user) && isMaterialized(user))
        return true;
      if (readOutside(user->getResult(0), members))
        return true;
      break;
    }
  }
  return false;
}

} // namespace tessera
