//===- Decompose.cpp - composite ops to elementwise and reductions --------===//
//
// Library ops stay; everything else that one loop over elements cannot compute becomes elementwise ops and reductions,
// which fusion then groups. Narrow floats are computed in f32, as the composite ops are.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/CountValid.h"
#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/UpdateBuilder.h"
#include "passes/lower/DecomposeEmpty.h"
#include "passes/lower/DecomposeProducts.h"
#include "passes/lower/JoinSums.h"
#include "passes/lower/Passes.h"
#include "passes/lower/SplitReductions.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/lower/Passes.h.inc"

namespace {

using train::shapeOf;
using train::tensorType;

/// Builds with a rewriter, in the accumulation type of the op's elements.
struct Wide : train::Build {
  Wide(PatternRewriter &rewriter, Operation *op) : Build(rewriter, op->getLoc()) {}

  Value widen(Value x) { return convert(x, train::accumulationType(tensorType(x).getElementType())); }
  Value narrow(Value x, Value like) { return convert(x, tensorType(like).getElementType()); }
  Value broadcastScalar(Value x, Value like) { return broadcast(x, shapeOf(like), {}); }
  Value min(Value a, Value b) { return neg(max(neg(a), neg(b))); }
  /// Broadcasts a vector along the last dimension of `like`.
  Value broadcastLast(Value x, Value like) { return broadcast(x, shapeOf(like), {tensorType(like).getRank() - 1}); }
};

/// The attribute that says to which pass an op belongs goes to the ops that replace it.
template <typename Op> struct Decomposition : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  virtual SmallVector<Value> decompose(Op op, Wide &b) const = 0;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Operation *before = op->getPrevNode();
    Wide b(rewriter, op);
    SmallVector<Value> results = decompose(op, b);
    if (results.empty())
      return failure();
    if (train::isMarkedBackward(op)) {
      Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
      for (Operation *made = first; made != op.getOperation(); made = made->getNextNode())
        rewriter.modifyOpInPlace(made, [&] { train::markBackward(made); });
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct DecomposeSoftmax : Decomposition<train::SoftmaxOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::SoftmaxOp op, Wide &b) const override {
    int64_t dim = op.getDim();
    Value x = b.widen(op.getOperand());
    Value top = b.reduce(train::ReduceKind::Max, x, {dim});
    Value powers = b.exp(b.sub(x, b.broadcastReduced(top, shapeOf(x), {dim})));
    Value sum = b.broadcastReduced(b.sum(powers, {dim}), shapeOf(x), {dim});
    return {b.narrow(b.div(powers, sum), op.getOperand())};
  }
};

struct DecomposeLayerNorm : Decomposition<train::LayerNormOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::LayerNormOp op, Wide &b) const override {
    Value x = b.widen(op.getOperand());
    int64_t last = tensorType(x).getRank() - 1;
    double width = static_cast<double>(shapeOf(x)[last]);
    auto statistics = tensorType(op.getMean());
    Value mean, centred = x;
    if (op.getMode() == train::NormMode::Layer) {
      mean = b.scale(b.sum(x, {last}), 1.0 / width);
      centred = b.sub(x, b.broadcastReduced(mean, shapeOf(x), {last}));
    } else {
      mean = b.zeros(statistics);
    }
    Value variance = b.scale(b.sum(b.mul(centred, centred), {last}), 1.0 / width);
    Value rstd = b.unary<train::RsqrtOp>(b.add(variance, b.splatLike(variance, op.getEpsilon().convertToDouble())));
    Value y = b.mul(centred, b.broadcastReduced(rstd, shapeOf(x), {last}));
    if (op.getScale())
      y = b.mul(y, b.broadcastLast(b.widen(op.getScale()), y));
    if (op.getBias())
      y = b.add(y, b.broadcastLast(b.widen(op.getBias()), y));
    return {b.narrow(y, op.getOperand()), b.narrow(mean, op.getMean()), b.narrow(rstd, op.getRstd())};
  }
};

struct DecomposeCrossEntropy : Decomposition<train::CrossEntropyOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::CrossEntropyOp op, Wide &b) const override {
    int64_t last = tensorType(op.getLogits()).getRank() - 1;
    Value x = b.widen(op.getLogits());
    int64_t classes = shapeOf(x)[last], rows = 1;
    for (int64_t size : shapeOf(x).drop_back())
      rows *= size;
    Value top = b.reduce(train::ReduceKind::Max, x, {last});
    Value powers = b.exp(b.sub(x, b.broadcastReduced(top, shapeOf(x), {last})));
    Value lse = b.add(b.unary<train::LogOp>(b.sum(powers, {last})), top);

