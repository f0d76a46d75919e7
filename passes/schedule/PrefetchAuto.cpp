//===- PrefetchAuto.cpp - gathers start by time, within a memory limit ----===//
//
// A list scheduler for the gathers of units: computation keeps its order and its assigned latencies, the gather queue
// is filled from the back, so that each gather ends when its unit is needed and not earlier.
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Latency.h"
#include "passes/schedule/Passes.h"
#include "passes/schedule/Placement.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera {
#define GEN_PASS_DEF_PREFETCHAUTOPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::schedule;

namespace {

std::string formatTime(double seconds) {
  return seconds >= 1e-3 ? llvm::formatv("{0:f2} ms", seconds * 1e3).str()
                         : llvm::formatv("{0:f1} us", seconds * 1e6).str();
}

class ListScheduler {
public:
  ListScheduler(Block &block, const cost::LatencyModel &model, int64_t memory)
      : block(block), placement(block), model(model), memory(memory) {}

  void run() {
    placement.placePermutes();
    placement.placeReductions();
    for (const Gather &gather : placement.placeDones())
      entries.push_back({gather});
    if (!entries.empty())
      placeGathers();
    placement.placeFixedGathers();
  }

private:
  struct Entry {
    Gather gather;
    double point = 0;       ///< seconds of computation before the unit's first use
    double seconds = 0;     ///< of the gather, beside computation
    double latestStart = 0; ///< at which it is over in time, the gathers behind it in the queue too
    double stall = 0;       ///< that computation waits for it
    int64_t bytes = 0;
  };

  void placeGathers() {
    assignTimes();
    findLatestStarts();
    for (size_t index = 0; index < entries.size(); ++index)
      place(index);
  }

  /// Seconds of computation in front of each op, as if nothing ever waited.
  void assignTimes() {
    llvm::DenseMap<Operation *, size_t> points;
    for (auto [index, entry] : llvm::enumerate(entries))
      points[entry.gather.done] = index;
    double now = 0;
    for (Operation &op : block) {
      if (auto point = points.find(&op); point != points.end())
        entries[point->second].point = now;
      if (cost::LatencyModel::isCollective(&op))
        continue;
      begins.emplace_back(now, &op);
      now += model.seconds(&op);
    }
    const double share = model.getTarget().overlapCommunication;
    for (Entry &entry : entries) {
      entry.seconds = model.seconds(entry.gather.start) / share;
      auto type = cast<RankedTensorType>(entry.gather.done.getType());
      entry.bytes = type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth()) / 8;
    }
  }

  void findLatestStarts() {
    double queueFree = entries.back().point;
    for (Entry &entry : llvm::reverse(entries)) {
      entry.latestStart = std::min(queueFree, entry.point) - entry.seconds;
      queueFree = entry.latestStart;
    }
  }

  /// Bytes of units that have been started and not reached when `op` runs.
  int64_t bytesAhead(size_t index, Operation *op) const {
    int64_t bytes = 0;
    for (const Entry &other : llvm::ArrayRef(entries).take_front(index))
      if (!other.gather.done->isBeforeInBlock(op))
        bytes += other.bytes;
    return bytes;
  }

  /// Going up in `index` keeps the order of the starts.
  void place(size_t index) {
    Entry &entry = entries[index];
    Operation *previous = index > 0 ? entries[index - 1].gather.start.getOperation() : nullptr;
    // The last op that begins early enough; nothing if even the beginning of the block is too late.
    Operation *before = nullptr;
    for (auto [begin, op] : begins) {
      if (begin > entry.latestStart || !op->isBeforeInBlock(entry.gather.done))
        break;
      before = op;
    }
    Operation *after = before ? before->getPrevNode() : nullptr;
    if (previous && (!after || after->isBeforeInBlock(previous)))
      after = previous;
    std::string limit;
    if (memory > 0 && entry.bytes > memory) {
      entry.stall = entry.seconds;
      queueFree = entry.point + stallsBefore(index, entry.gather.done) + entry.seconds;
      placement.keepAtPoint(entry.gather,
                            llvm::formatv("at the first use of the unit: {0} bytes ahead of it do not fit "
                                          "in the memory limit of {1} bytes",
                                          entry.bytes, memory)
                                .str());
      return;
    }
    if (memory > 0) {
      // Wait until enough of the units that were gathered before are in use.
      for (const Entry &other : llvm::ArrayRef(entries).take_front(index)) {
        Operation *at = after ? after->getNextNode() : &block.front();
        if (bytesAhead(index, at) + entry.bytes <= memory)
          break;
        if (!after || after->isBeforeInBlock(other.gather.done)) {
          after = other.gather.done;
          limit = llvm::formatv(", held back by the memory limit until {0} is in use", other.gather.getText());
        }
      }
    }
    const double start = timeAfter(after);
    const double ends = std::max(start + stallsBefore(index, after), queueFree) + entry.seconds;
    const double exposed = std::max(0.0, ends - entry.point - stallsBefore(index, entry.gather.done));
    entry.stall = exposed;
    queueFree = ends;
    std::string reason = llvm::formatv("{0} of gather before {1} of computation", formatTime(entry.seconds),
                                       formatTime(entry.point - start));
    reason += exposed > 0 ? ", " + formatTime(exposed) + " of it exposed" : ", hidden";
    placement.moveStart(entry.gather, after, previous, reason + limit);
  }

  /// Seconds that computation has waited for gathers when `op` is over.
  double stallsBefore(size_t index, Operation *op) const {
    double seconds = 0;
    for (const Entry &other : llvm::ArrayRef(entries).take_front(index))
      if (op && !op->isBeforeInBlock(other.gather.done))
        seconds += other.stall;
    return seconds;
  }

  double timeAfter(Operation *op) const {
    if (!op)
      return 0;
    for (auto [begin, other] : begins)
      if (op->isBeforeInBlock(other))
        return begin;
    return begins.empty() ? 0 : begins.back().first;
  }

  Block &block;
  BlockPlacement placement;
  const cost::LatencyModel &model;
  int64_t memory;
  SmallVector<Entry> entries;
  SmallVector<std::pair<double, Operation *>> begins;
  double queueFree = 0;
};

struct PrefetchAutoPass : tessera::impl::PrefetchAutoPassBase<PrefetchAutoPass> {
  using PrefetchAutoPassBase::PrefetchAutoPassBase;
  void runOnOperation() override {
    if (memory < 0) {
      getOperation().emitError() << "memory is " << memory.getValue() << " bytes, expected at least 0";
      return signalPassFailure();
    }
    auto module = getOperation()->getParentOfType<ModuleOp>();
    auto mesh = module ? module->getAttrOfType<dist::MeshAttr>(dist::kMesh) : nullptr;
    if (!mesh) {
      getOperation().emitError() << "expected a mesh in the module attribute '" << dist::kMesh << "'";
      return signalPassFailure();
    }
    auto machine = cost::Target::load(target, getOperation().getLoc());
    if (failed(machine))
      return signalPassFailure();
    cost::LatencyModel model(std::move(*machine), mesh);
    getOperation().walk([&](Block *block) { ListScheduler(*block, model, memory).run(); });
  }
};

} // namespace
