//===- Collective.cpp - what collectives have in common -------------------===//
//
// See Collective.td and Collective.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Collective.h"

using namespace mlir;

#include "compiler/dialect/dist/Collective.cpp.inc"

namespace tessera::dist {

bool CollectiveOpInterface::isStart() { return isa<FutureType>(getOperation()->getResult(0).getType()); }

RankedTensorType CollectiveOpInterface::getResultTensorType() {
  Type type = getOperation()->getResult(0).getType();
  if (auto future = dyn_cast<FutureType>(type))
    return future.getTensor();
  return cast<RankedTensorType>(type);
}

int64_t CollectiveOpInterface::getWholeBytes() {
  const bool grows = getCollectiveKind() == CollectiveKind::AllGather;
  RankedTensorType type = grows ? getResultTensorType() : getOperand().getType();
  return type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth()) / 8;
}

std::string CollectiveOpInterface::getText() {
  OriginAttr origin = getOriginAttr();
  return origin ? origin.getText() : getOperation()->getName().getStringRef().str();
}

CollectiveOpInterface asSynchronous(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && !collective.isStart() ? collective : nullptr;
}

CollectiveOpInterface asStart(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.isStart() ? collective : nullptr;
}

static StringRef startNameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return AllGatherStartOp::getOperationName();
  case CollectiveKind::ReduceScatter:
    return ReduceScatterStartOp::getOperationName();
  case CollectiveKind::AllReduce:
    return AllReduceStartOp::getOperationName();
  case CollectiveKind::AllToAll:
    return AllToAllStartOp::getOperationName();
  case CollectiveKind::Permute:
    return PermuteStartOp::getOperationName();
  }
  llvm_unreachable("unknown collective");
}

CollectiveOpInterface buildStart(OpBuilder &builder, CollectiveOpInterface collective) {
  assert(!collective.isStart() && "a start has none");
  Operation *op = collective.getOperation();
  auto future = FutureType::get(op->getContext(), collective.getResultTensorType());
  OperationState state(op->getLoc(), startNameOf(collective.getCollectiveKind()), op->getOperands(), future,
                       op->getAttrs());
  return cast<CollectiveOpInterface>(builder.create(state));
}

DoneOp buildDone(OpBuilder &builder, Operation *start) {
  auto future = cast<TypedValue<FutureType>>(start->getResult(0));
  return DoneOp::create(builder, start->getLoc(), future.getType().getTensor(), future);
}

DoneOp doneOf(Operation *start) {
  Value future = start->getResult(0);
  return future.hasOneUse() ? dyn_cast<DoneOp>(*future.user_begin()) : DoneOp();
}

Operation *startOf(DoneOp done) { return done.getFuture().getDefiningOp(); }

CollectiveOpInterface collectiveBehind(Operation *op) {
  if (auto done = dyn_cast<DoneOp>(op))
    op = startOf(done);
  return dyn_cast_or_null<CollectiveOpInterface>(op);
}

} // namespace tessera::dist