    // logits[row, target]: one element per row, read from the logits as a flat table.
    Type i64 = b.builder.getI64Type();
    Value targets = b.convert(op.getTargets(), i64);
    Value counts;
    if (op.getIgnoreIndex()) {
      Value ignored = b.splatLike(targets, 0.0);
      auto index = DenseElementsAttr::get(tensorType(targets), b.builder.getI64IntegerAttr(*op.getIgnoreIndex()));
      counts = b.compare(train::CompareDirection::Ne, targets, b.constant(index));
      targets = b.select(counts, targets, ignored);
    }
    auto rowType = RankedTensorType::get({rows}, i64);
    Value position =
        b.add(b.mul(b.iota(rowType, 0), b.splat(rowType, static_cast<double>(classes))), b.reshape(targets, {rows}));
    Value picked = b.reshape(b.gatherRows(b.reshape(x, {rows * classes}), position), shapeOf(lse));
    double smoothing = op.getLabelSmoothing().convertToDouble();
    Value loss = lse;
    if (smoothing == 0.0) {
      loss = b.sub(loss, picked);
    } else {
      loss = b.sub(loss, b.scale(picked, 1.0 - smoothing));
      loss = b.sub(loss, b.scale(b.sum(x, {last}), smoothing / static_cast<double>(classes)));
    }
    if (counts)
      loss = b.select(counts, loss, b.splatLike(loss, 0.0));
    return {b.narrow(loss, op.getLoss()), b.narrow(lse, op.getLse())};
  }
};

struct DecomposeCountValid : Decomposition<train::CountValidOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::CountValidOp op, Wide &b) const override { return {train::writeOutCount(b, op)}; }
};

/// Each element's place is the number of elements that come before it; the index at a place is the one whose element
/// has that place. Both are sums over pairs, which fusion never stores.
struct DecomposeSortIndices : Decomposition<train::SortIndicesOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::SortIndicesOp op, Wide &b) const override {
    using train::CompareDirection;
    Value x = op.getOperand();
    const int64_t rank = tensorType(x).getRank(), dim = op.getDim();
    SmallVector<int64_t> pairs(shapeOf(x)), own, other;
    pairs.insert(pairs.begin() + dim, shapeOf(x)[dim]);
    const int64_t partner = dim + 1;
    for (int64_t i = 0; i < rank; ++i) {
      own.push_back(i <= dim ? i : i + 1);
      other.push_back(i < dim ? i : i + 1);
    }
    Value a = b.broadcast(x, pairs, own), c = b.broadcast(x, pairs, other);
    if (op.getDescending())
      std::swap(a, c);
    // Of numbers and NaNs: y is below z unless y is NaN or y >= z.
    auto below = [&](Value y, Value z) {
      Value notAbove = b.compare(CompareDirection::Eq, b.compare(CompareDirection::Ge, y, z), no(b, pairs));
      return isa<FloatType>(tensorType(y).getElementType()) ? b.mul(notAbove, b.compare(CompareDirection::Eq, y, y))
                                                            : notAbove;
    };
    Type i32 = b.builder.getI32Type();
    auto counts = RankedTensorType::get(pairs, i32);
    Value first = b.compare(CompareDirection::Lt, b.iota(counts, partner), b.iota(counts, dim));
    Value notAfter = b.compare(CompareDirection::Eq, below(a, c), no(b, pairs));
    Value before = b.select(first, notAfter, below(c, a));
    Value place = b.sum(b.convert(before, i32), {partner});
    Value here = b.compare(CompareDirection::Eq, b.broadcast(place, pairs, other), b.iota(counts, dim));
    Value index = b.sum(b.select(here, b.iota(counts, partner), b.zeros(counts)), {partner});
    return {b.convert(index, tensorType(op.getResult()).getElementType())};
  }

private:
  static Value no(Wide &b, ArrayRef<int64_t> shape) {
    return b.zeros(RankedTensorType::get(shape, b.builder.getI1Type()));
  }
};

template <typename Op> struct DecomposeUpdate : Decomposition<Op> {
  using Decomposition<Op>::Decomposition;
  SmallVector<Value> decompose(Op op, Wide &b) const override {
    train::UpdateBuilder update(b.builder, op);
    return op.decompose(update);
  }
};

/// The scale of a quantised tensor, at every element.
Value broadcastScale(Wide &b, Value scale, Value like) {
  return b.convert(b.repeatBlocks(b.widen(scale), shapeOf(like)), tensorType(like).getElementType());
}

