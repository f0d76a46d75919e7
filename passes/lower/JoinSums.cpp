//===- JoinSums.cpp - sums that are added up, in one ----------------------===//

#include "passes/lower/JoinSums.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/MarkAs.h"
#include "passes/lower/codegen/Evaluator.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera {

/// Elements of a tensor from which on its sum is more than one block's work.
static constexpr int64_t kLong = 1 << 15;
/// Elements of a chunk: as many as the threads of one block hold.
static constexpr int64_t kMostChunk = 1 << 14, kLeastChunk = 1 << 10;
/// Chunks are multiples of this where the tensor is: their accesses stay whole.
static constexpr int64_t kVector = 8;

/// The elements of a chunk: the largest divisor that suits, else as many as a chunk has at most.
static int64_t chunkOf(int64_t elements) {
  int64_t step = elements % kVector == 0 ? kVector : 1;
  for (int64_t chunk = kMostChunk; chunk >= kLeastChunk; chunk -= step)
    if (elements % chunk == 0)
      return chunk;
  return kMostChunk;
}

/// A sum of all elements of a long tensor that only one addition reads.
static train::ReduceOp longSum(Value value) {
  auto sum = value.getDefiningOp<train::ReduceOp>();
  bool isSum = sum && sum.getKind() == train::ReduceKind::Sum && sum->hasOneUse() &&
               train::tensorType(value).getNumElements() == 1 &&
               isa<FloatType>(train::tensorType(value).getElementType()) &&
               train::tensorType(sum.getOperand()).getNumElements() >= kLong;
  return isSum ? sum : nullptr;
}

/// What `root` adds up, in order: `sums` of long tensors, and all `others`.
static void collect(Value value, Operation *root, SmallVectorImpl<train::ReduceOp> &sums,
                    SmallVectorImpl<Value> &others) {
  if (auto add = value.getDefiningOp<train::AddOp>();
      add && add->getBlock() == root->getBlock() && (add == root || add->hasOneUse())) {
    collect(add.getLhs(), root, sums, others);
    collect(add.getRhs(), root, sums, others);
  } else if (train::ReduceOp sum = longSum(value); sum && sum->getBlock() == root->getBlock()) {
    sums.push_back(sum);
  } else {
    others.push_back(value);
  }
}

/// Elements [from, to) of `value` in a row. What is computed element by element is computed of slices, so that two
/// parts of it need not be in memory.
static Value part(train::Build &b, Value value, int64_t from, int64_t to, unsigned depth = 4) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !codegen::isElementwise(op) ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return train::shapeOf(operand) != train::shapeOf(value); }))
    return b.slice(b.reshape(value, {train::tensorType(value).getNumElements()}), {from}, {to});
  IRMapping parts;
  for (Value operand : op->getOperands())
    if (!parts.contains(operand))
      parts.map(operand, part(b, operand, from, to, depth - 1));
  Operation *copy = b.builder.clone(*op, parts);
  copy->getResult(0).setType(RankedTensorType::get({to - from}, train::tensorType(value).getElementType()));
  return copy->getResult(0);
}

/// The partial sums of one tensor, as vectors.
static void addParts(train::ReduceOp sum, SmallVectorImpl<Value> &parts) {
  OpBuilder builder(sum);
  Operation *before = sum->getPrevNode();
  train::Build b(builder, sum.getLoc());
  int64_t elements = train::tensorType(sum.getOperand()).getNumElements(), chunk = chunkOf(elements);
  int64_t chunks = elements / chunk, covered = chunks * chunk;
  Value whole = covered == elements ? sum.getOperand() : part(b, sum.getOperand(), 0, covered);
  parts.push_back(b.sum(b.reshape(whole, {chunks, chunk}), {1}));
  if (covered != elements)
    parts.push_back(b.reshape(b.sum(part(b, sum.getOperand(), covered, elements), {0}), {1}));
  for (Operation *made = before ? before->getNextNode() : &sum->getBlock()->front(); made != sum.getOperation();
       made = made->getNextNode())
    train::copyMarks(sum, made);
}

void joinSums(func::FuncOp func) {
  SmallVector<train::AddOp> roots;
  func.walk([&](train::AddOp add) {
    bool isPart =
        add->hasOneUse() && isa<train::AddOp>(*add->user_begin()) && add->user_begin()->getBlock() == add->getBlock();
    if (!isPart && train::tensorType(add.getResult()).getNumElements() == 1)
      roots.push_back(add);
  });
  for (train::AddOp root : roots) {
    SmallVector<train::ReduceOp> sums;
    SmallVector<Value> others, parts;
    collect(root.getResult(), root, sums, others);
    if (sums.size() < 2)
      continue;
    for (train::ReduceOp sum : sums)
      addParts(sum, parts);
    OpBuilder builder(root);
    train::Build b(builder, root.getLoc());
    ArrayRef<int64_t> shape = train::shapeOf(root.getResult());
    Value total = b.reshape(b.sumAll(b.concat(parts, 0)), shape);
    for (Value other : others)
      total = b.add(total, other);
    root.getResult().replaceAllUsesWith(total);
  }
}

} // namespace tessera
