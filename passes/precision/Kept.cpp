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
    readers.library |= !isElementwise(user) && !isa<ReduceOp, ConvertOp, ArgmaxOp, SortIndicesOp>(user) &&
                       !user->hasTrait<OpTrait::IsTerminator>();
  }
  return readers;
}

/// Whether the backward pass can compute `value` again from rounded values that it reads anyway, and from vectors: then
/// fusion does so, and the value is kept neither wide nor rounded.
static bool isRecomputable(Value value) {
  constexpr int64_t kMost = 16;
  int64_t least = tensorType(value).getNumElements() / 16, ops = 0;
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
