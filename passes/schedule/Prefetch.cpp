//===- Prefetch.cpp - collectives start early and end late ----------------===//

#include "passes/schedule/Collectives.h"
#include "passes/schedule/Passes.h"

namespace tessera {
#define GEN_PASS_DEF_PREFETCHPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::schedule;

namespace {

/// Ops that only show another op's result in another shape, or join such results: they move with their collective.
bool isView(Operation *op) { return isa<train::SliceOp, train::ReshapeOp, train::TransposeOp, train::ConvertOp>(op); }
bool isAssembly(Operation *op) { return isView(op) || isa<train::ConcatOp, train::ConstantOp>(op); }

/// Places the collectives of one block. Invariant: the block stays a valid SSA block after every move.
class BlockScheduler {
public:
  BlockScheduler(Block &block, int64_t forward, int64_t backward)
      : block(block), forward(forward), backward(backward) {}

  void run() {
    SmallVector<Operation *> gathers, reductions;
    for (Operation &op : block) {
      if (!isStart(&op) || !doneOf(&op) || doneOf(&op)->getBlock() != &block)
        continue;
      if (isa<AllGatherStartOp>(op) && isReadyAtStart(op.getOperand(0)))
        gathers.push_back(&op);
      else if (isa<AllGatherStartOp>(op))
        fixedGathers.push_back(&op);
      else if (isa<ReduceScatterStartOp, AllReduceStartOp>(op))
        reductions.push_back(&op);
    }
    for (Operation *start : reductions)
      startWhenReady(start);
    sinkDones(reductions);
    placeGathers(gathers);
  }

private:
  /// The value comes from outside of the block: a parameter.
  bool isReadyAtStart(Value value) const { return value.getParentBlock() != &block || isa<BlockArgument>(value); }

  Operation *firstUser(Operation *op) const {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
    return first;
  }

  /// Moves `op` right after the last of its operands, views and joins among them first.
  void hoist(Operation *op) {
    Operation *last = nullptr;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer->getBlock() != &block)
        continue;
      if (isAssembly(producer))
        hoist(producer);
      if (!last || last->isBeforeInBlock(producer))
        last = producer;
    }
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&block, block.begin());
  }

  void startWhenReady(Operation *start) {
    hoist(start);
    setReason(start, "as soon as its operand is complete");
  }

  void sinkDones(ArrayRef<Operation *> reductions) {
    SmallVector<Operation *> ordered(reductions);
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (auto [index, start] : llvm::enumerate(ordered)) {
      DoneOp done = doneOf(start);
      sinkUsers(done);
      Operation *limit = firstUser(done);
      if (!limit)
        limit = block.getTerminator();
      StringRef reason = "at its first use";
      for (Operation *next : llvm::drop_begin(ordered, index + 1))
        if (next->getName() == start->getName()) {
          if (next->isBeforeInBlock(limit)) {
            limit = next;
            reason = "before the next collective of its kind starts";
          }
          break;
        }
      done->moveBefore(limit);
      setReason(done, reason);
    }
  }

  /// Moves the views of a value down to their first uses, so that the value's first use is one that computes.
  void sinkUsers(Operation *op) {
    SmallVector<Operation *> views;
    for (Operation *user : op->getUsers())
      if (user->getBlock() == &block && isView(user) && !llvm::is_contained(views, user))
        views.push_back(user);
    for (Operation *view : views) {
      sinkUsers(view);
      if (Operation *first = firstUser(view))
        view->moveBefore(first);
    }
  }

  struct Gather {
    Operation *start;
    DoneOp done;
  };

  void placeGathers(ArrayRef<Operation *> starts) {
    SmallVector<Gather> gathers;
    for (Operation *start : starts) {
      DoneOp done = doneOf(start);
      sinkUsers(done);
      Operation *first = firstUser(done);
      if (!first)
        continue;
      done->moveBefore(first);
      setReason(done, "at the first use of the unit");
      gathers.push_back({start, done});
    }
    llvm::sort(gathers, [](const Gather &a, const Gather &b) { return a.done->isBeforeInBlock(b.done); });
    for (auto [index, gather] : llvm::enumerate(gathers))
      placeStart(gathers, index);
  }

  /// The start of gather i moves to the point of gather i-k. Going up in i keeps the order of the starts.
  void placeStart(ArrayRef<Gather> gathers, size_t index) {
    const Gather &gather = gathers[index];
    bool isBackward = gather.start->hasAttr(train::kBackward);
    size_t ahead = static_cast<size_t>(isBackward ? backward : forward);
    Operation *previous = index > 0 ? gathers[index - 1].start : nullptr;
    if (ahead == 0) {
      gather.start->moveBefore(gather.done);
      setReason(gather.start, "at the first use of the unit: no prefetch");
    } else if (ahead > index) {
      if (previous)
        gather.start->moveAfter(previous);
      else
        gather.start->moveBefore(&block, block.begin());
      setReason(gather.start, "at the beginning: fewer than " + Twine(ahead) + " units come before");
    } else {
      const Gather &point = gathers[index - ahead];
      Operation *after = point.done;
      if (previous && after->isBeforeInBlock(previous))
        after = previous; // where forward and backward look ahead differently
      gather.start->moveAfter(after);
      setReason(gather.start, Twine(ahead) + (ahead == 1 ? " unit" : " units") + " ahead: at the first use of " +
                                  labelOf(point.start));
    }
    keepQueue(gather);
  }

  /// A gather of an activation ends where it starts: a unit that is used after it may not start before it.
  void keepQueue(const Gather &gather) {
    Operation *last = nullptr;
    for (Operation *fixed : fixedGathers)
      if (fixed->getAttr("axes") == gather.start->getAttr("axes") && fixed->isBeforeInBlock(gather.done) &&
          gather.start->isBeforeInBlock(fixed) && (!last || last->isBeforeInBlock(fixed)))
        last = fixed;
    if (!last)
      return;
    gather.start->moveAfter(doneOf(last));
    setReason(gather.start, "after the gather of " + labelOf(last) + ", which cannot be delayed");
  }

  Block &block;
  int64_t forward, backward;
  /// All-gathers of values that the block computes; they stay where they are.
  SmallVector<Operation *> fixedGathers;
};

struct PrefetchPass : tessera::impl::PrefetchPassBase<PrefetchPass> {
  using PrefetchPassBase::PrefetchPassBase;
  void runOnOperation() override {
    if (forward < 0 || backward < 0) {
      getOperation().emitError() << "prefetch distances are " << forward.getValue() << " and " << backward.getValue()
                                 << " units, expected at least 0";
      return signalPassFailure();
    }
    getOperation().walk([&](Block *block) { BlockScheduler(*block, forward, backward).run(); });
  }
};

} // namespace
