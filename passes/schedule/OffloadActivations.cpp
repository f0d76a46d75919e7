//===- OffloadActivations.cpp - activations that wait on the host ---------===//
//
// See OffloadActivations.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/OffloadActivations.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/schedule/Collectives.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera::dist;

namespace tessera::schedule {

namespace {

/// Ops that show their operand in another way: the backward pass repeats them on what comes back.
bool isStaticView(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return view && view.isStatic();
}

Value rootOf(Value value) {
  for (Operation *op = value.getDefiningOp(); op && isStaticView(op); op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

/// A value that waits on the host, with its readers in the backward pass.
struct Candidate {
  Value value;
  std::string unit;
  SmallVector<OpOperand *> uses; ///< in program order; of the value or of views of it
};

class BlockOffload {
public:
  BlockOffload(Block &block, int64_t minBytes) : block(block), minBytes(minBytes) {}

  /// Returns the number of values that move.
  size_t run() {
    collect();
    makeGroups();
    // What is read first never leaves: it would come back at once.
    if (groups.size() < 2)
      return 0;
    Operation *ahead = firstUse(groups.front());
    for (ArrayRef<Candidate *> group : ArrayRef(groups).drop_front()) {
      Operation *first = firstUse(group);
      for (Candidate *candidate : group)
        offload(*candidate, ahead);
      ahead = first;
    }
    endCopiesOut();
    return outs.size();
  }

private:
  static Operation *firstUse(ArrayRef<Candidate *> group) { return group.front()->uses.front()->getOwner(); }

  bool isCandidate(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block || train::isMarkedBackward(op) || op->getNumRegions() != 0 ||
        isa<DoneOp, train::ConstantOp, train::IotaOp>(op))
      return false;
    RankedTensorType type = train::tensorType(value);
    return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8u) >= minBytes;
  }

  void collect() {
    for (Operation &op : block) {
      if (!train::isMarkedBackward(&op) || isStaticView(&op))
        continue;
      for (OpOperand &operand : op.getOpOperands()) {
        if (!isa<RankedTensorType>(operand.get().getType()))
          continue;
        Value root = rootOf(operand.get());
        if (!isCandidate(root))
          continue;
        // What is computed later on is not of the forward pass.
        firstReader = firstReader ? firstReader : &op;
        if (!root.getDefiningOp()->isBeforeInBlock(firstReader))
          continue;
        Candidate &candidate = candidates[root];
        if (!candidate.value)
          candidate = {root, train::getBlockScope(train::getNodeName(root.getLoc())), {}};
        candidate.uses.push_back(&operand);
      }
    }
  }

  /// Candidates of one block of the model that follow each other in the backward pass come back together.
  void makeGroups() {
    for (auto &[value, candidate] : candidates)
      if (groups.empty() || groups.back().front()->unit != candidate.unit || candidate.unit.empty())
        groups.push_back({&candidate});
      else
        groups.back().push_back(&candidate);
  }

  void offload(Candidate &candidate, Operation *ahead) {
    Value value = candidate.value;
    Operation *first = candidate.uses.front()->getOwner();
    OpBuilder after(value.getContext()), early(ahead), late(first);
    after.setInsertionPointAfterValue(value);
    const StringRef name = train::getNodeName(value.getLoc());
    auto away = OriginAttr::get(value.getContext(), OriginPhase::Forward, name),
         back = OriginAttr::get(value.getContext(), OriginPhase::Backward, name);
    DoneOp out = endCopy(early, startCopy(after, value, kHostMemory, away, false, "when it is computed"), "");
    outs.push_back(out);
    units.push_back(candidate.unit);
    DoneOp in = endCopy(late, startCopy(early, out, kDeviceMemory, back, true, "one unit ahead"), "at the first use");
    IRMapping views;
    views.map(value, in.getResult());
    for (OpOperand *use : candidate.uses)
      use->set(repeat(use->get(), views, use->getOwner()));
  }

  /// The view of what came back that `value` is of the offloaded value.
  static Value repeat(Value value, IRMapping &views, Operation *before) {
    if (Value made = views.lookupOrNull(value))
      return made;
    Operation *op = value.getDefiningOp();
    repeat(op->getOperand(0), views, before);
    Operation *made = OpBuilder(before).clone(*op, views);
    train::markBackward(made);
    return made->getResult(0);
  }

  /// A copy to the host ends where the first one of the next unit but one starts, at the latest where it is read.
  void endCopiesOut() {
    SmallVector<std::pair<Operation *, DoneOp>> ordered;
    llvm::DenseMap<Operation *, StringRef> unitOf;
    for (auto [unit, done] : llvm::zip_equal(units, outs)) {
      ordered.push_back({done.getFuture().getDefiningOp(), done});
      unitOf[done] = unit;
    }
    llvm::sort(ordered, [](auto &a, auto &b) { return a.first->isBeforeInBlock(b.first); });
    SmallVector<size_t> begins; // of runs of one unit
    for (size_t i = 0; i < ordered.size(); ++i)
      if (i == 0 || unitOf[ordered[i].second] != unitOf[ordered[i - 1].second] || unitOf[ordered[i].second].empty())
        begins.push_back(i);
    size_t run = 0;
    for (size_t i = 0; i < ordered.size(); ++i) {
      while (run + 1 < begins.size() && begins[run + 1] <= i)
        ++run;
      DoneOp done = ordered[i].second;
      Operation *limit = run + 2 < begins.size() ? ordered[begins[run + 2]].first : nullptr;
      if (limit && limit->isBeforeInBlock(done)) {
        done->moveBefore(limit);
        setReason(done, "two units later");
      } else {
        setReason(done, "before it comes back");
      }
    }
  }

  Block &block;
  int64_t minBytes;
  Operation *firstReader = nullptr;             ///< in the backward pass
  llvm::MapVector<Value, Candidate> candidates; ///< in the order of their first readers
  SmallVector<SmallVector<Candidate *>> groups;
  SmallVector<DoneOp> outs;
  SmallVector<std::string> units;
};

} // namespace

size_t offloadActivations(Block &block, int64_t minBytes) { return BlockOffload(block, minBytes).run(); }

} // namespace tessera::schedule
