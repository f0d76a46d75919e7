//===- FuseLoss.cpp - a cross-entropy and the product before it -----------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_FUSELOSS
#include "passes/differentiate/Passes.h.inc"

namespace {

/// Where the logits of a loss come from.
struct Logits {
  DotGeneralOp dot;
  SliceOp cut;                ///< of their rows, or null
  SmallVector<int64_t> shape; ///< before the cut
};

bool isMatrix(Value value) { return tensorType(value).getRank() == 2; }

/// The argument that `value` is a view of, if it is of one.
BlockArgument argumentOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, TransposeOp, ConvertOp, BarrierOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

class Fuser {
public:
  Fuser(func::FuncOp func, int64_t bytes, int64_t parts) : func(func), bytes(bytes), parts(parts) {}

  void run() {
    SmallVector<CrossEntropyOp> losses;
    func.walk([&](CrossEntropyOp loss) { losses.push_back(loss); });
    for (CrossEntropyOp loss : losses) {
      std::string why;
      if (std::optional<Logits> logits = find(loss, why))
        fuse(loss, *logits);
      else
        loss.emitRemark() << "the logits are whole: " << why;
    }
  }

private:
  /// Whether one op reads `value`, but for what metrics alone are made of: training has none of that.
  bool isReadOnce(Value value) {
    if (value.hasOneUse())
      return true;
    llvm::SetVector<Operation *> trained;
    for (auto [index, result] : llvm::enumerate(getResults(func)))
      if (getResultRole(func, index) != ResultRole::Evaluated)
        trained.insert_range(opsOf(result.value));
    return llvm::count_if(value.getUses(), [&](OpOperand &use) { return trained.contains(use.getOwner()); }) == 1 &&
           llvm::none_of(value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  }

  std::optional<Logits> find(CrossEntropyOp loss, std::string &why) {
    const ArrayRef<int64_t> shape = shapeOf(loss.getLogits());
    // Not more than 2^62 elements, so that a quarter of the bytes is counted.
    if (const int64_t least = shape[0] / std::max<int64_t>(parts, 1) * shape[1]; bytes < 0 || least <= bytes / 4) {
      why = "they fit in --loss-tile";
      return std::nullopt;
    }
    if (!loss.getLse().use_empty()) {
      why = "something else reads their log-sum-exp";
      return std::nullopt;
    }
    Logits found;
    Value value = loss.getLogits();
    while (Operation *op = value.getDefiningOp()) {
      if (!isReadOnce(value)) {
        why = "something else reads them";
        return std::nullopt;
      }
      if (auto dot = dyn_cast<DotGeneralOp>(op)) {
        found.dot = dot;
        break;
      }
      const Value from = op->getNumOperands() == 1 ? op->getOperand(0) : Value();
      const bool keepsClasses =
          from && isa<RankedTensorType>(from.getType()) && !shapeOf(from).empty() && shapeOf(from).back() == shape[1];
      auto slice = dyn_cast<SliceOp>(op);
      if (!keepsClasses || !(isa<ReshapeOp>(op) || (slice && !found.cut && isPlainCut(slice)))) {
        why = ("they pass through " + op->getName().getStringRef()).str();
        return std::nullopt;
      }
      if (slice)
        found.cut = slice;
      value = from;
    }
    if (!found.dot) {
      why = "they are no product";
      return std::nullopt;
    }
    found.shape = llvm::to_vector(shapeOf(found.dot));
    return check(found.dot, why) ? std::optional(found) : std::nullopt;
  }

  static bool isPlainCut(SliceOp slice) {
    return llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; });
  }

  bool check(DotGeneralOp dot, std::string &why) {
    const int64_t last = tensorType(dot.getLhs()).getRank() - 1;
    if (!dot.getLhsBatch().empty() || dot.getLhsContract() != ArrayRef<int64_t>{last} || !isMatrix(dot.getRhs()) ||
        dot.getRhsContract().size() != 1)
      return why = "the product is not of activations and a matrix", false;
    if (dot.getComputeTypeAttr() || dot.getScalingAttr())
      return why = "the product is computed in a type of its own", false;
    BlockArgument argument = argumentOf(dot.getRhs());
    if (argument && func.getArgAttr(argument.getArgNumber(), kPlacement))
      return why = "the matrix is placed on model axes", false;
    return true;
  }

  void fuse(CrossEntropyOp loss, Logits logits) {
    OpBuilder builder(loss);
    Build build(builder, loss.getLoc());
    const int64_t rows = llvm::product_of(ArrayRef(logits.shape).drop_back());
    Value targets = loss.getTargets();
    SmallVector<int64_t> starts, limits, between; // of the cut, in the dimensions that it has
    if (SliceOp cut = logits.cut) {
      between.assign(shapeOf(cut.getOperand()).begin(), shapeOf(cut.getOperand()).end() - 1);
      starts.assign(cut.getStarts().begin(), cut.getStarts().end() - 1);
      limits.assign(cut.getLimits().begin(), cut.getLimits().end() - 1);
      SmallVector<int64_t> high;
      for (auto [size, limit] : llvm::zip_equal(between, limits))
        high.push_back(size - limit);
      // Any class does: the losses of these rows are cut off again.
      targets = build.pad(build.reshape(targets, shapeOf(cut).drop_back()), starts, high);
    }
    targets = build.reshape(targets, {rows});
    // The weight as it is stored, not its transpose.
    Value weight = logits.dot.getRhs();
    int64_t contracted = logits.dot.getRhsContract()[0];
    if (auto transpose = weight.getDefiningOp<TransposeOp>()) {
      weight = transpose.getOperand();
      contracted = transpose.getPermutation()[contracted];
    }
    Value hidden = logits.dot.getLhs();
    hidden = build.reshape(hidden, {rows, shapeOf(hidden).back()});
    RankedTensorType type = tensorType(loss.getLoss()).clone({rows});
    auto fused = LinearCrossEntropyOp::create(builder, loss.getLoc(), type, type, hidden, weight, targets,
                                              builder.getI64IntegerAttr(contracted), loss.getIgnoreIndexAttr(),
                                              loss.getLabelSmoothingAttr());
    for (auto [own, old] : llvm::zip_equal(fused->getResults(), loss->getResults())) {
      Value result = own;
      if (logits.cut)
        result = build.slice(build.reshape(result, between), starts, limits);
      old.replaceAllUsesWith(build.reshape(result, shapeOf(old)));
    }
    Operation *dead = loss.getLogits().getDefiningOp();
    loss.erase();
    while (dead && isOpTriviallyDead(dead)) {
      Operation *from = dead->getNumOperands() == 1 ? dead->getOperand(0).getDefiningOp() : nullptr;
      dead->erase();
      dead = from;
    }
  }

  func::FuncOp func;
  int64_t bytes, parts;
};

struct FuseLoss : impl::FuseLossBase<FuseLoss> {
  using FuseLossBase::FuseLossBase;
  void runOnOperation() override { Fuser(getOperation(), bytes, parts).run(); }
};

} // namespace
} // namespace tessera
