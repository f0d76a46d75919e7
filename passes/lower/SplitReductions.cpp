//===- SplitReductions.cpp - long reductions in two steps -----------------===//

#include "passes/lower/SplitReductions.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/MarkAs.h"
#include "passes/lower/codegen/KernelPlan.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {

namespace {

/// A reduction below this many elements is one kernel on one thread of a CPU, or on one block of a GPU.
constexpr int64_t kMinElements = 1 << 15;
/// Elements of one chunk, on a thread and on a block.
constexpr int64_t kChunk = 1 << 14, kBlockChunk = 1 << 12;
/// A reduction that keeps this many columns is parallel over them on a CPU.
constexpr int64_t kManyColumns = 256;
/// On a GPU: columns of a block, blocks that fill any device several times, least rows of a chunk, and elements from
/// which on a second kernel is worth it. What is left to the second has fewer.
constexpr int64_t kBlockColumns = 256, kManyBlocks = 768, kBlockRows = 64, kManyElements = 1 << 20;

/// The largest divisor of `rows` that is at most `limit`.
int64_t largestDivisor(int64_t rows, int64_t limit) {
  for (int64_t divisor = std::min(rows, limit); divisor > 1; --divisor)
    if (rows % divisor == 0)
      return divisor;
  return 1;
}

/// On a GPU: rows that leave most of it idle, of so many elements that a second kernel is worth it.
constexpr int64_t kFewRows = 32, kLongRow = 1 << 17;

/// On a GPU, beside a reduction of the rows: at least so many rows a chunk, and partial sums of as many elements as 132
/// multiprocessors have threads (1024) with one vector of 8 each. One block then walks the rows of each chunk.
constexpr int64_t kWalkedRows = 16, kWalkedSums = 1 << 20, kMostPartial = 1 << 21;
/// How far the reduction of rows is looked for.
constexpr size_t kMostSources = 16, kMostReaders = 64;

/// Whether a reduction of the rows of `rows` x `columns` elements reads something that `op` sums too, as the gradients
/// of a norm do: the kernel that reduces rows then adds up the columns.
bool isBesideRows(train::ReduceOp op, int64_t rows, int64_t columns) {
  auto isWhole = [&](Value value) { return train::tensorType(value).getNumElements() == rows * columns; };
  const codegen::Pattern ofRows = {{rows, false}, {columns, true}};
  llvm::SetVector<Value> sources, read;
  sources.insert(op.getOperand());
  for (size_t i = 0; i < sources.size() && sources.size() < kMostSources; ++i)
    if (Operation *source = sources[i].getDefiningOp(); source && codegen::isElementwise(source))
      for (Value operand : source->getOperands())
        if (isWhole(operand))
          sources.insert(operand);
  read.insert(sources.begin(), sources.end());
  for (size_t i = 0; i < read.size() && read.size() < kMostReaders; ++i)
    for (Operation *user : read[i].getUsers()) {
      if (auto reduce = dyn_cast<train::ReduceOp>(user);
          reduce && codegen::patternOf(train::shapeOf(reduce.getOperand()), reduce.getDimensions()) == ofRows)
        return true;
      if (codegen::isElementwise(user) && isWhole(user->getResult(0)))
        read.insert(user->getResult(0));
    }
  return false;
}

/// Rows of a chunk to which a reduction of `rows` x `columns` is best cut; 0 if it is not.
int64_t chunkRows(int64_t rows, int64_t columns, bool isGpu) {
  if (rows * columns < kMinElements)
    return 0;
  if (!isGpu)
    return columns < kManyColumns ? kChunk / columns : 0;
  if (columns < kBlockColumns / 8)
    return kBlockChunk / columns;
  int64_t tiles = (columns + kBlockColumns - 1) / kBlockColumns;
  int64_t limit = std::max(kBlockRows, rows * tiles / kManyBlocks);
  return rows * columns >= kManyElements && rows >= 4 * limit ? limit : 0;
}

/// The rows that a block walks where the sum is part of a kernel that reduces rows; 0 where it is not.
int64_t walkedRows(train::ReduceOp op, int64_t rows, int64_t columns) {
  if (columns < kBlockColumns / 8 || columns > codegen::kMostHeldColumns || !isBesideRows(op, rows, columns))
    return 0;
  int64_t least = std::max(kWalkedRows, rows * columns / kWalkedSums);
  for (int64_t chunk = least; chunk <= 2 * least; ++chunk)
    if (rows % chunk == 0)
      return chunk;
  return 0;
}

struct SplitReduction : OpRewritePattern<train::ReduceOp> {
  SplitReduction(MLIRContext *context, bool isGpu) : OpRewritePattern(context), isGpu(isGpu) {}
  bool isGpu;

