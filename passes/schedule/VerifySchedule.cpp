//===- VerifySchedule.cpp - every start is waited for, in order -----------===//

#include "passes/schedule/Collectives.h"
#include "passes/schedule/Passes.h"

#include <map>
#include <tuple>

namespace tessera {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::schedule;

namespace {

LogicalResult verifyStart(Operation *start) {
  if (!start->hasAttr(kReason))
    return start->emitOpError() << "has no '" << kReason << "'";
  int64_t dones = 0;
  for (Operation *user : start->getUsers()) {
    if (!isa<DoneOp>(user))
      return user->emitOpError() << "uses a future, which only dist.done may";
    if (user->getBlock() != start->getBlock())
      return user->emitOpError() << "waits in another block than its collective starts in";
    ++dones;
  }
  if (dones != 1)
    return start->emitOpError() << "is waited for " << dones << " times, expected once";
  return success();
}

/// Collectives of one kind and reduction over one group form a queue: they end in the order in which they start.
LogicalResult verifyOrder(Block &block) {
  std::map<std::tuple<CollectiveKind, ReductionKind, const void *>, DoneOp> lastDone;
  for (Operation &op : block) {
    CollectiveOpInterface start = asStart(&op);
    if (!start)
      continue;
    DoneOp done = doneOf(start);
    DoneOp &last = lastDone[{start.getCollectiveKind(), start.getReduction(), start.getAxes().getAsOpaquePointer()}];
    if (last && done->isBeforeInBlock(last)) {
      InFlightDiagnostic diag = done.emitOpError() << "ends before a collective of its kind that started earlier";
      diag.attachNote(last.getLoc()) << "that one ends here";
      return diag;
    }
    last = done;
  }
  return success();
}

struct VerifySchedulePass : tessera::impl::VerifySchedulePassBase<VerifySchedulePass> {
  void runOnOperation() override {
    auto ops = getOperation().walk([](Operation *op) -> WalkResult {
      if (asSynchronous(op))
        return op->emitOpError() << "is not split into start and done";
      return asStart(op) || isa<CopyStartOp>(op) ? verifyStart(op) : success();
    });
    if (ops.wasInterrupted())
      return signalPassFailure();
    auto blocks = getOperation().walk([](Block *block) -> WalkResult { return verifyOrder(*block); });
    if (blocks.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
