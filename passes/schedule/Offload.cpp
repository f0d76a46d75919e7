//===- Offload.cpp - classes of memory that live on the host --------------===//
//
// Parameters and optimizer state move to the host as arguments and come to the device for each use; activations that
// the backward pass reads go to the host and come back. Copies start one unit ahead of their use, as gathers do.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/schedule/Collectives.h"
#include "passes/schedule/OffloadActivations.h"
#include "passes/schedule/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace tessera {
#define GEN_PASS_DEF_OFFLOADPASS
#include "passes/schedule/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::schedule;

namespace {

/// What is not worth a copy of its own to the device: parts and other shapes of an argument, and casts.
bool isArgumentView(Operation *op) {
  IndexMappingOpInterface view = asStaticView(op);
  return isa<train::ConvertOp>(op) || (view && view.isInjective());
}

/// What brings arguments to the device together.
OriginPhase phaseOf(Operation *user) {
  return user->hasAttr(train::kUnit)     ? OriginPhase::Update
         : train::isMarkedBackward(user) ? OriginPhase::Backward
                                         : OriginPhase::Forward;
}

/// Arguments that are brought to the device together: those of one unit in one phase of one block.
struct Visit {
  explicit Visit(OriginPhase phase) : phase(phase) {}

  OriginPhase phase;
  SmallVector<std::pair<BlockArgument, SmallVector<OpOperand *>>> uses;
  Operation *first = nullptr; ///< that computes with them
};

class ArgumentOffload {
public:
  ArgumentOffload(func::FuncOp func) : func(func) {}

  void run(ArrayRef<std::optional<train::ArgRole>> roles) {
    for (BlockArgument argument : func.getArguments())
      if (llvm::is_contained(roles, train::getArgRole(func, argument.getArgNumber())) &&
          train::tensorType(argument).getRank() > 0)
        collect(argument);
    for (auto &[block, byKey] : visits) {
      SmallVector<Visit *> ordered;
      for (auto &[key, visit] : byKey)
        ordered.push_back(&visit);
      for (Visit *visit : ordered)
        visit->first = sinkToFirst(*visit);
      llvm::stable_sort(ordered, [](Visit *a, Visit *b) { return a->first->isBeforeInBlock(b->first); });
      bringIn(*block, ordered);
    }
    takeOut(roles);
  }

private:
  /// Sorts the uses of an argument by block and phase. An update is a phase of its own.
  void collect(BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    func.setArgAttr(number, kMemory, StringAttr::get(func.getContext(), kHostMemory));
    auto of = func.getArgAttrOfType<StringAttr>(number, train::kOf);
    StringRef unit = of ? of.getValue() : train::getArgName(func, number);
    for (OpOperand &use : argument.getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user))
        continue;
      const OriginPhase phase = isState(argument) ? OriginPhase::Update : phaseOf(user);
      Visit &visit = visits[user->getBlock()].try_emplace({unit, phase}, Visit(phase)).first->second;
      if (visit.uses.empty() || visit.uses.back().first != argument)
        visit.uses.push_back({argument, {}});
      visit.uses.back().second.push_back(&use);
    }
  }

  bool isState(BlockArgument argument) const {
    return train::getArgRole(func, argument.getArgNumber()) == train::ArgRole::State;
  }

  Operation *firstUser(Operation *op) const {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
    return first;
  }

  /// Moves views down to what reads them and returns the first op that computes with the visit's arguments.
  Operation *sink(Operation *op) const {
    if (!isArgumentView(op))
      return op;
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (user->getBlock() == op->getBlock())
        sink(user);
    if (Operation *first = firstUser(op))
      op->moveBefore(first);
    return op;
  }

  Operation *sinkToFirst(const Visit &visit) const {
    Operation *first = nullptr;
    for (const auto &[argument, uses] : visit.uses)
      for (OpOperand *use : uses)
        if (Operation *user = sink(use->getOwner()); !first || user->isBeforeInBlock(first))
          first = user;
    return first;
  }

  /// Copies to the device end at their first use and start at that of the visit before.
  void bringIn(Block &block, ArrayRef<Visit *> ordered) {
    Operation *ahead = nullptr;
    for (Visit *visit : ordered) {
      OpBuilder early(visit->first), late(visit->first);
      std::string reason;
      if (ahead) {
        early.setInsertionPoint(ahead);
        reason = "one unit ahead";
      } else if (Operation *last = lastBackward(visit->first); last && visit->first->hasAttr(train::kUnit)) {
        early.setInsertionPointAfter(last);
        reason = "when the backward pass is over: no unit comes before";
      } else {
        early.setInsertionPointToStart(&block);
        reason = "at the beginning: no unit comes before";
      }
      SmallVector<CopyStartOp> starts;
      for (auto &[argument, uses] : visit->uses)
        starts.push_back(startCopy(
            early, argument, kDeviceMemory,
            OriginAttr::get(func.getContext(), visit->phase, train::getArgName(func, argument.getArgNumber())),
            visit->phase == OriginPhase::Backward, reason));
      Operation *firstDone = nullptr;
      for (auto [start, use] : llvm::zip_equal(starts, visit->uses)) {
        DoneOp done = endCopy(late, start, "at the first use");
        firstDone = firstDone ? firstDone : done;
        for (OpOperand *operand : use.second)
          operand->set(done);
      }
      ahead = firstDone;
    }
  }

  /// The last op of the backward pass before `op`.
  static Operation *lastBackward(Operation *op) {
    for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
      if (train::isMarkedBackward(before) || isa<train::AccumulateOp>(before))
        return before;
    return nullptr;
  }

  /// What computes the next value of an argument; of a derived one, that of its source.
  static Operation *updateOf(Value next) {
    Operation *op = next.getDefiningOp();
    if (auto convert = dyn_cast<train::ConvertOp>(op))
      if (Operation *update = convert.getOperand().getDefiningOp(); update && update->hasAttr(train::kUnit))
        return update;
    return op;
  }

  /// Next values of arguments go back to the host when they are computed. The copies of a unit have ended when the
  /// update of the unit after the next begins.
  void takeOut(ArrayRef<std::optional<train::ArgRole>> roles) {
    Operation *end = func.getBody().front().getTerminator();
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> byUpdate;
    for (OpOperand &operand : end->getOpOperands()) {
      auto alias = func.getResultAttrOfType<IntegerAttr>(operand.getOperandNumber(), train::kAlias);
      if (!alias || !func.getArgAttr(alias.getInt(), kMemory) || !operand.get().getDefiningOp())
        continue;
      byUpdate[updateOf(operand.get())].push_back(&operand);
    }
    SmallVector<Operation *> updates;
    for (auto &[update, operands] : byUpdate)
      updates.push_back(update);
    llvm::sort(updates, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (auto [index, update] : llvm::enumerate(updates)) {
      OpBuilder early(update->getContext()), late(index + 2 < updates.size() ? updates[index + 2] : end);
      for (OpOperand *operand : byUpdate[update]) {
        early.setInsertionPointAfterValue(operand->get());
        auto alias = func.getResultAttrOfType<IntegerAttr>(operand->getOperandNumber(), train::kAlias);
        auto origin = OriginAttr::get(func.getContext(), OriginPhase::Update, train::getArgName(func, alias.getInt()));
        CopyStartOp start = startCopy(early, operand->get(), kHostMemory, origin, false, "when it is computed");
        operand->set(endCopy(late, start, index + 2 < updates.size() ? "two units later" : "at the end"));
      }
    }
  }

  func::FuncOp func;
  llvm::MapVector<Block *, llvm::MapVector<std::pair<StringRef, OriginPhase>, Visit>> visits;
};

