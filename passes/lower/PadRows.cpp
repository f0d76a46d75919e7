//===- PadRows.cpp - rows of products that start on whole cache lines -----===//
//
// A product whose rows have an odd length (a vocabulary of 50257) can neither be computed, nor read and written by
// kernels, with wide accesses. Its rows get a tail that nothing looks at: the product writes into a wider table, and
// elementwise ops that follow compute tables of that width too, until a product reads the part that counts.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/Passes.h"
#include "passes/lower/codegen/Evaluator.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_PADROWS
#include "passes/lower/Passes.h.inc"

namespace {

using train::shapeOf;
using train::tensorType;

/// Ops that are made wider to make one value wider.
constexpr unsigned kMaxDepth = 16;

class Padding {
public:
  Padding(train::DotGeneralOp product, int64_t width)
      : product(product.getResult()), block(product->getBlock()), length(shapeOf(this->product).back()), width(width) {}

  /// Whether every reader of the product can read the wider table; else says why not.
  bool isPossible(std::string &why) const {
    for (Operation *user : product.getUsers())
      if (!isPossible(product, user, why))
        return false;
    return true;
  }

  void run() {
    OpBuilder builder(product.getContext());
    builder.setInsertionPointAfter(product.getDefiningOp());
    train::Build b(builder, product.getLoc());
    // exp makes 0 of it, so that a row's tail adds nothing to its cross-entropy.
    SmallVector<int64_t> tail(shapeOf(product));
    tail.back() = width - length;
    auto type = RankedTensorType::get(tail, tensorType(product).getElementType());
    Value end = b.splat(type, -std::numeric_limits<double>::infinity());
    Value whole = b.concat({product, end}, tail.size() - 1);
    wide[product] = {whole, /*isLogits=*/true};
    SmallVector<Value> pending = {product};
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      for (OpOperand &use : llvm::make_early_inc_range(value.getUses()))
        if (use.getOwner() != whole.getDefiningOp())
          redirect(use, pending);
    }
  }

private:
  struct Wide {
    Value value;
    /// Whether its tail is -inf.
    bool isLogits = false;
  };
  Value product;
  Block *block;
  int64_t length, width;
  llvm::MapVector<Value, Wide> wide;

  bool hasRows(Value value) const { return !shapeOf(value).empty() && shapeOf(value).back() == length; }
  static bool keepsRows(train::ReshapeOp op) {
    ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
    return !from.empty() && !to.empty() && from.back() == to.back();
  }

  bool isPossible(Value value, Operation *user, std::string &why) const {
    if (user->getBlock() != block) {
      why = "it is read in another region";
      return false;
    }
    if (auto reshape = dyn_cast<train::ReshapeOp>(user)) {
      if (!keepsRows(reshape))
        why = "a reshape cuts its rows";
      return why.empty() && llvm::all_of(reshape->getUsers(),
                                         [&](Operation *next) { return isPossible(reshape.getResult(), next, why); });
    }
    if (auto loss = dyn_cast<train::CrossEntropyOp>(user)) {
      if (loss.getLogits() != value || !loss.getLabelSmoothing().isZero())
        why = "label smoothing adds up whole rows";
      return why.empty();
    }
    if (!codegen::isElementwise(user))
      why = ("it is read by " + user->getName().getStringRef()).str();
    else if (!llvm::all_of(user->getOperands(), [&](Value operand) { return operand == value || isWidened(operand); }))
      why = ("another operand of " + user->getName().getStringRef() + " cannot be made wider").str();
    return why.empty();
  }