struct DecomposeQuantize : Decomposition<train::QuantizeOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::QuantizeOp op, Wide &b) const override {
    Value x = b.widen(op.getOperand());
    Value scaled = b.mul(x, broadcastScale(b, op.getScale(), x));
    auto type = cast<FloatType>(tensorType(op.getResult()).getElementType());
    double limit = llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
    Value clamped = b.max(b.min(scaled, b.splatLike(scaled, limit)), b.splatLike(scaled, -limit));
    return {b.convert(clamped, type)};
  }
};

struct DecomposeDequantize : Decomposition<train::DequantizeOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::DequantizeOp op, Wide &b) const override {
    Value x = b.widen(op.getOperand());
    return {b.narrow(b.mul(x, broadcastScale(b, op.getInverseScale(), x)), op.getResult())};
  }
};

/// What no library multiplies in 8 bits is multiplied in a type that holds the same values: bf16 where scales are
/// powers of two, and also where they are the same along what is contracted, so that they are applied to the result;
/// else f32.
struct DecomposeScaledDot : Decomposition<train::ScaledDotOp> {
  using Decomposition::Decomposition;
  SmallVector<Value> decompose(train::ScaledDotOp op, Wide &b) const override {
    Type bf16 = b.builder.getBF16Type(), f32 = b.builder.getF32Type();
    const bool scalesResult = !op.getPowerOfTwo() && isShared(op.getLhsInverseScale(), op.getLhsContract()) &&
                              isShared(op.getRhsInverseScale(), op.getRhsContract());
    Type type = op.getPowerOfTwo() || scalesResult ? bf16 : f32;
    auto read = [&](Value operand, Value inverseScale) {
      if (scalesResult)
        return b.convert(operand, type);
      Value wide = b.widen(operand);
      return b.convert(b.mul(wide, broadcastScale(b, inverseScale, wide)), type);
    };
    Type product = scalesResult ? f32 : tensorType(op.getResult()).getElementType();
    auto dot = train::DotGeneralOp::create(b.builder, op.getLoc(), tensorType(op.getResult()).clone(product),
                                           read(op.getLhs(), op.getLhsInverseScale()),
                                           read(op.getRhs(), op.getRhsInverseScale()), {}, {}, op.getLhsContract(),
                                           op.getRhsContract(), TypeAttr(), train::ScalingAttr());
    if (!scalesResult)
      return {dot};
    Value lhsScale = ofResult(b, op, op.getLhsInverseScale(), op.getLhsContract(), 0);
    Value rhsScale = ofResult(b, op, op.getRhsInverseScale(), op.getRhsContract(),
                              tensorType(op.getLhs()).getRank() - static_cast<int64_t>(op.getLhsContract().size()));
    return {b.narrow(b.mul(dot, b.mul(lhsScale, rhsScale)), op.getResult())};
  }

private:
  static bool isShared(Value scale, ArrayRef<int64_t> contract) {
    return tensorType(scale).getRank() == 0 ||
           llvm::all_of(contract, [&](int64_t dim) { return shapeOf(scale)[dim] == 1; });
  }

  /// The scale of each element of the result, whose dimensions from `first` on are those that are not contracted.
  static Value ofResult(Wide &b, train::ScaledDotOp op, Value scale, ArrayRef<int64_t> contract, int64_t first) {
    ArrayRef<int64_t> shape = shapeOf(op.getResult());
    if (tensorType(scale).getRank() == 0)
      return b.broadcast(scale, shape, {});
    SmallVector<int64_t> sizes(shape.size(), 1);
    for (int64_t dim = 0; dim < tensorType(scale).getRank(); ++dim)
      if (!llvm::is_contained(contract, dim))
        sizes[first++] = shapeOf(scale)[dim];
    return b.repeatBlocks(b.reshape(scale, sizes), shape);
  }
};

struct DropStopGradient : OpRewritePattern<train::StopGradientOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::StopGradientOp op, PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;
  void runOnOperation() override {
    if (gpu)
      joinSums(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposeSoftmax, DecomposeLayerNorm, DecomposeCrossEntropy, DecomposeCountValid, DecomposeSortIndices,
                 DecomposeQuantize, DecomposeDequantize, DecomposeScaledDot, DropStopGradient>(&getContext());
    train::forEachUpdateOp([&]<typename Op>() { patterns.add<DecomposeUpdate<Op>>(&getContext()); });
    train::AddOp::getCanonicalizationPatterns(patterns, &getContext()); // rows that are scattered into zeros, and added
    addEmptyDecomposition(patterns);
    addProductDecomposition(patterns);
    addReductionSplitting(patterns, gpu);
    // Folding would evaluate constants of full size; what is made here is as small as it gets.
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().enableFolding(false).enableConstantCSE(false))))
      signalPassFailure();
  }
};

} // namespace
} // namespace tessera
