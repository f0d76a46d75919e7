//===- TileLoss.cpp - logits of some rows at a time -----------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/CrossEntropyGrad.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/lower/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_TILELOSS
#include "passes/lower/Passes.h.inc"

namespace {

/// Each range is written out: of more there are too many instructions.
constexpr int64_t kMostRanges = 256;

/// Writes out one op, for one range of rows after the other.
template <typename Op> class Tiler {
public:
  Tiler(Op op, int64_t bytes)
      : op(op), builder(op), build(builder, op.getLoc()), rows(shapeOf(op.getHidden())[0]),
        classes(shapeOf(op.getWeight())[1 - op.getWeightDim()]), sumType(accumulationType(elementOf(op.getHidden()))) {
    const int64_t ranges = llvm::divideCeil(rows, std::max<int64_t>(bytes / (4 * std::max<int64_t>(classes, 1)), 1));
    tile = llvm::divideCeil(rows, std::clamp<int64_t>(ranges, 1, kMostRanges));
    isBackward = isMarkedBackward(op);
  }

  void run() {
    // What was made for the backward pass alone is kept apart from the forward pass.
    MarkBackward mark;
    if (isBackward)
      builder.setListener(&mark);
    for (int64_t first = 0; first < rows || parts[0].empty(); first += tile)
      add(first, std::min(first + tile, rows));
    SmallVector<Value> results{joined(0), joined(1)};
    if constexpr (isGrad) {
      results.push_back(op.getHiddenGrad().use_empty() ? Value() : joined(2));
      results.push_back(weightGrad ? build.convert(weightGrad, elementOf(op.getWeightGrad())) : Value());
    }
    for (auto [old, result] : llvm::zip_equal(op->getResults(), results))
      if (result)
        old.replaceAllUsesWith(result);
    op.erase();
  }

private:
  static constexpr bool isGrad = std::is_same_v<Op, LinearCrossEntropyGradOp>;

  static Type elementOf(Value value) { return tensorType(value).getElementType(); }

  /// Rows [first, end). Of a value that is repeated a smaller repetition, so that all ranges have equal kernels.
  Value range(Value value, int64_t first, int64_t end) {
    if (auto repeat = value.getDefiningOp<BroadcastOp>();
        repeat && !llvm::is_contained(repeat.getBroadcastDimensions(), 0)) {
      SmallVector<int64_t> shape(shapeOf(value));
      shape[0] = end - first;
      return build.broadcast(repeat.getOperand(), shape, repeat.getBroadcastDimensions());
    }
    SmallVector<int64_t> starts(tensorType(value).getRank(), 0), limits(shapeOf(value));
    starts[0] = first;
    limits[0] = end;
    return build.slice(value, starts, limits);
  }

  Value joined(unsigned result) {
    return parts[result].size() == 1 ? parts[result].front() : build.concat(parts[result], 0);
  }

  /// A product of matrices whose result has `element`.
  Value product(Value lhs, int64_t lhsDim, Value rhs, int64_t rhsDim, Type element) {
    const int64_t m = shapeOf(lhs)[1 - lhsDim], n = shapeOf(rhs)[1 - rhsDim];
    auto dot = build.dot(lhs, rhs, {}, {}, {lhsDim}, {rhsDim}).template getDefiningOp<DotGeneralOp>();
    dot.getResult().setType(RankedTensorType::get({m, n}, element));
    return dot.getResult();
  }

  void add(int64_t first, int64_t end) {
    const auto contracted = static_cast<int64_t>(op.getWeightDim());
    Value hidden = range(op.getHidden(), first, end), targets = range(op.getTargets(), first, end);
    Value logits = product(hidden, 1, op.getWeight(), contracted, sumType);
    auto rowType = RankedTensorType::get({end - first}, elementOf(op.getLse()));
    auto loss = CrossEntropyOp::create(builder, op.getLoc(), rowType, rowType, logits, targets, op.getIgnoreIndexAttr(),
                                       op.getLabelSmoothingAttr());
    parts[0].push_back(loss.getLoss());
    parts[1].push_back(loss.getLse());
    if constexpr (isGrad) {
      if (op.getHiddenGrad().use_empty() && op.getWeightGrad().use_empty())
        return;
      const CrossEntropyRows of{logits, loss.getLse(), targets, op.getIgnoreIndex(),
                                op.getLabelSmoothing().convertToDouble()};
      Value grad = crossEntropyGrad(build, of, crossEntropyProbability(build, of), range(op.getLossGrad(), first, end));
      grad = build.convert(grad, elementOf(op.getHidden()));
      if (!op.getHiddenGrad().use_empty())
        parts[2].push_back(product(grad, 1, op.getWeight(), 1 - contracted, elementOf(op.getHiddenGrad())));
      if (!op.getWeightGrad().use_empty()) {
        Value own = contracted == 1 ? product(grad, 0, hidden, 0, sumType) : product(hidden, 0, grad, 0, sumType);
        weightGrad = weightGrad ? build.add(weightGrad, own) : own;
      }
    }
  }

  Op op;
  OpBuilder builder;
  Build build;
  int64_t rows, classes, tile;
  bool isBackward;
  Type sumType;
  SmallVector<Value> parts[3]; ///< loss, lse and the gradient of the hidden values, by range
  Value weightGrad;
};

struct TileLoss : impl::TileLossBase<TileLoss> {
  using TileLossBase::TileLossBase;
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto loss = dyn_cast<LinearCrossEntropyOp>(op))
        Tiler(loss, bytes).run();
      else if (auto grad = dyn_cast<LinearCrossEntropyGradOp>(op))
        Tiler(grad, bytes).run();
    });
  }
};

} // namespace
} // namespace tessera
