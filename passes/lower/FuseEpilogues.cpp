//===- FuseEpilogues.cpp - bias, GELU and their gradients into products ---===//
//
// Moves what a library does while it writes a product into the product; see Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/FusionGroups.h"
#include "passes/lower/Passes.h"
#include "passes/lower/ScalarFunction.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/lower/Passes.h.inc"

namespace {

using exec::Epilogue;

/// Rows of a pre-activation start at a multiple of so many elements: what cuBLASLt asks of its leading dimension.
constexpr int64_t kAuxAlignment = 8;

Type elementOf(Value value) { return train::tensorType(value).getElementType(); }

unsigned widthOf(Value value) { return elementOf(value).getIntOrFloatBitWidth(); }

int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// The ops that read a value, as it is or converted to another floating point type.
SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  for (Operation *user : value.getUsers()) {
    auto convert = dyn_cast<train::ConvertOp>(user);
    if (convert && withoutConversions(convert.getResult()) == withoutConversions(value))
      llvm::append_range(readers, readersOf(convert.getResult()));
    else
      readers.push_back(user);
  }
  return readers;
}

/// Whether an op that is no kernel reads `value`, as it is or through views.
bool readByLibrary(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BarrierOp>(user))
      return readByLibrary(user->getResult(0));
    return fusionRole(user) == FusionRole::Fixed;
  });
}

