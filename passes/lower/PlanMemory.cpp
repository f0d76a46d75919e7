//===- PlanMemory.cpp - offsets of slots and sizes of arenas --------------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/InstructionOrder.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/lower/Passes.h.inc"

namespace {

/// Values of the whole model may have any size; what a rank stores of them must leave room for arithmetic with offsets.
LogicalResult checkSizes(exec::ProgramOp program) {
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t total = 0;
  exec::SlotOp largest;
  for (auto slot : program.getOps<exec::SlotOp>()) {
    if (!largest || slot.getBytes() > largest.getBytes())
      largest = slot;
    const int64_t bytes = slot.getBytes();
    if (bytes > kMost || (total += bytes) > kMost)
      return largest.emitError()
             << "values of a rank are more than 2^56 bytes together, too many to plan; the largest so far has "
             << largest.getBytes() << " bytes: more ranks or smaller micro-batches are needed";
  }
  return success();
}

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    exec::ProgramOp program = getOperation();
    constexpr int64_t kMostAlignment = 1 << 30;
    if (alignment < 64 || alignment % 64 != 0 || alignment > kMostAlignment) {
      program.emitError() << "alignment must be a multiple of 64 and at most " << kMostAlignment << ", got "
                          << alignment.getValue();
      return signalPassFailure();
    }
    if (failed(checkSizes(program)))
      return signalPassFailure();
    int64_t end = lower::numInstructions(program);
    auto lifetimes = lower::slotLifetimes(program);
    llvm::DenseSet<Operation *> arguments; // live across steps, in whichever arena
    for (auto argument : program.getOps<exec::ArgumentOp>())
      arguments.insert(lower::slotOf(argument.getBuffer()));
    for (auto arena : program.getOps<exec::ArenaOp>()) {
      SmallVector<exec::SlotOp> slots;
      SmallVector<lower::Lifetime> spans;
      for (auto slot : program.getOps<exec::SlotOp>()) {
        if (slot.getArena() != arena.getSymName())
          continue;
        bool persists = arena.getKind() == exec::ArenaKind::State || arguments.contains(slot);
        auto found = lifetimes.find(slot);
        if (!persists && found == lifetimes.end())
          continue; // nothing reads or writes it
        slots.push_back(slot);
        spans.push_back(persists ? lower::Lifetime{slot.getBytes(), 0, std::max<int64_t>(end - 1, 0)} : found->second);
      }
      lower::Placement placement = lower::placeAllocations(spans, alignment);
      for (auto [slot, offset] : llvm::zip_equal(slots, placement.offsets))
        slot.setOffset(offset);
      for (auto [slot, span] : llvm::zip_equal(slots, spans))
        slot.setLiveAttr(DenseI64ArrayAttr::get(&getContext(), {span.first, span.last}));
      arena.setBytes(placement.bytes);
      if (int64_t peak = lower::peakLiveBytes(spans, alignment); placement.bytes > peak)
        emitRemark(arena.getLoc()) << "arena '" << arena.getSymName() << "' takes " << placement.bytes
                                   << " bytes, of which at most " << peak
                                   << " are live at one time: slots do not fit into each other's gaps";
    }
    for (auto slot : llvm::make_early_inc_range(program.getOps<exec::SlotOp>()))
      if (!slot.getOffset()) {
        for (Operation *buffer : llvm::make_early_inc_range(slot->getUsers()))
          if (buffer->use_empty())
            buffer->erase();
        if (slot->use_empty())
          slot.erase();
      }
  }
};

} // namespace
} // namespace tessera
