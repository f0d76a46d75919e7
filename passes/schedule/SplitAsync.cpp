//===- SplitAsync.cpp - collectives become start and done -----------------===//

#include "passes/schedule/Collectives.h"
#include "passes/schedule/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_SPLITASYNCPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

template <typename Start> void split(Operation *op) {
  OpBuilder builder(op);
  auto future = FutureType::get(op->getContext(), cast<RankedTensorType>(op->getResult(0).getType()));
  OperationState state(op->getLoc(), Start::getOperationName(), op->getOperands(), future, op->getAttrs());
  Operation *start = builder.create(state);
  auto done = DoneOp::create(builder, op->getLoc(), op->getResult(0).getType(), start->getResult(0));
  if (op->hasAttr(train::kBackward))
    done->setAttr(train::kBackward, builder.getUnitAttr());
  schedule::setReason(start, "where the collective was");
  schedule::setReason(done, "right after its start");
  op->getResult(0).replaceAllUsesWith(done.getResult());
  op->erase();
}

struct SplitAsyncPass : tessera::impl::SplitAsyncPassBase<SplitAsyncPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<AllGatherOp>([](Operation *op) { split<AllGatherStartOp>(op); })
          .Case<ReduceScatterOp>([](Operation *op) { split<ReduceScatterStartOp>(op); })
          .Case<AllReduceOp>([](Operation *op) { split<AllReduceStartOp>(op); })
          .Case<AllToAllOp>([](Operation *op) { split<AllToAllStartOp>(op); })
          .Case<PermuteOp>([](Operation *op) { split<PermuteStartOp>(op); });
    });
  }
};

} // namespace
