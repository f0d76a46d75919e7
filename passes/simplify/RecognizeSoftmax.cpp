//===- RecognizeSoftmax.cpp - written-out softmaxes to train.softmax ------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_RECOGNIZESOFTMAX
#include "passes/simplify/Passes.h.inc"

namespace {
/// The reduction of `kind` over one dimension that `value` repeats along it.
ReduceOp repeatedReduction(Value value, ReduceKind kind, ArrayRef<int64_t> shape) {
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    Value rows = simplify::unrepeated(value, dim, shape);
    if (auto stop = rows.getDefiningOp<StopGradientOp>())
      rows = simplify::unrepeated(stop.getOperand(), dim, shape);
    auto reduce = rows.getDefiningOp<ReduceOp>();
    if (reduce && reduce.getKind() == kind && reduce.getDimensions() == ArrayRef<int64_t>{dim} &&
        shapeOf(reduce.getOperand()) == shape)
      return reduce;
  }
  return {};
}

/// Turns `exp / sum(exp)` into softmax if `numerator` and `denominator` are these.
bool convert(Operation *root, Value numerator, Value denominator) {
  auto exponential = numerator.getDefiningOp<ExpOp>();
  ArrayRef<int64_t> shape = shapeOf(numerator);
  if (!exponential)
    return false;
  ReduceOp sum = repeatedReduction(denominator, ReduceKind::Sum, shape);
  if (!sum || sum.getOperand() != numerator)
    return false;
  const int64_t dim = sum.getDimensions()[0];
  Value x = exponential.getOperand();
  if (auto sub = x.getDefiningOp<SubOp>()) {
    ReduceOp top = repeatedReduction(sub.getRhs(), ReduceKind::Max, shape);
    if (top && top.getDimensions()[0] == dim && top.getOperand() == sub.getLhs())
      x = sub.getLhs();
  }
  OpBuilder builder(root);
  root->getResult(0).replaceAllUsesWith(SoftmaxOp::create(builder, root->getLoc(), x.getType(), x, dim).getResult());
  return true;
}

struct RecognizeSoftmax : impl::RecognizeSoftmaxBase<RecognizeSoftmax> {
  void runOnOperation() override {
    SmallVector<Operation *> converted;
    getOperation().walk([&](DivOp div) {
      if (convert(div, div.getLhs(), div.getRhs()))
        converted.push_back(div);
    });
    getOperation().walk([&](MulOp mul) {
      for (auto [x, y] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
        auto inverse = y.getDefiningOp<BroadcastOp>();
        auto div = (inverse ? inverse.getOperand() : y).getDefiningOp<DivOp>();
        if (!div || simplify::uniformConstant(div.getLhs()) != 1.0)
          continue;
        // The reciprocal may be taken before or after the broadcast.
        ArrayRef<int64_t> shape = shapeOf(x);
        ReduceOp sum = repeatedReduction(div.getRhs(), ReduceKind::Sum, shape);
        if (!sum || (inverse && simplify::unrepeated(y, sum.getDimensions()[0], shape) == y))
          continue;
        if (convert(mul, x, div.getRhs())) {
          converted.push_back(mul);
          break;
        }
      }
    });
    for (Operation *op : converted)
      op->erase();
  }
};
} // namespace
} // namespace tessera
