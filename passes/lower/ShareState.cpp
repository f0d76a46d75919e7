//===- ShareState.cpp - one place for the state of all programs -----------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Train.h"
#include "passes/lower/Allocator.h"
#include "passes/lower/InstructionOrder.h"
#include "passes/lower/Passes.h"
#include "runtime/artifact/Format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_SHARESTATE
#include "passes/lower/Passes.h.inc"

namespace {

bool isState(exec::ArgumentOp argument) {
  auto role = argument->getAttrOfType<StringAttr>(train::kRole);
  return role && (role == "param" || role == "frozen" || role == "state" || role == "buffer");
}

/// Names are unique among parameters, and among states.
std::string keyOf(exec::ArgumentOp argument) {
  auto name = argument->getAttrOfType<StringAttr>(train::kName);
  return (cast<StringAttr>(argument->getAttr(train::kRole)).getValue() + "\n" + (name ? name.getValue() : "")).str();
}

/// The slots of a program's training state, by name, and for each arena that holds arguments where it ends.
struct Places {
  llvm::StringMap<exec::SlotOp> slots;
  llvm::StringMap<int64_t> ends;
};

Places placesOf(exec::ProgramOp program) {
  Places places;
  for (auto argument : program.getOps<exec::ArgumentOp>()) {
    exec::SlotOp slot = lower::slotOf(argument.getBuffer());
    if (isState(argument))
      places.slots[keyOf(argument)] = slot;
    auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(slot, slot.getArenaAttr());
    places.ends[slot.getArena()] = arena.getBytes();
  }
  return places;
}

struct ShareState : impl::ShareStateBase<ShareState> {
  void runOnOperation() override {
    auto programs = llvm::to_vector(getOperation().getOps<exec::ProgramOp>());
    if (programs.size() < 2)
      return markAllAnalysesPreserved();
    const Places places = placesOf(programs.front());
    for (exec::ProgramOp program : llvm::drop_begin(programs))
      if (failed(share(program, places)))
        return signalPassFailure();
  }

  /// Evaluation keeps less than training; if it does need more, that is worth to know.
  void warnOfMore(exec::ArenaOp arena) {
    auto first = *getOperation().getOps<exec::ProgramOp>().begin();
    auto theirs = first.lookupSymbol<exec::ArenaOp>(arena.getSymName());
    if (const int64_t bytes = theirs ? theirs.getBytes() : 0; static_cast<int64_t>(arena.getBytes()) > bytes)
      emitWarning(arena->getParentOp()->getLoc())
          << "the evaluation needs " << arena.getBytes() << " bytes of '" << arena.getSymName() << "', the training "
          << bytes << ": a rank reserves as much as the evaluation needs";
  }

  LogicalResult share(exec::ProgramOp program, const Places &places) {
    llvm::DenseSet<Operation *> shared;
    for (auto argument : program.getOps<exec::ArgumentOp>()) {
      if (!isState(argument))
        continue;
      exec::SlotOp mine = lower::slotOf(argument.getBuffer()), theirs = places.slots.lookup(keyOf(argument));
      if (!theirs)
        return argument.emitError() << argument->getAttr(train::kName) << " is no state of the training";
      if (mine.getArena() != theirs.getArena() || mine.getBytes() != theirs.getBytes())
        return argument.emitError() << argument->getAttr(train::kName) << " has " << mine.getBytes()
                                    << " bytes in arena '" << mine.getArena() << "', the training has it with "
                                    << theirs.getBytes() << " in '" << theirs.getArena() << "'";
      mine.setOffset(theirs.getOffset());
      shared.insert(mine);
    }
    // What lies between runs in an arena is not the program's to write over: what it needs itself comes behind.
    constexpr int64_t kAlignment = artifact::slotAlignment;
    for (auto arena : program.getOps<exec::ArenaOp>()) {
      auto end = places.ends.find(arena.getSymName());
      if (end == places.ends.end()) {
        warnOfMore(arena);
        continue;
      }
      SmallVector<exec::SlotOp> slots;
      SmallVector<lower::Lifetime> spans;
      for (auto slot : program.getOps<exec::SlotOp>()) {
        if (slot.getArena() != arena.getSymName() || shared.contains(slot))
          continue;
        slots.push_back(slot);
        spans.push_back({slot.getBytes(), slot.getLive()->front(), slot.getLive()->back()});
      }
      const int64_t behind = llvm::alignTo(end->second, kAlignment);
      lower::Placement placement = lower::placeAllocations(spans, kAlignment);
      for (auto [slot, offset] : llvm::zip_equal(slots, placement.offsets))
        slot.setOffset(behind + offset);
      arena.setBytes(slots.empty() ? end->second : behind + placement.bytes);
    }
    return success();
  }
};

} // namespace
} // namespace tessera