struct OffloadPass : tessera::impl::OffloadPassBase<OffloadPass> {
  using OffloadPassBase::OffloadPassBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!train::isStepFunction(func))
      return;
    const bool trains = train::isTrainingStep(func);
    if (activations && trains) {
      train::completeBackwardMarks(func);
      size_t moved = 0;
      func.walk([&](Block *block) { moved += offloadActivations(*block, minBytes); });
      if (moved == 0)
        func.emitRemark() << "no activation moves to the host: the backward pass reads values of at least "
                          << minBytes.getValue() << " bytes from fewer than two blocks";
    }
    SmallVector<std::optional<train::ArgRole>> roles;
    if (optimizer)
      roles.push_back(train::ArgRole::State);
    if (parameters)
      roles.append({train::ArgRole::Param, train::ArgRole::Frozen, train::ArgRole::Derived});
    if (optimizer && trains && !hasArgument(train::ArgRole::State))
      func.emitRemark("no optimizer state moves to the host: the optimizer has none");
    if (!roles.empty())
      ArgumentOffload(func).run(roles);
  }

  bool hasArgument(train::ArgRole role) {
    return llvm::any_of(getOperation().getArguments(), [&](BlockArgument argument) {
      return train::getArgRole(getOperation(), argument.getArgNumber()) == role &&
             train::tensorType(argument).getRank() > 0;
    });
  }
};

} // namespace

CopyStartOp tessera::schedule::startCopy(OpBuilder &builder, Value value, StringRef to, OriginAttr origin,
                                         bool isBackward, StringRef why) {
  auto future = FutureType::get(value.getContext(), cast<RankedTensorType>(value.getType()));
  auto start = CopyStartOp::create(builder, value.getLoc(), future, value, builder.getStringAttr(to), origin);
  setReason(start, why);
  if (isBackward)
    train::markBackward(start);
  return start;
}

DoneOp tessera::schedule::endCopy(OpBuilder &builder, CopyStartOp start, StringRef why) {
  DoneOp done = buildDone(builder, start);
  setReason(done, why);
  if (train::isMarkedBackward(start))
    train::markBackward(done);
  return done;
}
