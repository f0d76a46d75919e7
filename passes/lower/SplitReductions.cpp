//===- SplitReductions.cpp - long reductions in two steps -----------------===//

#include "passes/lower/SplitReductions.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/KernelPlan.h"

using namespace mlir;

namespace tessera {

namespace {

/// A reduction below this many elements is one kernel on one thread.
constexpr int64_t kMinElements = 1 << 15;
/// Elements of one chunk.
constexpr int64_t kChunk = 1 << 14;
/// A reduction that keeps this many columns is parallel over them.
constexpr int64_t kManyColumns = 256;

/// The largest divisor of `rows` that is at most `limit`.
int64_t largestDivisor(int64_t rows, int64_t limit) {
  for (int64_t divisor = std::min(rows, limit); divisor > 1; --divisor)
    if (rows % divisor == 0)
      return divisor;
  return 1;
}

struct SplitReduction : OpRewritePattern<train::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(train::ReduceOp op, PatternRewriter &rewriter) const override {
    codegen::Pattern pattern = codegen::patternOf(train::shapeOf(op.getOperand()), op.getDimensions());
    if (pattern.empty() || !pattern.front().reduced || pattern.size() > 2)
      return failure();
    int64_t rows = pattern.front().size, columns = pattern.size() == 2 ? pattern.back().size : 1;
    if (rows * columns < kMinElements || columns >= kManyColumns)
      return failure();
    int64_t limit = kChunk / columns, chunk = largestDivisor(rows, limit);
    bool even = chunk >= limit / 8;
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
    result = b.reshape(result, train::shapeOf(op.getResult()));
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op.getOperation();
         made = made->getNextNode())
      rewriter.modifyOpInPlace(made, [&] { made->setDiscardableAttrs(op->getDiscardableAttrDictionary()); });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void addReductionSplitting(RewritePatternSet &patterns) { patterns.add<SplitReduction>(patterns.getContext()); }

} // namespace tessera
