//===- VerifyExec.cpp - proves that planned memory is safe ----------------===//
//
// See Passes.td. An *episode* is the use of a slot from its first to its last access: one per slot, or one per
// iteration for a slot that only lives inside a loop's body. Two episodes of slots that share memory must be ordered as
// wholes, on all streams; then no slot is overwritten while it is live, and none is reused before its readers are done.
// With that, the instructions have the effect that they have in program order, for which ValueNumbering.h proves that
// they compute the step.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/dist/Dist.h"
#include "passes/lower/InstructionOrder.h"
#include "passes/lower/MemoryContents.h"
#include "passes/lower/Passes.h"
#include "passes/lower/ValueNumbering.h"

#include <map>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_VERIFYEXEC
#include "passes/lower/Passes.h.inc"

namespace {

using lower::Step;

struct Access {
  const Step *step;
  bool write;
  exec::BufferOp buffer;
};

/// False if the accesses, of one slot, have no byte in common on any rank.
bool mayTouch(const Access &a, const Access &b, dist::MeshAttr mesh) {
  exec::BufferOp first = a.buffer, second = b.buffer;
  const ArrayAttr firstAxes = first.getRankAxesAttr(), secondAxes = second.getRankAxesAttr();
  auto touchAt = [&](int64_t firstPosition, int64_t secondPosition) {
    auto bytes = [](exec::BufferOp buffer) { return exec::elementBytes(buffer.getType().getElementType()); };
    return lower::mayOverlap(lower::placeOf(first, a.step->iteration, firstPosition), bytes(first),
                             lower::placeOf(second, b.step->iteration, secondPosition), bytes(second));
  };
  if (!mesh || (!firstAxes && !secondAxes))
    return firstAxes || secondAxes || touchAt(0, 0);
  if (firstAxes && secondAxes && firstAxes != secondAxes) // ranks have places in both groups
    return llvm::any_of(llvm::seq(mesh.getNumRanks()), [&](int64_t rank) {
      return touchAt(dist::positionInGroup(mesh, firstAxes, rank), dist::positionInGroup(mesh, secondAxes, rank));
    });
  return llvm::any_of(llvm::seq(mesh.getGroupSize(firstAxes ? firstAxes : secondAxes)),
                      [&](int64_t position) { return touchAt(firstAxes ? position : 0, secondAxes ? position : 0); });
}

struct Episode {
  exec::SlotOp slot;
  SmallVector<Access> accesses;

  /// True if every access of this episode is over before any of the other begins.
  bool precedes(const Episode &other) const {
    std::array<const Step *, exec::kNumStreams> last{}, first{};
    for (const Access &access : accesses)
      last[access.step->stream] = access.step;
    for (const Access &access : llvm::reverse(other.accesses))
      first[access.step->stream] = access.step;
    for (const Step *mine : last)
      for (const Step *theirs : first)
        if (mine && theirs && !happensBefore(*mine, *theirs))
          return false;
    return true;
  }
};

struct VerifyExec : impl::VerifyExecBase<VerifyExec> {
  using VerifyExecBase::VerifyExecBase;

  void runOnOperation() override {
    if (failed(verifySlots()) || failed(verifyBuffers()))
      return signalPassFailure();
    // Two iterations show every hazard between one and the next.
    steps = lower::orderInstructions(getOperation(), 2);
    episodes.clear(); // of the program before
    bySlotEpisodes.clear();
    collectEpisodes();
    if (failed(verifyEvents()) || failed(verifyReuse()) || failed(verifyRaces()))
      return signalPassFailure();
    func::FuncOp step = lower::stepOf(getOperation());
    if (!step && values) {
      getOperation().emitOpError("does not carry its step, so that values cannot be followed: to-exec has not kept it");
      return signalPassFailure();
    }
    if (step && failed(lower::verifyValues(getOperation(), step)))
      signalPassFailure();
  }

  LogicalResult verifySlots() {
    for (auto slot : getOperation().getOps<exec::SlotOp>()) {
      auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(slot, slot.getArenaAttr());
      if (!arena)
        return slot.emitOpError() << "is in an unknown arena " << slot.getArena();
      if (!slot.getOffset())
        return slot.emitOpError("has no offset: plan-memory has not run");
      if (int64_t(*slot.getOffset()) + slot.getBytes() > int64_t(arena.getBytes()))
        return slot.emitOpError() << "ends at byte " << *slot.getOffset() + slot.getBytes() << " of an arena of "
                                  << arena.getBytes();
    }
    return success();
  }

  LogicalResult verifyBuffers() {
    auto mesh = getOperation()->getParentOfType<ModuleOp>()->getAttrOfType<dist::MeshAttr>(dist::kMesh);
    for (auto buffer : getOperation().getOps<exec::BufferOp>()) {
      int64_t iterations = 1;
      for (Operation *user : buffer->getUsers())
        if (auto loop = user->getParentOfType<exec::LoopOp>())
          iterations = std::max<int64_t>(iterations, loop.getCount());
      int64_t ranks = 1;
      if (buffer.getRankAxes()) {
        if (!mesh)
          return buffer.emitOpError("depends on the rank, and the module has no mesh");
        ranks = mesh.getGroupSize(*buffer.getRankAxes());
      }
      int64_t end = buffer.getOffset() + exec::spannedBytes(buffer, iterations, ranks);
      if (end > buffer.getSlot().getType().getDimSize(0))
        return buffer.emitOpError() << "reaches byte " << end << " of a slot of "
                                    << buffer.getSlot().getType().getDimSize(0) << " bytes";
    }
    return success();
  }