  /// Whether `value` can be made wider at no cost: it is computed from rows of the product, constants, counters and
  /// values of one element a row.
  bool isWidened(Value value, unsigned depth = 0) const {
    if (value == product || wide.contains(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || depth == kMaxDepth || op->getBlock() != block || !hasRows(value))
      return false;
    if (auto constant = dyn_cast<train::ConstantOp>(op))
      return constant.getValue().isSplat();
    if (isa<train::IotaOp>(op))
      return true;
    if (auto broadcast = dyn_cast<train::BroadcastOp>(op)) {
      int64_t last = shapeOf(value).size() - 1;
      for (auto [i, dim] : llvm::enumerate(broadcast.getBroadcastDimensions()))
        if (dim == last && shapeOf(broadcast.getOperand())[i] != 1)
          return false;
      return true;
    }
    if (auto reshape = dyn_cast<train::ReshapeOp>(op))
      return keepsRows(reshape) && isWidened(reshape.getOperand(), depth + 1);
    return codegen::isElementwise(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isWidened(operand, depth + 1); });
  }

  RankedTensorType wideType(Value value) const {
    SmallVector<int64_t> shape(shapeOf(value));
    shape.back() = width;
    return RankedTensorType::get(shape, tensorType(value).getElementType());
  }

  Value widen(Value value) {
    if (auto it = wide.find(value); it != wide.end())
      return it->second.value;
    Operation *op = value.getDefiningOp();
    Wide made;
    if (auto constant = dyn_cast<train::ConstantOp>(op)) {
      OpBuilder builder(op);
      auto splat = cast<DenseElementsAttr>(constant.getValue()).resizeSplat(wideType(value));
      made.value = train::Build(builder, op->getLoc()).constant(splat);
      made.value.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    } else {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(isa<train::BroadcastOp>(op) ? operand : widen(operand));
      OpBuilder builder(op);
      builder.setInsertionPointAfter(op);
      Operation *clone = builder.clone(*op);
      clone->setOperands(operands);
      clone->getResult(0).setType(wideType(value));
      made.value = clone->getResult(0);
      made.isLogits = isa<train::ReshapeOp, train::ConvertOp>(op) && wide[op->getOperand(0)].isLogits &&
                      isa<FloatType>(tensorType(value).getElementType());
    }
    wide[value] = made;
    return made.value;
  }

  /// Makes one reader of a value read the wider one.
  void redirect(OpOperand &use, SmallVectorImpl<Value> &pending) {
    Operation *user = use.getOwner();
    Value value = use.get();
    Wide source = wide[value];
    if (isa<train::CrossEntropyOp>(user) && source.isLogits) {
      use.set(source.value);
      return;
    }
    if (user->getBlock() == block && user->getNumResults() == 1 && hasRows(user->getResult(0)) &&
        isWidened(user->getResult(0))) {
      if (!wide.contains(user->getResult(0))) {
        widen(user->getResult(0));
        pending.push_back(user->getResult(0));
      }
      return;
    }
    OpBuilder builder(user);
    SmallVector<int64_t> starts(shapeOf(value).size(), 0);
    Value part = train::Build(builder, value.getLoc()).slice(source.value, starts, shapeOf(value));
    part.getDefiningOp()->setDiscardableAttrs(source.value.getDefiningOp()->getDiscardableAttrDictionary());
    use.set(part);
  }
};

struct PadRows : impl::PadRowsBase<PadRows> {
  using PadRowsBase::PadRowsBase;
  void runOnOperation() override {
    SmallVector<train::DotGeneralOp> products;
    getOperation().walk([&](train::DotGeneralOp op) { products.push_back(op); });
    for (train::DotGeneralOp product : products) {
      auto type = tensorType(product.getResult());
      int64_t elementBytes = type.getElementTypeBitWidth() / 8, rank = type.getRank();
      int64_t length = rank < 2 ? 0 : type.getShape().back(), line = bytes / elementBytes;
      int64_t rhsFree =
          tensorType(product.getRhs()).getRank() - product.getRhsBatch().size() - product.getRhsContract().size();
      if (length * elementBytes % 16 == 0 || length < minLength || !isa<FloatType>(type.getElementType()))
        continue;
      Padding padding(product, (length + line - 1) / line * line);
      std::string why = rhsFree == 1 ? "" : "a row is made of several dimensions";
      if (!why.empty() || !padding.isPossible(why)) {
        emitRemark(product.getLoc()) << "rows of " << length << " elements are not padded: " << why;
        continue;
      }
      padding.run();
    }
  }
};

} // namespace
} // namespace tessera
