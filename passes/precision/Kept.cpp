//===- Kept.cpp - which values of a step are kept in memory ---------------===//
//
// See Kept.h.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Kept.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/PhaseAnalysis.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

namespace {
/// What reads a value, or a view of it, from memory: a library, and the backward pass what forward made.
struct Readers {
  bool library = false, backward = false;
};
} // namespace

/// Whether `value` is the distance of other values from a vector of theirs, such as their means.
static bool isCentred(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  auto each = sub ? sub.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
  return each && !each.getOperand().getDefiningOp<ConstantOp>();
}

static Readers readersOf(Value value, bool fromBackward) {
  Readers readers;
  for (Operation *user : value.getUsers()) {
    if (isa<BarrierOp>(user)) {
      readers.library = true; // recomputation keeps it
      continue;
    }
    if (isa<IndexMappingOpInterface>(user)) {
      Readers below = readersOf(user->getResult(0), fromBackward);
      readers.library |= below.library;
      readers.backward |= below.backward;
      continue;
    }
    // Of a gradient, it reads f32; what is computed again is rounded as the forward pass rounded it.
    if (auto dot = dyn_cast<DotGeneralOp>(user);
        dot && isComputedInF32(dot) && fromBackward && !value.getDefiningOp()->hasAttr(kRecompute))
      continue;
    readers.backward |= isMarkedBackward(user) && !fromBackward;
    // It is kept in place of its distance from a vector.
    if (!fromBackward && isa<SubOp>(user) && isCentred(user->getResult(0)) && user->getOperand(0) == value)
      readers.backward |= readersOf(user->getResult(0), fromBackward).backward;
    readers.library |= !isElementwise(user) && !isa<ReduceOp, ConvertOp, ArgmaxOp, SortIndicesOp>(user) &&
                       !user->hasTrait<OpTrait::IsTerminator>();
  }
  return readers;
}

/// Whether the backward pass can compute `value` again from rounded values that it reads anyway, and from vectors: then
/// fusion does so, and the value is kept neither wide nor rounded. A centred value is computed again from a rounded one
/// that is kept in its place: rounded itself, it would err by the same for all values between two powers of two, which
/// no sum averages out.
static bool isRecomputable(Value value) {
  constexpr int64_t kMost = 16;
  int64_t least = tensorType(value).getNumElements() / 16, ops = 0, inPlace = isCentred(value) ? 1 : 0;
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second || (next != value && tensorType(next).getNumElements() <= least))
      continue;
    Operation *op = next.getDefiningOp();
    Type element = tensorType(next).getElementType();
    if (op && readersOf(next, false).backward && (element.isBF16() || (element.isF32() && !isElementwise(op))))
      continue;
    if (op && element.isBF16() && inPlace-- > 0)
      continue;
    if (!op || (!isElementwise(op) && !isa<IndexMappingOpInterface>(op) && !isa<ConvertOp, ConstantOp>(op)) ||
        ++ops > kMost)
      return false;
    llvm::append_range(pending, op->getOperands());
  }
  return true;
}

bool isKept(Value value, bool fromBackward) {
  Readers readers = readersOf(value, fromBackward);
  return readers.library || (readers.backward && !isRecomputable(value));
}

} // namespace tessera::precision
