//===- SplitAsync.cpp - collectives become start and done -----------------===//

#include "passes/schedule/Collectives.h"
#include "passes/schedule/Passes.h"

namespace tessera {
#define GEN_PASS_DEF_SPLITASYNCPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

void split(CollectiveOpInterface op) {
  OpBuilder builder(op);
  CollectiveOpInterface start = buildStart(builder, op);
  DoneOp done = buildDone(builder, start);
  if (train::isMarkedBackward(op))
    train::markBackward(done);
  schedule::setReason(start, "where the collective was");
  schedule::setReason(done, "right after its start");
  op->getResult(0).replaceAllUsesWith(done.getResult());
  op->erase();
}

struct SplitAsyncPass : tessera::impl::SplitAsyncPassBase<SplitAsyncPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (CollectiveOpInterface collective = asSynchronous(op))
        split(collective);
    });
  }
};

} // namespace
