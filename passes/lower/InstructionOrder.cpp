//===- InstructionOrder.cpp - when instructions run, and slots live -------===//
//
// See InstructionOrder.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/InstructionOrder.h"

using namespace mlir;

namespace tessera::lower {

namespace {

class Walker {
public:
  Walker(int64_t unroll) : unroll(unroll) {}

  void run(Block &block, exec::LoopOp loop, int64_t iteration) {
    for (Operation &op : block) {
      if (!exec::isInstruction(&op))
        continue;
      step(&op, loop, iteration);
      if (auto inner = dyn_cast<exec::LoopOp>(op)) {
        int64_t begin = index;
        for (int64_t i = 0; i < std::min<int64_t>(unroll, inner.getCount()); ++i) {
          index = begin;
          run(inner.getBody().front(), inner, i);
        }
      }
    }
  }

  SmallVector<Step> steps;

private:
  void step(Operation *op, exec::LoopOp loop, int64_t iteration) {
    int64_t stream = exec::streamOf(op);
    Clock &known = clocks[stream];
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      for (auto [mine, theirs] : llvm::zip_equal(known, events.lookup(wait.getEvent())))
        mine = std::max(mine, theirs);
    steps.push_back({op, index++, iteration, loop, stream, known[stream], known});
    ++known[stream];
    if (auto record = dyn_cast<exec::RecordOp>(op))
      events[record.getEvent()] = known;
  }

  int64_t unroll;
  int64_t index = 0;
  std::array<Clock, exec::kNumStreams> clocks{};
  llvm::DenseMap<int64_t, Clock> events;
};

} // namespace

SmallVector<Step> orderInstructions(exec::ProgramOp program, int64_t unroll) {
  Walker walker(unroll);
  walker.run(program.getBody().front(), nullptr, 0);
  return std::move(walker.steps);
}

exec::SlotOp slotOf(Value buffer) {
  auto op = buffer.getDefiningOp<exec::BufferOp>();
  return op ? op.getSlot().getDefiningOp<exec::SlotOp>() : nullptr;
}

int64_t numInstructions(exec::ProgramOp program) {
  int64_t count = 0;
  program.walk([&](Operation *op) { count += exec::isInstruction(op); });
  return count;
}

llvm::MapVector<Operation *, Lifetime> slotLifetimes(exec::ProgramOp program) {
  SmallVector<Step> steps = orderInstructions(program, 1);
  int64_t end = steps.size();

  // The last instruction of each loop, and when the compute stream knows that each step is over.
  llvm::DenseMap<Operation *, std::pair<int64_t, int64_t>> loops;
  SmallVector<int64_t> over(steps.size(), end);
  std::array<SmallVector<size_t>, exec::kNumStreams> pending;
  for (auto [i, step] : llvm::enumerate(steps)) {
    if (isa<exec::LoopOp>(step.op))
      loops[step.op] = {step.index, step.index};
    if (step.loop)
      loops[step.loop].second = step.index;
    if (step.stream == exec::kComputeStream) {
      over[i] = step.index;
      for (SmallVector<size_t> &waiting : pending)
        llvm::erase_if(waiting, [&](size_t other) {
          bool known = happensBefore(steps[other], step);
          if (known)
            over[other] = step.index;
          return known;
        });
    } else {
      pending[step.stream].push_back(i);
    }
  }

  struct Use {
    Lifetime lifetime;
    exec::LoopOp loop;
    bool outside = false, carried = false;
  };
  llvm::MapVector<Operation *, Use> uses;
  auto touch = [&](Value buffer, const Step &step, int64_t last, bool write) {
    exec::SlotOp slot = slotOf(buffer);
    bool first = !uses.contains(slot);
    Use &use = uses[slot];
    if (first)
      use = {{slot.getBytes(), step.index, last}, step.loop, !step.loop, step.loop && !write};
    if (use.loop != step.loop) {
      use.outside = true;
      // A loop that the slot is used in, and something outside of it: live through all of the loop.
      for (exec::LoopOp loop : {use.loop, step.loop})
        if (loop) {
          use.lifetime.first = std::min(use.lifetime.first, loops[loop].first);
          use.lifetime.last = std::max(use.lifetime.last, loops[loop].second);
        }
      if (step.loop)
        use.loop = step.loop;
    }
    use.lifetime.first = std::min(use.lifetime.first, step.index);
    use.lifetime.last = std::max(use.lifetime.last, last);
  };
  for (auto [i, step] : llvm::enumerate(steps)) {
    for (Value buffer : exec::readBuffers(step.op))
      touch(buffer, step, over[i], false);
    for (Value buffer : exec::writtenBuffers(step.op))
      touch(buffer, step, over[i], true);
  }
  llvm::MapVector<Operation *, Lifetime> result;
  for (auto &[slot, use] : uses) {
    if (use.carried) {
      use.lifetime.first = std::min(use.lifetime.first, loops[use.loop].first);
      use.lifetime.last = std::max(use.lifetime.last, loops[use.loop].second);
    }
    result[slot] = use.lifetime;
  }
  return result;
}

} // namespace tessera::lower