  void collectEpisodes() {
    // A slot that is first written inside a loop, and used nowhere else, begins anew in each iteration.
    llvm::MapVector<Operation *, SmallVector<Access>> bySlot;
    for (const Step &step : steps) {
      for (Value buffer : exec::readBuffers(step.op))
        bySlot[lower::slotOf(buffer)].push_back({&step, false, buffer.getDefiningOp<exec::BufferOp>()});
      for (Value buffer : exec::writtenBuffers(step.op))
        bySlot[lower::slotOf(buffer)].push_back({&step, true, buffer.getDefiningOp<exec::BufferOp>()});
    }
    for (auto &[slot, accesses] : bySlot) {
      exec::LoopOp loop = accesses.front().step->loop;
      bool local = loop && accesses.front().write &&
                   llvm::all_of(accesses, [&](const Access &access) { return access.step->loop == loop; });
      size_t begin = episodes.size();
      episodes.push_back({cast<exec::SlotOp>(slot), {}});
      for (const Access &access : accesses) {
        if (local && !episodes.back().accesses.empty() &&
            episodes.back().accesses.back().step->iteration != access.step->iteration)
          episodes.push_back({cast<exec::SlotOp>(slot), {}});
        episodes.back().accesses.push_back(access);
      }
      bySlotEpisodes[slot] = {begin, episodes.size()};
    }
  }

  LogicalResult verifyEvents() {
    llvm::DenseSet<int64_t> recorded;
    for (const Step &step : steps) {
      if (auto record = dyn_cast<exec::RecordOp>(step.op))
        recorded.insert(record.getEvent());
      if (auto wait = dyn_cast<exec::WaitOp>(step.op); wait && !recorded.contains(wait.getEvent()))
        return wait.emitOpError() << "event " << wait.getEvent() << " has not been recorded before";
    }
    return success();
  }

  LogicalResult verifyReuse() {
    // Slots by arena and offset; only neighbours in memory are compared.
    std::map<StringRef, SmallVector<exec::SlotOp>> arenas;
    for (auto &[slot, range] : bySlotEpisodes)
      arenas[cast<exec::SlotOp>(slot).getArena()].push_back(cast<exec::SlotOp>(slot));
    for (auto &[arena, slots] : arenas) {
      llvm::stable_sort(slots, [](exec::SlotOp a, exec::SlotOp b) { return *a.getOffset() < *b.getOffset(); });
      for (auto [i, a] : llvm::enumerate(slots))
        for (exec::SlotOp b : llvm::drop_begin(slots, i + 1)) {
          if (*b.getOffset() >= *a.getOffset() + a.getBytes())
            break;
          if (failed(verifyPair(a, b)))
            return failure();
        }
    }
    return success();
  }

  LogicalResult verifyPair(exec::SlotOp a, exec::SlotOp b) {
    auto [beginA, endA] = bySlotEpisodes[a];
    auto [beginB, endB] = bySlotEpisodes[b];
    for (const Episode &x : ArrayRef(episodes).slice(beginA, endA - beginA))
      for (const Episode &y : ArrayRef(episodes).slice(beginB, endB - beginB))
        if (!x.precedes(y) && !y.precedes(x)) {
          InFlightDiagnostic diag = a.emitOpError()
                                    << "shares memory with '" << b.getName() << "', and their uses are not ordered";
          diag.attachNote(x.accesses.front().step->op->getLoc()) << "first use of '" << a.getName() << "'";
          diag.attachNote(y.accesses.front().step->op->getLoc()) << "first use of '" << b.getName() << "'";
          return failure();
        }
    return success();
  }

  /// Accesses of the same bytes from different streams are ordered if one of them writes.
  LogicalResult verifyRaces() {
    auto mesh = getOperation()->getParentOfType<ModuleOp>()->getAttrOfType<dist::MeshAttr>(dist::kMesh);
    for (const Episode &episode : episodes) {
      for (auto [i, later] : llvm::enumerate(episode.accesses))
        for (const Access &earlier : ArrayRef(episode.accesses).take_front(i)) {
          if (earlier.step->stream == later.step->stream || (!earlier.write && !later.write))
            continue;
          if (!happensBefore(*earlier.step, *later.step) && mayTouch(earlier, later, mesh)) {
            InFlightDiagnostic diag = later.step->op->emitOpError() << "uses '" << Episode(episode).slot.getName()
                                                                    << "' while another stream may still "
                                                                    << (earlier.write ? "write" : "read") << " it";
            diag.attachNote(earlier.step->op->getLoc()) << "the other use";
            return failure();
          }
        }
    }
    return success();
  }

  SmallVector<Step> steps;
  SmallVector<Episode> episodes;
  llvm::MapVector<Operation *, std::pair<size_t, size_t>> bySlotEpisodes;
};

} // namespace
} // namespace tessera
