//===- PlanDefects.cpp - ways to break a memory plan ----------------------===//
//
// See PlanDefects.h.
//
//===----------------------------------------------------------------------===//

#include "tests/passes/lower/PlanDefects.h"

#include "passes/lower/InstructionOrder.h"

using namespace mlir;
using namespace tessera;
using lower::slotOf;

namespace {

/// Candidates of one kind of defect that are tried per model, spread over all that there are.
constexpr size_t kTried = 24;

SmallVector<Operation *> instructionsOf(exec::ProgramOp program) {
  SmallVector<Operation *> result;
  program.walk([&](Operation *op) {
    if (exec::isInstruction(op) && !isa<exec::LoopOp>(op))
      result.push_back(op);
  });
  return result;
}

bool isSynchronization(Operation *op) { return isa<exec::RecordOp, exec::WaitOp>(op); }

/// Copies and fills aside.
bool computes(Operation *op) {
  return exec::isInstruction(op) && !isSynchronization(op) && !isa<exec::LoopOp, exec::CopyOp, exec::FillOp>(op);
}

exec::BufferOp bufferOf(Value value) { return value.getDefiningOp<exec::BufferOp>(); }

bool accesses(Operation *op, exec::SlotOp slot) {
  auto inSlot = [&](Value buffer) { return slotOf(buffer) == slot; };
  return llvm::any_of(exec::readBuffers(op), inSlot) || llvm::any_of(exec::writtenBuffers(op), inSlot);
}

/// A buffer like `like` in a new slot behind all others of its arena.
Value freshBuffer(exec::BufferOp like) {
  auto slot = like.getSlot().getDefiningOp<exec::SlotOp>();
  auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(slot, slot.getArenaAttr());
  OpBuilder builder(like);
  auto fresh = cast<exec::SlotOp>(builder.clone(*slot));
  const int64_t offset = llvm::alignTo(int64_t(arena.getBytes()), 64);
  fresh.setOffset(offset);
  fresh.setName("fresh");
  arena.setBytes(offset + fresh.getBytes());
  auto buffer = cast<exec::BufferOp>(builder.clone(*like));
  buffer->setOperand(0, fresh.getResult());
  return buffer.getResult();
}

/// The `number`-th of `candidates`; null beyond them.
template <typename T> std::optional<T> pick(ArrayRef<T> candidates, size_t number) {
  const size_t step = std::max<size_t>(1, candidates.size() / kTried);
  return number * step < candidates.size() && number < kTried ? std::optional<T>(candidates[number * step])
                                                              : std::nullopt;
}

struct Interval {
  int64_t first, last;
  bool meets(const Interval &other) const { return first <= other.last && other.first <= last; }
};
Interval livenessOf(exec::SlotOp slot) { return {(*slot.getLive())[0], (*slot.getLive())[1]}; }
Interval bytesAt(int64_t offset, exec::SlotOp slot) { return {offset, offset + slot.getBytes() - 1}; }

/// Two slots that are in use together, in one arena.
SmallVector<std::pair<exec::SlotOp, exec::SlotOp>> slotsLiveTogether(exec::ProgramOp program) {
  SmallVector<std::pair<exec::SlotOp, exec::SlotOp>> result;
  auto slots = llvm::to_vector(program.getOps<exec::SlotOp>());
  for (auto [i, a] : llvm::enumerate(slots))
    for (exec::SlotOp b : llvm::drop_begin(slots, i + 1))
      if (a.getArena() == "activations" && b.getArena() == "activations" && livenessOf(a).meets(livenessOf(b)))
        result.push_back({a, b});
  return result;
}

// --- Defects ---------------------------------------------------------------------

bool overlapSlots(exec::ProgramOp program, size_t number) {
  auto pair = pick(ArrayRef(slotsLiveTogether(program)), number);
  if (!pair)
    return false;
  auto [a, b] = *pair;
  exec::SlotOp smaller = a.getBytes() < b.getBytes() ? a : b, larger = smaller == a ? b : a;
  smaller.setOffset(*larger.getOffset());
  return true;
}

bool swapSlotOffsets(exec::ProgramOp program, size_t number) {
  auto slots = llvm::to_vector(program.getOps<exec::SlotOp>());
  llvm::erase_if(slots, [](exec::SlotOp slot) { return slot.getArena() != "activations"; });
  auto collides = [&](exec::SlotOp moved, int64_t offset, exec::SlotOp other) {
    return llvm::any_of(slots, [&](exec::SlotOp slot) {
      return slot != moved && slot != other && livenessOf(slot).meets(livenessOf(moved)) &&
             bytesAt(*slot.getOffset(), slot).meets(bytesAt(offset, moved));
    });
  };
  SmallVector<std::pair<exec::SlotOp, exec::SlotOp>> harmful;
  for (auto [a, b] : slotsLiveTogether(program)) {
    auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(a, a.getArenaAttr());
    const int64_t end = std::max<int64_t>(*b.getOffset() + a.getBytes(), *a.getOffset() + b.getBytes());
    if (end <= int64_t(arena.getBytes()) && (collides(a, *b.getOffset(), b) || collides(b, *a.getOffset(), a)))
      harmful.push_back({a, b});
    if (harmful.size() > 8 * kTried)
      break;
  }
  auto pair = pick(ArrayRef(harmful), number);
  if (!pair)
    return false;
  const uint64_t offset = *pair->first.getOffset();
  pair->first.setOffset(*pair->second.getOffset());
  pair->second.setOffset(offset);
  return true;
}

/// Two views of one type change places in their slot, which something else reads or writes as a whole.
bool swapBufferOffsets(exec::ProgramOp program, size_t number) {
  SmallVector<std::pair<exec::BufferOp, exec::BufferOp>> pairs;
  auto buffers = llvm::to_vector(program.getOps<exec::BufferOp>());
  auto isWhole = [](exec::BufferOp buffer) {
    return exec::isContiguous(buffer.getType()) &&
           exec::spannedBytes(buffer, 1, 1) == buffer.getSlot().getType().getDimSize(0) && !buffer->use_empty();
  };
  for (auto [i, a] : llvm::enumerate(buffers))
    for (exec::BufferOp b : llvm::drop_begin(buffers, i + 1))
      if (a.getSlot() == b.getSlot() && a.getType() == b.getType() && a.getOffset() != b.getOffset() &&
          !a->use_empty() && !b->use_empty() &&
          llvm::any_of(buffers, [&](exec::BufferOp c) { return c.getSlot() == a.getSlot() && isWhole(c); }))
        pairs.push_back({a, b});
  auto pair = pick(ArrayRef(pairs), number);
  if (!pair)
    return false;
  const uint64_t offset = pair->first.getOffset();
  pair->first.setOffset(pair->second.getOffset());
  pair->second.setOffset(offset);
  return true;
}

/// One of them writes what the other accesses: the same view, or a slot that shares memory.
bool conflict(Operation *a, Operation *b) {
  auto meets = [](Value x, Value y) {
    exec::SlotOp first = slotOf(x), second = slotOf(y);
    return x == y || (first != second && first.getArena() == second.getArena() &&
                      bytesAt(*first.getOffset(), first).meets(bytesAt(*second.getOffset(), second)));
  };
  auto overwrites = [&](Operation *writer, Operation *other) {
    for (Value written : exec::writtenBuffers(writer))
      for (Value accessed : llvm::concat<Value>(exec::readBuffers(other), exec::writtenBuffers(other)))
        if (meets(written, accessed))
          return true;
    return false;
  };
  return overwrites(a, b) || overwrites(b, a);
}

/// A wait is dropped whose stream goes on with what the other stream was to have finished.
bool dropWait(exec::ProgramOp program, size_t number) {
  SmallVector<Operation *> harmful;
  SmallVector<Operation *> order = instructionsOf(program);
  for (auto [at, op] : llvm::enumerate(order)) {
    auto wait = dyn_cast<exec::WaitOp>(op);
    if (!wait)
      continue;
    // The instruction before the record, on its stream.
    Operation *awaited = nullptr, *last[exec::kNumStreams] = {};
    for (Operation *earlier : ArrayRef(order).take_front(at)) {
      if (auto record = dyn_cast<exec::RecordOp>(earlier); record && record.getEvent() == wait.getEvent())
        awaited = last[record.getStream()];
      else if (!isSynchronization(earlier))
        last[exec::streamOf(earlier)] = earlier;
    }
    // What the waiting stream does up to its next wait, in the same block.
    bool isHarmful = false;
    for (Operation *later : ArrayRef(order).drop_front(at + 1)) {
      if (exec::streamOf(later) != exec::streamOf(wait))
        continue;
      if (isa<exec::WaitOp>(later) || later->getBlock() != wait->getBlock() || !awaited)
        break;
      isHarmful |= conflict(awaited, later);
    }
    if (isHarmful && awaited->getBlock() == wait->getBlock())
      harmful.push_back(op);
  }
  auto op = pick(ArrayRef(harmful), number);
  if (op)
    (*op)->erase();
  return op.has_value();
}

bool dropCopy(exec::ProgramOp program, size_t number) {
  SmallVector<Operation *> moves;
  for (Operation *op : instructionsOf(program))
    if (isa<exec::CopyOp, exec::FillOp>(op))
      moves.push_back(op);
  auto op = pick(ArrayRef(moves), number);
  if (op)
    (*op)->erase();
  return op.has_value();
}

/// Two instructions that compute something, one right before the other.
bool reorder(exec::ProgramOp program, size_t number) {
  SmallVector<Operation *> before;
  for (Operation *op : instructionsOf(program))
    if (Operation *next = op->getNextNode(); computes(op) && next && computes(next))
      before.push_back(op);
  auto op = pick(ArrayRef(before), number);
  if (op)
    (*op)->moveAfter((*op)->getNextNode());
  return op.has_value();
}

/// An instruction moves before the one whose result it reads.
bool readTooEarly(exec::ProgramOp program, size_t number) {
  SmallVector<Operation *> readers;
  for (Operation *op : instructionsOf(program)) {
    Operation *previous = op->getPrevNode();
    if (!previous || !exec::isInstruction(previous) || isSynchronization(op) || isa<exec::LoopOp>(previous))
      continue;
    for (Value written : exec::writtenBuffers(previous))
      if (llvm::is_contained(exec::readBuffers(op), written)) {
        readers.push_back(op);
        break;
      }
  }
  auto op = pick(ArrayRef(readers), number);
  if (op)
    (*op)->moveBefore((*op)->getPrevNode());
  return op.has_value();
}

/// A result that joins others in a slot goes to the place next to its own.
bool wrongPiece(exec::ProgramOp program, size_t number) {
  SmallVector<OpOperand *> parts;
  for (Operation *op : instructionsOf(program))
    for (Value written : exec::writtenBuffers(op)) {
      exec::BufferOp buffer = bufferOf(written);
      const int64_t bytes = exec::spannedBytes(buffer, 1, 1), whole = buffer.getSlot().getType().getDimSize(0);
      if (2 * bytes > whole)
        continue;
      for (OpOperand &operand : llvm::reverse(op->getOpOperands()))
        if (operand.get() == written) {
          parts.push_back(&operand);
          break;
        }
    }
  auto operand = pick(ArrayRef(parts), number);
  if (!operand)
    return false;
  exec::BufferOp buffer = bufferOf((*operand)->get());
  const int64_t bytes = exec::spannedBytes(buffer, 1, 1), whole = buffer.getSlot().getType().getDimSize(0);
  OpBuilder builder(buffer);
  builder.setInsertionPointAfter(buffer);
  auto moved = cast<exec::BufferOp>(builder.clone(*buffer));
  const auto offset = int64_t(buffer.getOffset());
  moved.setOffset(offset + 2 * bytes <= whole ? offset + bytes : offset - bytes);
  (*operand)->set(moved.getResult());
  return true;
}

/// A result that something reads later on goes to memory that nothing reads.
bool lostResult(exec::ProgramOp program, size_t number, bool inLoop) {
  SmallVector<OpOperand *> results;
  SmallVector<Operation *> order = instructionsOf(program);
  for (auto [at, op] : llvm::enumerate(order)) {
    if (inLoop != bool(op->getParentOfType<exec::LoopOp>()))
      continue;
    for (Value written : exec::writtenBuffers(op)) {
      auto isBefore = [&](Operation *other) {
        return other->getBlock() != op->getBlock() && accesses(other, slotOf(written));
      };
      auto reads = [&](Operation *later) { return llvm::is_contained(exec::readBuffers(later), written); };
      // In a loop: what is carried on, into memory that lives around the loop.
      if (inLoop ? !llvm::any_of(order, isBefore) : llvm::none_of(ArrayRef(order).drop_front(at + 1), reads))
        continue;
      for (OpOperand &operand : llvm::reverse(op->getOpOperands()))
        if (operand.get() == written) {
          results.push_back(&operand);
          break;
        }
    }
  }
  auto operand = pick(ArrayRef(results), number);
  if (operand)
    (*operand)->set(freshBuffer(bufferOf((*operand)->get())));
  return operand.has_value();
}

/// Every iteration reads the first micro-batch, or every rank the first rank's part.
bool wrongStride(exec::ProgramOp program, size_t number, bool ofRank) {
  SmallVector<exec::BufferOp> buffers;
  for (auto buffer : program.getOps<exec::BufferOp>())
    if (!buffer->use_empty() && (ofRank ? buffer.getRankStride() : buffer.getIterationStride()) != 0)
      buffers.push_back(buffer);
  auto buffer = pick(ArrayRef(buffers), number);
  if (!buffer)
    return false;
  if (ofRank) {
    buffer->setRankStride(0);
    buffer->removeRankAxesAttr();
  } else {
    buffer->setIterationStride(0);
  }
  return true;
}

/// A product no longer adds to what lies there, or begins to.
bool wrongBeta(exec::ProgramOp program, size_t number) {
  SmallVector<exec::GemmOp> products;
  program.walk([&](exec::GemmOp gemm) { products.push_back(gemm); });
  auto gemm = pick(ArrayRef(products), number);
  if (gemm)
    gemm->setBeta(APFloat(gemm->getBeta().isZero() ? 1.0f : 0.0f));
  return gemm.has_value();
}

/// Two operands of one type change places.
bool swapOperands(exec::ProgramOp program, size_t number) {
  SmallVector<std::tuple<Operation *, unsigned, unsigned>> pairs;
  program.walk([&](exec::LaunchOp launch) {
    for (auto [i, a] : llvm::enumerate(launch.getInputs()))
      for (auto [j, b] : llvm::enumerate(launch.getInputs()))
        if (i < j && a != b && a.getType() == b.getType())
          pairs.push_back({launch, unsigned(i), unsigned(j)});
  });
  auto found = pick(ArrayRef(pairs), number);
  if (!found)
    return false;
  auto [op, i, j] = *found;
  Value first = op->getOperand(i);
  op->setOperand(i, op->getOperand(j));
  op->setOperand(j, first);
  return true;
}

} // namespace

std::vector<PlanDefect> tessera::planDefects() {
  return {
      {"overlap two slots", overlapSlots},
      {"swap the offsets of two slots", swapSlotOffsets},
      {"swap two parts of a slot", swapBufferOffsets},
      {"drop a wait", dropWait},
      {"drop a copy or fill", dropCopy},
      {"reorder two instructions", reorder},
      {"read too early", readTooEarly},
      {"write to the wrong piece", wrongPiece},
      {"lose a result", [](exec::ProgramOp p, size_t n) { return lostResult(p, n, /*inLoop=*/false); }},
      {"keep a stale carried value", [](exec::ProgramOp p, size_t n) { return lostResult(p, n, /*inLoop=*/true); }},
      {"always the first micro-batch", [](exec::ProgramOp p, size_t n) { return wrongStride(p, n, /*ofRank=*/false); }},
      {"always the first rank's part", [](exec::ProgramOp p, size_t n) { return wrongStride(p, n, /*ofRank=*/true); }},
      {"change beta", wrongBeta},
      {"swap two operands", swapOperands},
  };
}