/// Elementwise ops that depend on `value`, near it, in the order of the block.
SmallVector<Operation *> elementwiseReaders(Value value) {
  SmallVector<Operation *> found;
  llvm::SmallPtrSet<Operation *, 32> seen;
  SmallVector<Value> pending{value};
  while (!pending.empty() && found.size() < 96)
    for (Operation *user : pending.pop_back_val().getUsers())
      if (user->getBlock() == value.getParentBlock() && codegen::isElementwise(user) && seen.insert(user).second) {
        found.push_back(user);
        pending.push_back(user->getResult(0));
      }
  llvm::sort(found, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return found;
}

/// A product without a batch whose epilogue is still free.
struct Product {
  explicit Product(Operation *op) : op(op), result(op->getResult(0)) {
    if (auto dot = dyn_cast<train::DotGeneralOp>(op)) {
      isPlain = dot.getLhsBatch().empty();
      lhs = dot.getLhs(), rhs = dot.getRhs();
      lhsContract = dot.getLhsContract(), rhsContract = dot.getRhsContract();
    } else if (auto add = dyn_cast<exec::AddProductOp>(op)) {
      isPlain = add.getLhsBatch().empty();
      accumulator = add.getAccumulator();
      lhs = add.getLhs(), rhs = add.getRhs();
      lhsContract = add.getLhsContract(), rhsContract = add.getRhsContract();
    }
    isPlain = isPlain && isa<FloatType>(elementOf(result));
  }

  /// Dimensions of the result that come from the right: its columns.
  ArrayRef<int64_t> columnShape() const { return shapeOf(result).drop_front(shapeOf(lhs).size() - lhsContract.size()); }
  int64_t columns() const { return elementsOf(columnShape()); }
  /// Type of a bias gradient: the dimensions of the left's rows, or of the columns.
  Type vectorType(bool isRows) const {
    ArrayRef<int64_t> shape = shapeOf(result);
    return train::tensorType(result).clone(isRows ? shape.drop_back(columnShape().size()) : columnShape());
  }

  /// `before`: where the product goes, unless where it is.
  exec::EpilogueProductOp build(Epilogue epilogue, Value input, Type output, Operation *before = nullptr) const {
    OpBuilder builder(before ? before : op);
    auto made = exec::EpilogueProductOp::create(builder, op->getLoc(), result.getType(), output, epilogue, lhs, rhs,
                                                accumulator, input, lhsContract, rhsContract);
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return made;
  }

  Operation *op;
  Value result, lhs, rhs, accumulator;
  ArrayRef<int64_t> lhsContract, rhsContract;
  bool isPlain = false;
};

class EpilogueFuser {
public:
  explicit EpilogueFuser(bool fusesGelu) : fusesGelu(fusesGelu) {}

  void run(Block &block) {
    SmallVector<Operation *> products;
    for (Operation &op : block)
      if (isa<train::DotGeneralOp, exec::AddProductOp>(op))
        products.push_back(&op);
    for (Operation *op : products) {
      Product product(op);
      if (product.isPlain && !fuseForward(product) && !fuseGeluGrad(product))
        fuseBiasGrad(product);
    }
    eraseUnused(block);
    for (exec::EpilogueProductOp product : llvm::make_early_inc_range(block.getOps<exec::EpilogueProductOp>()))
      if (exec::givesPreActivation(product.getEpilogue()) && product.getOutput().use_empty())
        dropPreActivation(product);
  }

private:
  static void eraseUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  /// Nothing reads it: GELU has no gradient here.
  static void dropPreActivation(exec::EpilogueProductOp product) {
    OpBuilder builder(product);
    auto alone = exec::EpilogueProductOp::create(builder, product.getLoc(), product.getResult().getType(), Type(),
                                                 product.getInput() ? Epilogue::GeluBias : Epilogue::Gelu,
                                                 product.getLhs(), product.getRhs(), Value(), product.getInput(),
                                                 product.getLhsContract(), product.getRhsContract());
    alone->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    product.getResult().replaceAllUsesWith(alone.getResult());
    product.erase();
  }

  /// The bias that `add` adds to the product in each column, of the result's type; null with a remark if the library
  /// cannot add it, null without one if it is none.
  Value biasOf(train::AddOp add, const Product &product, bool &isBias) {
    Value other = withoutConversions(add.getLhs()) == product.result ? add.getRhs() : add.getLhs();
    auto broadcast = withoutConversions(other).getDefiningOp<train::BroadcastOp>();
    isBias = broadcast && train::tensorType(broadcast.getOperand()).getRank() > 0;
    if (!isBias)
      return nullptr;
    int64_t rank = shapeOf(product.result).size(), columns = product.columnShape().size();
    if (ArrayRef(broadcast.getBroadcastDimensions()) != ArrayRef(llvm::to_vector(llvm::seq(rank - columns, rank))) ||
        shapeOf(broadcast.getOperand()) != product.columnShape()) {
      add.emitRemark() << "bias not fused into the product: it does not go along the product's columns";
      return nullptr;
    }
    Value bias = broadcast.getOperand();
    if (elementOf(bias) != elementOf(product.result))
      bias = withoutConversions(bias);
    if (elementOf(bias) != elementOf(product.result)) {
      add.emitRemark() << "bias not fused into the product: it is " << elementOf(broadcast.getOperand())
                       << ", the product " << elementOf(product.result);
      return nullptr;
    }
    return moveBefore(bias, product.op, add) ? bias : nullptr;
  }

  /// Has `value` computed before `op`: moves views of what is known there.
  bool moveBefore(Value value, Operation *op, Operation *reader) {
    SmallVector<Operation *> views;
    while (Operation *source = value.getDefiningOp()) {
      if (source->getBlock() != op->getBlock() || source->isBeforeInBlock(op))
        break;
      if (!isa<train::SliceOp, train::ReshapeOp, train::BarrierOp>(source)) {
        reader->emitRemark() << "bias not fused into the product: it is computed later, by '" << source->getName()
                             << "'";
        return false;
      }
      views.push_back(source);
      value = source->getOperand(0);
    }
    for (Operation *view : llvm::reverse(views))
      view->moveBefore(op);
    return true;
  }

  bool fuseForward(const Product &product) {
    if (product.accumulator)
      return false;
    SmallVector<Operation *> readers = readersOf(product.result);
    Value bias, sum = product.result;
    for (Operation *reader : readers) {
      auto add = dyn_cast<train::AddOp>(reader);
      bool isBias = false;
      Value found = add ? biasOf(add, product, isBias) : nullptr;
      if (isBias && !found)
        return false;
      if (!found)
        continue;
      if (readers.size() != 1) {
        add.emitRemark() << "bias not fused into the product: the product has other readers";
        return false;
      }
      bias = found;
      sum = add.getResult();
    }
    // What is kept of the pre-activation has the product's type.
    Value kept = sum;
    if (elementOf(sum) != elementOf(product.result)) {
      auto convert = sum.hasOneUse() ? dyn_cast<train::ConvertOp>(*sum.user_begin()) : nullptr;
      if (!convert || elementOf(convert.getResult()) != elementOf(product.result))
        return false; // kernels read it wide: they add the bias for nothing
      kept = convert.getResult();
    }
    if (Value activation = fusesGelu ? findGelu(product, sum) : nullptr) {
      fuseGelu(product, bias, kept, activation);
      return true;
    }
    // Kernels add a bias for nothing; another kernel is saved only where a library call would wait for one.
    if (!bias || !readByLibrary(kept))
      return false;
    kept.replaceAllUsesWith(product.build(Epilogue::Bias, bias, Type()).getResult());
    return true;
  }

  /// GELU of the pre-activation `sum`, in the product's type.
  Value findGelu(const Product &product, Value sum) {
    for (Operation *op : elementwiseReaders(sum)) {
      if (elementOf(op->getResult(0)) != elementOf(product.result))
        continue;
      std::optional<ScalarFunction> function = ScalarFunction::of(op->getResult(0), {withoutConversions(sum)}, 1);
      if (function && isErfGelu(*function)) {
        op->emitRemark() << "GELU not fused into the product: it is the exact one, the library has the tanh "
                            "approximation";
        return nullptr;
      }
      if (!function || !isTanhGelu(*function))
        continue;
      if (product.columns() % kAuxAlignment != 0) {
        op->emitRemark() << "GELU not fused into the product: its " << product.columns()
                         << " columns are no multiple of " << kAuxAlignment;
        return nullptr;
      }
      return op->getResult(0);
    }
    return nullptr;
  }

  void fuseGelu(const Product &product, Value bias, Value kept, Value activation) {
    exec::EpilogueProductOp made =
        product.build(bias ? Epilogue::GeluAuxBias : Epilogue::GeluAux, bias, product.result.getType());
    activation.replaceAllUsesWith(made.getResult());
    kept.replaceAllUsesWith(made.getOutput());
  }

  /// `product * gelu'(z)`, where a product has written z.
  bool fuseGeluGrad(const Product &product) {
    if (!fusesGelu || product.accumulator)
      return false;
    for (Operation *op : elementwiseReaders(product.result)) {
      Value gradient = op->getResult(0);
      if (elementOf(gradient) != elementOf(product.result) || gradient.getType() != product.result.getType())
        continue;
      std::optional<ScalarFunction> function = ScalarFunction::of(gradient, {product.result}, 2);
      if (!function || !isTanhGeluGrad(*function))
        continue;
      Value z = function->getArguments()[1];
      if (!z.getDefiningOp<exec::EpilogueProductOp>() && !z.getDefiningOp<train::DotGeneralOp>()) {
        op->emitRemark() << "GELU's gradient not fused into the product: no product writes the pre-activation";
        return false;
      }
      if (z.getType() != product.result.getType() || product.columns() % kAuxAlignment != 0) {
        op->emitRemark() << "GELU's gradient not fused into the product: the pre-activation is " << z.getType()
                         << ", the product " << product.result.getType() << " of " << product.columns() << " columns";
        return false;
      }
      if (hasOtherReaders(product.result, *function, op)) {
        op->emitRemark() << "GELU's gradient not fused into the product: the product has other readers";
        return false;
      }
      buildGeluGrad(product, z, gradient);
      return true;
    }
    return false;
  }

  /// Whether anything but `last` needs what the function computes of `value`.
  static bool hasOtherReaders(Value value, const ScalarFunction &function, Operation *last) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (user == last)
        return false;
      return !function.getOps().contains(user) || hasOtherReaders(user->getResult(0), function, last);
    });
  }

  void buildGeluGrad(const Product &product, Value z, Value gradient) {
    train::ReduceOp sum =
        columnSum(gradient, product,
                  llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(gradient).size() - product.columnShape().size())));
    // Recomputation may have put the product that writes z behind this one, whose only reader is the gradient.
    Operation *source = z.getDefiningOp(), *before = nullptr;
    if (source->getBlock() == product.op->getBlock() && product.op->isBeforeInBlock(source))
      before = gradient.getDefiningOp();
    exec::EpilogueProductOp made = sum ? product.build(Epilogue::GeluGradBiasGrad, z, sum.getType(), before)
                                       : product.build(Epilogue::GeluGrad, z, Type(), before);
    if (sum)
      sum.replaceAllUsesWith(made.getOutput());
    gradient.replaceAllUsesWith(made.getResult());
  }

  /// The sums that read `value`, wide or as it is, over `dims`: in one step, or in the two of `decompose` over chunks
  /// of rows, where the last step counts.
  static void findSums(Value value, Value current, ArrayRef<int64_t> dims, SmallVectorImpl<train::ReduceOp> &found) {
    for (Operation *user : current.getUsers()) {
      if (isa<train::ReshapeOp>(user) || (isa<train::ConvertOp>(user) && widthOf(user->getResult(0)) >= widthOf(value)))
        findSums(value, user->getResult(0), dims, found);
      auto reduce = dyn_cast<train::ReduceOp>(user);
      if (!reduce || reduce.getKind() != train::ReduceKind::Sum)
        continue;
      ArrayRef<int64_t> shape = shapeOf(current);
      if (shape == shapeOf(value)) {
        SmallVector<int64_t> reduced(reduce.getDimensions());
        llvm::sort(reduced);
        if (ArrayRef(reduced) == dims)
          found.push_back(reduce);
        continue;
      }
      bool isLeading = llvm::equal(dims, llvm::seq<int64_t>(0, dims.size()));
      int64_t columns = elementsOf(shapeOf(value).drop_front(dims.size()));
      auto last = reduce->hasOneUse() ? dyn_cast<train::ReduceOp>(*reduce->user_begin()) : nullptr;
      if (isLeading && shape.size() == 3 && shape[2] == columns && reduce.getDimensions() == ArrayRef<int64_t>{1} &&
          last && last.getKind() == train::ReduceKind::Sum && last.getDimensions() == ArrayRef<int64_t>{0})
        found.push_back(last);
    }
  }

  /// The sum of `value` over `dims` if the product can write it: in its own type, and not needed before it.
  train::ReduceOp columnSum(Value value, const Product &product, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> sorted(dims);
    llvm::sort(sorted);
    SmallVector<train::ReduceOp> sums;
    findSums(value, value, sorted, sums);
    for (train::ReduceOp reduce : sums) {
      if (reduce->getBlock() != product.op->getBlock())
        continue;
      if (elementOf(reduce.getResult()) != elementOf(product.result)) {
        if (value != product.lhs && value != product.rhs)
          continue; // the product that contracts the terms may take it
        reduce.emitRemark() << "bias gradient not fused into the product that contracts its terms: the sum is "
                            << elementOf(reduce.getResult()) << ", the product writes " << elementOf(product.result);
        continue;
      }
      SmallVector<Operation *> early;
      bool isEarly = !findEarly(reduce, product.op, early);
      if (isEarly) {
        reduce.emitRemark() << "bias gradient not fused into the product: it is needed before the product";
        continue;
      }
      return reduce;
    }
    return nullptr;
  }

  /// What stands before `product` and needs `op`, if all of it can be computed behind the product.
  static bool findEarly(Operation *op, Operation *product, SmallVectorImpl<Operation *> &early) {
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = product->getBlock()->findAncestorOpInBlock(*user);
      if (inBlock && product->isBeforeInBlock(inBlock))
        continue;
      if (inBlock != user || !isa<train::AddOp, train::ReshapeOp>(user) || !findEarly(user, product, early))
        return false;
      if (!llvm::is_contained(early, user))
        early.push_back(user);
    }
    return true;
  }

  /// The sum is an output of `made` now, and what it is added to follows it.
  static void replaceSum(train::ReduceOp sum, exec::EpilogueProductOp made) {
    SmallVector<Operation *> early;
    findEarly(sum, made, early);
    llvm::sort(early, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    OpBuilder builder(made->getContext());
    builder.setInsertionPointAfter(made);
    train::Build build(builder, sum.getLoc());
    Value vector = build.reshape(made.getOutput(), shapeOf(sum.getResult()));
    sum.replaceAllUsesWith(vector);
    Operation *last = vector.getDefiningOp();
    for (Operation *op : early) {
      op->moveAfter(last);
      last = op;
    }
  }

  void fuseBiasGrad(const Product &product) {
    for (bool isLhs : {true, false}) {
      Value terms = isLhs ? product.lhs : product.rhs;
      train::ReduceOp sum = columnSum(terms, product, isLhs ? product.lhsContract : product.rhsContract);
      if (!sum)
        continue;
      exec::EpilogueProductOp made =
          product.build(isLhs ? Epilogue::BiasGradA : Epilogue::BiasGradB, nullptr, product.vectorType(isLhs));
      replaceSum(sum, made);
      product.op->replaceAllUsesWith(ValueRange{made.getResult()});
      return;
    }
  }

  bool fusesGelu;
};

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (kinds == "none" || kinds == "bias" || kinds == "all")
      return success();
    return emitError(UnknownLoc::get(context)) << "fuse-epilogues: kinds is '" << kinds << "', not none, bias or all";
  }

  void runOnOperation() override {
    if (kinds == "none")
      return;
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](exec::RepeatOp repeat) { blocks.push_back(&repeat.getBody().front()); });
    for (Block *block : blocks)
      EpilogueFuser(kinds == "all").run(*block);
  }
};

} // namespace
} // namespace tessera
