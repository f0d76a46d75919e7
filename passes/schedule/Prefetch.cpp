//===- Prefetch.cpp - collectives start early and end late ----------------===//
//
// Places gathers of units a number of units ahead; see Passes.td.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"
#include "passes/schedule/Placement.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera {
#define GEN_PASS_DEF_PREFETCHPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::schedule;

namespace {

/// When the gather of a unit for the backward pass starts, after FSDP's backward prefetch.
enum class Backward {
  Pre,  ///< before the unit before it computes
  Post, ///< after the unit before it has computed
  None, ///< at its own first use
};

class BlockScheduler {
public:
  BlockScheduler(Block &block, int64_t forward, Backward backward)
      : placement(block), forward(static_cast<size_t>(forward)), backward(backward) {}

  void run() {
    placement.placePermutes();
    placement.placeReductions();
    gathers = placement.placeDones();
    for (size_t index = 0; index < gathers.size(); ++index)
      if (index == 0 || !isWithPrevious(index))
        modulesAt.push_back(index);
    for (size_t index = 0; index < gathers.size(); ++index)
      place(index);
    placement.placeFixedGathers();
  }

private:
  /// Whether the gather is of the same module as the one before it: of another unit, or of the unit in another form.
  bool isWithPrevious(size_t index) const {
    StringRef module = placement.moduleOf(gathers[index].start);
    return !module.empty() && module == placement.moduleOf(gathers[index - 1].start) &&
           gathers[index].isBackward() == gathers[index - 1].isBackward();
  }

  /// Going up in `index` keeps the order of the starts. Units of one module count as one.
  void place(size_t index) {
    const Gather &gather = gathers[index];
    const size_t module = llvm::upper_bound(modulesAt, index) - modulesAt.begin() - 1;
    if (gather.isBackward() && backward == Backward::Post && module > 0)
      return placeAfterUse(index, modulesAt[module] - 1);
    const size_t ahead = !gather.isBackward() ? forward : backward == Backward::None ? 0 : 1;
    Operation *previous = index > 0 ? gathers[index - 1].start.getOperation() : nullptr;
    if (ahead == 0)
      return placement.keepAtPoint(gather, "at the first use of the unit: no prefetch");
    if (ahead > module)
      return placement.moveStart(gather, nullptr, previous,
                                 "at the beginning: fewer than " + Twine(ahead) + " units come before");
    const Gather &earlier = gathers[modulesAt[module - ahead]];
    placement.moveStart(gather, earlier.done, previous,
                        Twine(ahead) + (ahead == 1 ? " unit" : " units") + " ahead: at the first use of " +
                            earlier.getText());
  }

  void placeAfterUse(size_t index, size_t earlier) {
    const Gather &gather = gathers[index], &before = gathers[earlier];
    Operation *last = placement.lastUser(before.done);
    if (last && placement.isBefore(last, gather.done))
      placement.moveStart(gather, last, gathers[index - 1].start, "after the last use of " + before.getText());
    else
      placement.keepAtPoint(gather, "at the first use of the unit: " + before.getText() + " is still in use");
  }

  BlockPlacement placement;
  SmallVector<Gather> gathers;
  SmallVector<size_t> modulesAt; ///< the first gather of each module, in order
  size_t forward;
  Backward backward;
};

struct PrefetchPass : tessera::impl::PrefetchPassBase<PrefetchPass> {
  using PrefetchPassBase::PrefetchPassBase;
  void runOnOperation() override {
    if (forward < 0) {
      getOperation().emitError() << "forward is " << forward.getValue() << " units, expected at least 0";
      return signalPassFailure();
    }
    if (!llvm::is_contained({"pre", "post", "none"}, backward.getValue())) {
      getOperation().emitError() << "backward is '" << backward << "', expected pre, post or none";
      return signalPassFailure();
    }
    const Backward policy = backward == "pre" ? Backward::Pre : backward == "post" ? Backward::Post : Backward::None;
    getOperation().walk([&](Block *block) { BlockScheduler(*block, forward, policy).run(); });
  }
};

} // namespace
