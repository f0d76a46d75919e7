//===- VerifyCollectiveOrder.cpp - one sequence on all ranks --------------===//

#include "compiler/dialect/exec/Exec.h"
#include "passes/schedule/Collectives.h"
#include "passes/schedule/Passes.h"

#include "mlir/Interfaces/CallInterfaces.h"

namespace tessera {
#define GEN_PASS_DEF_VERIFYCOLLECTIVEORDERPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::schedule;

namespace {

bool communicates(Operation *op) { return isa<dist::CollectiveOpInterface, exec::CollectiveOp>(op); }

/// An op whose body runs as often as is written in it.
bool hasStaticCount(Operation *op) { return isa<train::AccumulateOp, exec::RepeatOp, exec::LoopOp>(op); }

/// Every op between a collective and its function or program runs its body equally often on all ranks, in one block.
LogicalResult verifyControlFlow(Operation *collective) {
  for (Operation *op = collective; op->getParentOp() && !isa<func::FuncOp, exec::ProgramOp>(op);
       op = op->getParentOp()) {
    Operation *parent = op->getParentOp();
    if (!llvm::hasSingleElement(*op->getParentRegion())) {
      InFlightDiagnostic error = collective->emitOpError()
                                 << "is in one of several blocks, so ranks could differ in whether they run it";
      error.attachNote(parent->getLoc()) << "the blocks are in this operation";
      return error;
    }
    if (!isa<func::FuncOp, exec::ProgramOp>(parent) && !hasStaticCount(parent)) {
      InFlightDiagnostic error = collective->emitOpError() << "is inside of '" << parent->getName()
                                                           << "', so how often it runs could depend on the rank";
      error.attachNote(parent->getLoc()) << "the control flow is here";
      return error;
    }
  }
  return success();
}

LogicalResult verifyPair(Operation *start) {
  dist::DoneOp done = dist::doneOf(start);
  if (!done)
    return start->emitOpError() << "is not waited for by exactly one dist.done";
  if (done->getBlock() != start->getBlock())
    return start->emitOpError() << "is waited for in another block, so ranks could start it and not end it";
  return success();
}

/// Behind the last collective of each stream in `block`, the stream records an event that compute waits for.
LogicalResult verifyStreams(Block &block) {
  std::array<exec::CollectiveOp, exec::kNumStreams> open{};
  llvm::DenseMap<int64_t, exec::CollectiveOp> recorded;
  std::array<exec::CollectiveOp, exec::kNumStreams> last{};
  for (Operation &op : block) {
    if (auto collective = dyn_cast<exec::CollectiveOp>(op)) {
      last[collective.getStream()] = open[collective.getStream()] = collective;
    } else if (auto record = dyn_cast<exec::RecordOp>(op)) {
      recorded[record.getEvent()] = last[record.getStream()];
    } else if (auto wait = dyn_cast<exec::WaitOp>(op); wait && wait.getStream() == exec::kComputeStream) {
      for (exec::CollectiveOp &waiting : open)
        if (waiting && recorded.lookup(wait.getEvent()) == waiting)
          waiting = nullptr;
    }
  }
  for (exec::CollectiveOp waiting : open)
    if (waiting && waiting.getStream() != exec::kComputeStream)
      return waiting.emitOpError() << "is not waited for in its block";
  return success();
}

struct VerifyCollectiveOrderPass : tessera::impl::VerifyCollectiveOrderPassBase<VerifyCollectiveOrderPass> {
  void runOnOperation() override {
    Operation *top = getOperation();
    auto result = top->walk([&](Operation *op) -> WalkResult {
      if (isa<CallOpInterface>(op))
        return op->emitOpError() << "calls another function, whose collectives this pass does not see";
      if (!communicates(op))
        return success();
      if (failed(verifyControlFlow(op)))
        return failure();
      return dist::asStart(op) ? verifyPair(op) : success();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    auto streams = top->walk([](Block *block) -> WalkResult { return verifyStreams(*block); });
    if (streams.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