  LogicalResult matchAndRewrite(train::ReduceOp op, PatternRewriter &rewriter) const override {
    codegen::Pattern pattern = codegen::patternOf(train::shapeOf(op.getOperand()), op.getDimensions());
    if (isGpu && pattern.size() == 2 && !pattern.front().reduced)
      return splitRows(op, pattern.front().size, pattern.back().size, rewriter);
    if (pattern.empty() || !pattern.front().reduced || pattern.size() > 2)
      return failure();
    int64_t rows = pattern.front().size, columns = pattern.size() == 2 ? pattern.back().size : 1;
    int64_t limit = chunkRows(rows, columns, isGpu);
    // Partial sums, which a second step adds up.
    bool isSecondStep = isGpu && columns >= kBlockColumns / 8 && rows * columns <= kMostPartial &&
                        op.getOperand().getDefiningOp<train::ReduceOp>();
    if (limit == 0 || isSecondStep)
      return failure();
    int64_t chunk = largestDivisor(rows, limit);
    if (int64_t walked = isGpu ? walkedRows(op, rows, columns) : 0)
      chunk = limit = walked;
    bool even = chunk >= std::max<int64_t>(1, limit / 8);
    if (!even)
      chunk = limit;
    int64_t chunks = rows / chunk;

    Operation *before = op->getPrevNode();
    train::Build b(rewriter, op.getLoc());
    Value table = b.reshape(op.getOperand(), {rows, columns});
    Value whole = even ? table : b.slice(table, {0, 0}, {chunks * chunk, columns});
    Value partial = b.reduce(op.getKind(), b.reshape(whole, {chunks, chunk, columns}), {1});
    Value result = b.reduce(op.getKind(), partial, {0});
    if (!even) {
      Value rest = b.reduce(op.getKind(), b.slice(table, {chunks * chunk, 0}, {rows, columns}), {0});
      switch (op.getKind()) {
      case train::ReduceKind::Sum:
        result = b.add(result, rest);
        break;
      case train::ReduceKind::Max:
        result = b.max(result, rest);
        break;
      case train::ReduceKind::Min:
        result = b.neg(b.max(b.neg(result), b.neg(rest)));
        break;
      case train::ReduceKind::Mul:
        result = b.mul(result, rest);
        break;
      }
    }
    return replace(op, before, b.reshape(result, train::shapeOf(op.getResult())), rewriter);
  }

private:
  /// A few long rows, each in chunks.
  static LogicalResult splitRows(train::ReduceOp op, int64_t rows, int64_t length, PatternRewriter &rewriter) {
    int64_t chunk = largestDivisor(length, kBlockChunk);
    if (rows > kFewRows || length < kLongRow || chunk < kBlockChunk / 8)
      return failure();
    Operation *before = op->getPrevNode();
    train::Build b(rewriter, op.getLoc());
    Value chunks = b.reshape(op.getOperand(), {rows, length / chunk, chunk});
    Value result = b.reduce(op.getKind(), b.reduce(op.getKind(), chunks, {2}), {1});
    return replace(op, before, b.reshape(result, train::shapeOf(op.getResult())), rewriter);
  }

  /// What was made since `before` belongs to the same pass.
  static LogicalResult replace(train::ReduceOp op, Operation *before, Value result, PatternRewriter &rewriter) {
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op.getOperation();
         made = made->getNextNode())
      rewriter.modifyOpInPlace(made, [&] { train::copyMarks(op, made); });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void addReductionSplitting(RewritePatternSet &patterns, bool isGpu) {
  patterns.add<SplitReduction>(patterns.getContext(), isGpu);
}

} // namespace tessera
